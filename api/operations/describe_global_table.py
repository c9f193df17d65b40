"""DescribeGlobalTable."""

from __future__ import annotations

from dynactor.api.access import asks
from dynactor.api.execution.operation import Effect, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import DescribeGlobalTableInput
from dynactor.model.tables import global_tables


def handle(call: Call[DescribeGlobalTableInput]) -> bytes:
    """Refuse the request, as the service does."""
    raise global_tables.no_global_table(
        call.request.GlobalTableName, before="Global table not found: "
    )


OPERATION = Operation(
    DescribeGlobalTableInput, handle, asks=asks.global_table, effect=Effect.DESCRIBES
)
