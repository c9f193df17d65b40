"""UpdateGlobalTableSettings."""

from __future__ import annotations

from dynactor.api.requests import global_tables, shapes, structures
from dynactor.api.requests.operation import Call, Operation


class UpdateGlobalTableSettingsInput(structures.Shape, frozen=True):
    """The members of UpdateGlobalTableSettings."""

    GlobalTableName: shapes.PlainTableName
    GlobalTableBillingMode: shapes.BillingMode | None = None
    GlobalTableProvisionedWriteCapacityUnits: shapes.PositiveLong | None = None
    GlobalTableProvisionedWriteCapacityAutoScalingSettingsUpdate: (
        global_tables.AutoScalingSettingsUpdateShape | None
    ) = None
    GlobalTableGlobalSecondaryIndexSettingsUpdate: global_tables.IndexSettingsUpdates | None = None
    ReplicaSettingsUpdate: global_tables.ReplicaSettingsUpdates | None = None


def handle(call: Call[UpdateGlobalTableSettingsInput]) -> bytes:
    """Refuse the request, as the service does."""
    raise global_tables.no_global_table(call.request.GlobalTableName)


OPERATION = Operation("UpdateGlobalTableSettings", UpdateGlobalTableSettingsInput, handle)
