"""The members that all restores of tables have."""

from __future__ import annotations

from typing import TypeAlias

from dynactor.api.requests import inputs
from dynactor.api.requests.table_request import given, new_global_index, new_local_index, throughput
from dynactor.model.errors import ValidationException
from dynactor.model.tables.restore_rules import RestoreOverrides

RestoreInput: TypeAlias = inputs.RestoreTableFromBackupInput | inputs.RestoreTableToPointInTimeInput


def restore_overrides(request: RestoreInput) -> RestoreOverrides:
    """The overrides of a request; raises ``ValidationException`` for vector indexes."""
    if request.VectorIndexOverride:
        raise ValidationException("VectorIndexes are not supported yet")
    local, global_override = (
        request.LocalSecondaryIndexOverride,
        request.GlobalSecondaryIndexOverride,
    )
    return RestoreOverrides(
        billing_mode=request.BillingModeOverride,
        throughput=throughput(request.ProvisionedThroughputOverride),
        on_demand_throughput=given(request.OnDemandThroughputOverride),
        sse_specification=given(request.SSESpecificationOverride),
        local_indexes=None if local is None else tuple(map(new_local_index, local)),
        global_indexes=None
        if global_override is None
        else tuple(map(new_global_index, global_override)),
    )
