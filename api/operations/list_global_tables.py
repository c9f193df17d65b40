"""ListGlobalTables."""

from __future__ import annotations

from msgspec import json

from dynactor.api.access import asks
from dynactor.api.execution.operation import Effect, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import ListGlobalTablesInput


def handle(call: Call[ListGlobalTablesInput]) -> bytes:
    """Return an empty list, because global tables are not implemented."""
    del call
    return json.encode({"GlobalTables": []})


OPERATION = Operation(ListGlobalTablesInput, handle, asks=asks.no_resource, effect=Effect.DESCRIBES)
