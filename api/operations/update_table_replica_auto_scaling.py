"""UpdateTableReplicaAutoScaling."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from dynactor.api.access import asks
from dynactor.api.execution.operation import Operation
from dynactor.api.requests import shapes, structures
from dynactor.api.requests.call import Call
from dynactor.api.requests.table_arn import table_name
from dynactor.model.tables import global_tables


class UpdateTableReplicaAutoScalingInput(structures.Shape, frozen=True):
    """The members of UpdateTableReplicaAutoScaling."""

    TableName: shapes.ControlTableName
    GlobalSecondaryIndexUpdates: (
        Annotated[list[structures.GlobalSecondaryIndexAutoScalingUpdateShape], Meta(min_length=1)]
        | None
    ) = None
    ProvisionedWriteCapacityAutoScalingUpdate: structures.AutoScalingSettingsUpdateShape | None = (
        None
    )
    ReplicaUpdates: (
        Annotated[list[structures.ReplicaAutoScalingUpdateShape], Meta(min_length=1)] | None
    ) = None


def handle(call: Call[UpdateTableReplicaAutoScalingInput]) -> bytes:
    """Refuse the request, because no table has replicas."""
    raise global_tables.no_replicas(table_name(call.request.TableName))


OPERATION = Operation(
    "UpdateTableReplicaAutoScaling", UpdateTableReplicaAutoScalingInput, handle, asks=asks.table
)
