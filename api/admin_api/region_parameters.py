"""The query parameters for the region and access key, which shared regions ignore."""

from __future__ import annotations

from typing import Final

REGION_PARAMETER: Final = "region"
KEY_ID_PARAMETER: Final = "access_key_id"
