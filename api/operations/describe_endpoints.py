"""DescribeEndpoints."""

from __future__ import annotations

from typing import Final

from msgspec import json

from dynactor.api.access import asks
from dynactor.api.execution.operation import Effect, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import DescribeEndpointsInput

_CACHE_MINUTES: Final = 1440


async def handle(call: Call[DescribeEndpointsInput]) -> bytes:
    """Show the only endpoint: the host and port that the client used."""
    endpoint = {"Address": call.host, "CachePeriodInMinutes": _CACHE_MINUTES}
    return json.encode({"Endpoints": [endpoint]})


OPERATION = Operation(
    DescribeEndpointsInput, handle, asks=asks.no_resource, effect=Effect.DESCRIBES
)
