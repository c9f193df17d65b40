"""UpdateKinesisStreamingDestination."""

from __future__ import annotations

from msgspec import json

from dynactor.actors.phases.destination_messages import UpdateDestination
from dynactor.api.access import asks
from dynactor.api.execution.operation import Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.destination_arn import find_topic
from dynactor.api.requests.inputs import UpdateKinesisStreamingDestinationInput
from dynactor.api.requests.table_arn import table_name
from dynactor.model.errors import ValidationException


async def handle(call: Call[UpdateKinesisStreamingDestinationInput]) -> bytes:
    """Change the precision of times in a table's published changes."""
    request = call.request
    name, configuration = table_name(request.TableName), request.UpdateKinesisStreamingConfiguration
    precision = configuration.ApproximateCreationDateTimePrecision if configuration else None
    if precision is None:
        raise ValidationException(
            "Streaming destination cannot be updated with given parameters: "
            "UpdateKinesisStreamingConfiguration cannot be null or contain only null values"
        )
    message = UpdateDestination(name, find_topic(call.database, request.StreamArn), precision)
    destination = await call.database.ask(message)
    return json.encode(
        {
            "TableName": name,
            "StreamArn": request.StreamArn,
            "DestinationStatus": destination.status,
            "UpdateKinesisStreamingConfiguration": {
                "ApproximateCreationDateTimePrecision": destination.precision
            },
        }
    )


OPERATION = Operation(UpdateKinesisStreamingDestinationInput, handle, asks=asks.table)
