"""DeleteTable."""

from __future__ import annotations

from msgspec import json

from api import shapes, structures
from api.arn import table_name
from api.operation import Call, Operation
from api.table_description import deleted_table_description


class DeleteTableInput(structures.Shape, frozen=True):
    """The members of DeleteTable."""

    TableName: shapes.ControlTableName


async def handle(call: Call[DeleteTableInput]) -> bytes:
    """Delete a table with all its items and indexes."""
    state = await call.database.delete_table(table_name(call.request.TableName))
    return json.encode({"TableDescription": deleted_table_description(call.database, state)})


OPERATION = Operation("DeleteTable", DeleteTableInput, handle)
