"""The parameters by which a request to the admin listener names whose tables it concerns.

They mean nothing to a server that keeps no regions apart.
"""

from __future__ import annotations

from typing import Final

REGION_PARAMETER: Final = "region"
KEY_ID_PARAMETER: Final = "access_key_id"
