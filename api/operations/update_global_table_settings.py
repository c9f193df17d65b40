"""UpdateGlobalTableSettings."""

from __future__ import annotations

from dynactor.api.access import asks
from dynactor.api.execution.operation import Operation
from dynactor.api.requests import shapes, structures
from dynactor.api.requests.call import Call
from dynactor.model.tables import global_tables


class UpdateGlobalTableSettingsInput(structures.Shape, frozen=True):
    """The members of UpdateGlobalTableSettings."""

    GlobalTableName: shapes.PlainTableName
    GlobalTableBillingMode: shapes.BillingMode | None = None
    GlobalTableProvisionedWriteCapacityUnits: shapes.PositiveLong | None = None
    GlobalTableProvisionedWriteCapacityAutoScalingSettingsUpdate: (
        structures.AutoScalingSettingsUpdateShape | None
    ) = None
    GlobalTableGlobalSecondaryIndexSettingsUpdate: structures.IndexSettingsUpdates | None = None
    ReplicaSettingsUpdate: structures.ReplicaSettingsUpdates | None = None


def handle(call: Call[UpdateGlobalTableSettingsInput]) -> bytes:
    """Refuse the request, as the service does."""
    raise global_tables.no_global_table(call.request.GlobalTableName)


OPERATION = Operation(
    "UpdateGlobalTableSettings", UpdateGlobalTableSettingsInput, handle, asks=asks.global_table
)
