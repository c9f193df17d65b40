"""UpdateTableReplicaAutoScaling."""

from __future__ import annotations

from dynactor.api.access import asks
from dynactor.api.execution.operation import Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import UpdateTableReplicaAutoScalingInput
from dynactor.api.requests.table_arn import table_name
from dynactor.model.tables import global_tables


def handle(call: Call[UpdateTableReplicaAutoScalingInput]) -> bytes:
    """Refuse the request, because no table has replicas."""
    raise global_tables.no_replicas(table_name(call.request.TableName))


OPERATION = Operation(UpdateTableReplicaAutoScalingInput, handle, asks=asks.table)
