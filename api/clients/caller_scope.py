"""The region and the access key of a command, from its options and from AWS's variables.

These options select the tables of a server with separate regions or access keys.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, NamedTuple

from dynactor.api.admin_api.region_parameters import KEY_ID_PARAMETER, REGION_PARAMETER

_DEFAULT_REGION: Final = "us-east-1"
_DEFAULT_KEY_ID: Final = "dynactor"


class CallerScope(NamedTuple):
    """The region and the access key whose tables a command works on."""

    region: str
    access_key_id: str

    @property
    def parameters(self) -> dict[str, str]:
        """The scope as query parameters of the admin listener."""
        return {REGION_PARAMETER: self.region, KEY_ID_PARAMETER: self.access_key_id}


def caller_scope(
    region: str | None = None, environment: Mapping[str, str] = os.environ
) -> CallerScope:
    """The given region, by default the environment's, and the environment's access key."""
    return CallerScope(
        region
        or environment.get("AWS_REGION")
        or environment.get("AWS_DEFAULT_REGION")
        or _DEFAULT_REGION,
        environment.get("AWS_ACCESS_KEY_ID") or _DEFAULT_KEY_ID,
    )
