"""DescribeKinesisStreamingDestination."""

from __future__ import annotations

from msgspec import json

from api import shapes, structures
from api.arn import table_name
from api.destination_arn import described
from api.operation import Call, Operation


class DescribeKinesisStreamingDestinationInput(structures.Shape, frozen=True):
    """The members of DescribeKinesisStreamingDestination."""

    TableName: shapes.ControlTableName


async def handle(call: Call[DescribeKinesisStreamingDestinationInput]) -> bytes:
    """The topics that a table's changes are published to, and those that were switched off."""
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
    "DescribeKinesisStreamingDestination", DescribeKinesisStreamingDestinationInput, handle
)
