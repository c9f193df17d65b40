"""The AWS account that the ARNs of tables and users name."""

from __future__ import annotations

from typing import Final

ACCOUNT_ID: Final = "000000000000"
