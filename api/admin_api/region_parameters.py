"""The query parameters that name the region and the access key of the tables.

A server with shared regions ignores them.
"""

from __future__ import annotations

from typing import Final

REGION_PARAMETER: Final = "region"
KEY_ID_PARAMETER: Final = "access_key_id"
