"""The address of the server that a command works on, and the region of its tables."""

from __future__ import annotations

from dataclasses import dataclass

from cyclopts import Parameter

from dynactor.api.clients.caller_scope import caller_scope
from dynactor.api.clients.server_address import ServerAddress


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TablesAddress(ServerAddress):
    """The options that name a server, and the region of its tables."""

    region: str | None = None
    """Region of the tables, if the server has separate tables for each region. Default: AWS_REGION
    or AWS_DEFAULT_REGION, else us-east-1. AWS_ACCESS_KEY_ID names the access key."""

    def parameters(self) -> dict[str, str]:
        """The region and the access key."""
        return caller_scope(self.region).parameters
