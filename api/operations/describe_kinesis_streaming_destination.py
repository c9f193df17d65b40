"""DescribeKinesisStreamingDestination."""

from __future__ import annotations

from msgspec import json

from dynactor.api.access import asks
from dynactor.api.execution.operation import Effect, Location, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.destination_arn import described
from dynactor.api.requests.inputs import DescribeKinesisStreamingDestinationInput
from dynactor.api.requests.table_arn import table_name


async def handle(call: Call[DescribeKinesisStreamingDestinationInput]) -> bytes:
    """Show a table's topics, including disabled ones."""
    name = table_name(call.request.TableName)
    table = call.database.table_in_any_state(name)
    return json.encode(
        {
            "TableName": name,
            "KinesisDataStreamDestinations": [
                described(call.database, table, destination)
                for destination in table.definition.destinations
            ],
        }
    )


OPERATION = Operation(
    DescribeKinesisStreamingDestinationInput,
    handle,
    asks=asks.table,
    effect=Effect.DESCRIBES,
    location=Location.HOME,
)
