"""DescribeTableReplicaAutoScaling."""

from __future__ import annotations

from dynactor.api.access import asks
from dynactor.api.execution.operation import Effect, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import DescribeTableReplicaAutoScalingInput
from dynactor.api.requests.table_arn import table_name
from dynactor.model.tables import global_tables


def handle(call: Call[DescribeTableReplicaAutoScalingInput]) -> bytes:
    """Refuse the request, because no table has replicas."""
    raise global_tables.no_replicas(table_name(call.request.TableName))


OPERATION = Operation(
    DescribeTableReplicaAutoScalingInput, handle, asks=asks.table, effect=Effect.DESCRIBES
)
