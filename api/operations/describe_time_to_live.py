"""DescribeTimeToLive."""

from __future__ import annotations

from msgspec import json

from api import shapes, structures
from api.arn import table_name
from api.operation import Call, Operation


class DescribeTimeToLiveInput(structures.Shape, frozen=True):
    """The members of DescribeTimeToLive."""

    TableName: shapes.ControlTableName


async def handle(call: Call[DescribeTimeToLiveInput]) -> bytes:
    """Time to live is not built, and shown as switched off."""
    await call.database.describe(table_name(call.request.TableName))
    return json.encode({"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}})


OPERATION = Operation("DescribeTimeToLive", DescribeTimeToLiveInput, handle)
