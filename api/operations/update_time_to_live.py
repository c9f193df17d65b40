"""UpdateTimeToLive."""

from __future__ import annotations

from msgspec import json

from api import shapes, structures
from api.arn import table_name
from api.operation import Call, Operation
from model.time_to_live import TimeToLiveChange


class UpdateTimeToLiveInput(structures.Shape, frozen=True):
    """The members of UpdateTimeToLive."""

    TableName: shapes.ControlTableName
    TimeToLiveSpecification: structures.TimeToLiveSpecificationShape


async def handle(call: Call[UpdateTimeToLiveInput]) -> bytes:
    """Switch time to live on or off; the answer echoes what was asked for."""
    asked = call.request.TimeToLiveSpecification
    await call.database.update_time_to_live(
        table_name(call.request.TableName), TimeToLiveChange(asked.Enabled, asked.AttributeName)
    )
    return json.encode({"TimeToLiveSpecification": asked})


OPERATION = Operation("UpdateTimeToLive", UpdateTimeToLiveInput, handle)
