"""DisableKinesisStreamingDestination."""

from __future__ import annotations

from msgspec import json

from actors.destination_keeper import DisableDestination
from api import shapes, structures
from api.arn import table_name
from api.destination_arn import topic_of
from api.operation import Call, Operation


class DisableKinesisStreamingDestinationInput(structures.Shape, frozen=True):
    """The members of DisableKinesisStreamingDestination."""

    TableName: shapes.ControlTableName
    StreamArn: shapes.StreamArn
    EnableKinesisStreamingConfiguration: (
        structures.EnableKinesisStreamingConfigurationShape | None
    ) = None


async def handle(call: Call[DisableKinesisStreamingDestinationInput]) -> bytes:
    """Publish no more of a table's changes than were made until now."""
    request = call.request
    name = table_name(request.TableName)
    message = DisableDestination(name, topic_of(request.StreamArn))
    destination = await call.database.change_destination(message)
    return json.encode(
        {
            "TableName": name,
            "StreamArn": request.StreamArn,
            "DestinationStatus": destination.status,
        }
    )


OPERATION = Operation(
    "DisableKinesisStreamingDestination", DisableKinesisStreamingDestinationInput, handle
)
