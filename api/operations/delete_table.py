"""DeleteTable."""

from __future__ import annotations

from msgspec import json

from dynactor.actors.table.messages import DeleteTable
from dynactor.api.access import asks
from dynactor.api.answers.table_description import deleted_table_description, table_description
from dynactor.api.execution.operation import Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import DeleteTableInput
from dynactor.api.requests.table_arn import table_name


async def handle(call: Call[DeleteTableInput]) -> bytes:
    """Delete a table with all its items and indexes."""
    name, database = table_name(call.request.TableName), call.database
    settings = database.settings
    if settings.is_like_dynamodb_local and not settings.table_transition_seconds:
        before = table_description(database, await database.describe(name))
        await database.ask(DeleteTable(name))
        return json.encode({"TableDescription": before})
    state = await database.ask(DeleteTable(name))
    return json.encode({"TableDescription": deleted_table_description(database, state)})


OPERATION = Operation(DeleteTableInput, handle, asks=asks.table)
