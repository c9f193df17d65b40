"""RestoreTableFromBackup."""

from __future__ import annotations

from msgspec import json

from dynactor.api.answers import table_backup
from dynactor.api.answers.table_description import table_description
from dynactor.api.requests import shapes, structures
from dynactor.api.requests.operation import Call, Operation
from dynactor.api.requests.table_request import given, new_global_index, new_local_index, throughput
from dynactor.model.errors import ValidationException
from dynactor.model.tables.restore_rules import RestoreOverrides, restored


class RestoreTableFromBackupInput(structures.Shape, frozen=True):
    """The members of RestoreTableFromBackup."""

    TargetTableName: shapes.PlainTableName
    BackupArn: shapes.BackupArn
    BillingModeOverride: shapes.BillingMode | None = None
    GlobalSecondaryIndexOverride: list[structures.GlobalSecondaryIndexShape] | None = None
    LocalSecondaryIndexOverride: list[structures.LocalSecondaryIndexShape] | None = None
    ProvisionedThroughputOverride: structures.ProvisionedThroughputShape | None = None
    OnDemandThroughputOverride: structures.OnDemandThroughputShape | None = None
    SSESpecificationOverride: structures.SSESpecificationShape | None = None
    VectorIndexOverride: list[structures.VectorIndexShape] | None = None


async def handle(call: Call[RestoreTableFromBackupInput]) -> bytes:
    """Start to restore a table from a backup; the table becomes ACTIVE when it is complete."""
    request, database = call.request, call.database
    backup = table_backup.find(database, request.BackupArn)
    if request.VectorIndexOverride:
        raise ValidationException("VectorIndexes are not supported yet")
    definition = restored(backup.definition, request.TargetTableName, _overrides(request))
    state = await database.restore_table(definition, backup.backup_id, request.BackupArn)
    return json.encode({"TableDescription": table_description(database, state)})


def _overrides(request: RestoreTableFromBackupInput) -> RestoreOverrides:
    local, of_all = request.LocalSecondaryIndexOverride, request.GlobalSecondaryIndexOverride
    return RestoreOverrides(
        billing_mode=request.BillingModeOverride,
        throughput=throughput(request.ProvisionedThroughputOverride),
        on_demand_throughput=given(request.OnDemandThroughputOverride),
        sse_specification=given(request.SSESpecificationOverride),
        local_indexes=None if local is None else tuple(map(new_local_index, local)),
        global_indexes=None if of_all is None else tuple(map(new_global_index, of_all)),
    )


OPERATION = Operation("RestoreTableFromBackup", RestoreTableFromBackupInput, handle)
