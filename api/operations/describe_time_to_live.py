"""DescribeTimeToLive."""

from __future__ import annotations

from msgspec import json

from api import shapes, structures
from api.arn import table_name
from api.operation import Call, Operation
from api.table_description import time_to_live_description


class DescribeTimeToLiveInput(structures.Shape, frozen=True):
    """The members of DescribeTimeToLive."""

    TableName: shapes.ControlTableName


async def handle(call: Call[DescribeTimeToLiveInput]) -> bytes:
    """The state of a table's time to live; its attribute is shown unless it is switched off."""
    state = await call.database.describe(table_name(call.request.TableName))
    description = time_to_live_description(call.database, state.definition)
    return json.encode({"TimeToLiveDescription": description})


OPERATION = Operation("DescribeTimeToLive", DescribeTimeToLiveInput, handle)
