"""UpdateTimeToLive."""

from __future__ import annotations

from msgspec import json

from dynactor.actors.table.messages import UpdateTimeToLive
from dynactor.api.access import asks
from dynactor.api.execution.operation import Location, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import UpdateTimeToLiveInput
from dynactor.api.requests.table_arn import table_name
from dynactor.model.tables.time_to_live import TimeToLiveChange


async def handle(call: Call[UpdateTimeToLiveInput]) -> bytes:
    """Enable or disable time to live; the answer repeats the request."""
    asked = call.request.TimeToLiveSpecification
    await call.database.ask(
        UpdateTimeToLive(
            table_name(call.request.TableName), TimeToLiveChange(asked.Enabled, asked.AttributeName)
        )
    )
    return json.encode({"TimeToLiveSpecification": asked})


OPERATION = Operation(UpdateTimeToLiveInput, handle, asks=asks.table, location=Location.HOME)
