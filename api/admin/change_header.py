"""The header that a change over the admin port needs."""

from __future__ import annotations

from typing import Final

CHANGE_HEADER: Final = "X-Dynactor-Admin"
CHANGE_HEADER_VALUE: Final = "1"
