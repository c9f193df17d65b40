"""The AWS account and the region that ARNs name by default."""

from __future__ import annotations

from typing import Final

ACCOUNT_ID: Final = "000000000000"
REGION: Final = "us-east-1"
