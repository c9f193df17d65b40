"""DescribeTable."""

from __future__ import annotations

from msgspec import json

from dynactor.api.access import asks
from dynactor.api.answers.table_description import table_description
from dynactor.api.execution.operation import Effect, Location, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import DescribeTableInput
from dynactor.api.requests.table_arn import table_name


async def handle(call: Call[DescribeTableInput]) -> bytes:
    """Show a table, with current counts and sizes instead of hours-old ones."""
    state = await call.database.describe(table_name(call.request.TableName))
    return json.encode({"Table": table_description(call.database, state)})


OPERATION = Operation(
    DescribeTableInput, handle, asks=asks.table, effect=Effect.DESCRIBES, location=Location.HOME
)
