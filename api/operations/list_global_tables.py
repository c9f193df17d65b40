"""ListGlobalTables."""

from __future__ import annotations

from msgspec import json

from dynactor.api.access import asks
from dynactor.api.execution.operation import Effect, Operation
from dynactor.api.requests import shapes, structures
from dynactor.api.requests.call import Call


class ListGlobalTablesInput(structures.Shape, frozen=True):
    """The members of ListGlobalTables."""

    ExclusiveStartGlobalTableName: shapes.PlainTableName | None = None
    Limit: shapes.PositiveInteger | None = None
    RegionName: str | None = None


def handle(call: Call[ListGlobalTablesInput]) -> bytes:
    """Return an empty list, because global tables are not implemented."""
    del call
    return json.encode({"GlobalTables": []})


OPERATION = Operation(
    "ListGlobalTables",
    ListGlobalTablesInput,
    handle,
    asks=asks.no_resource,
    effect=Effect.DESCRIBES,
)
