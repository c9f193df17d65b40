"""DescribeLimits."""

from __future__ import annotations

from msgspec import json

from dynactor.api.access import asks
from dynactor.api.execution.operation import Effect, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import DescribeLimitsInput
from dynactor.model.limits import (
    ACCOUNT_READ_UNITS,
    ACCOUNT_WRITE_UNITS,
    TABLE_READ_UNITS,
    TABLE_WRITE_UNITS,
)


async def handle(_call: Call[DescribeLimitsInput]) -> bytes:
    """Show AWS's default quotas."""
    return json.encode(
        {
            "AccountMaxReadCapacityUnits": ACCOUNT_READ_UNITS,
            "AccountMaxWriteCapacityUnits": ACCOUNT_WRITE_UNITS,
            "TableMaxReadCapacityUnits": TABLE_READ_UNITS,
            "TableMaxWriteCapacityUnits": TABLE_WRITE_UNITS,
        }
    )


OPERATION = Operation(DescribeLimitsInput, handle, asks=asks.no_resource, effect=Effect.DESCRIBES)
