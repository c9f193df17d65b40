"""The members that all restores of tables have."""

from __future__ import annotations

from dynactor.api.requests import shapes, structures
from dynactor.api.requests.table_request import given, new_global_index, new_local_index, throughput
from dynactor.model.errors import ValidationException
from dynactor.model.tables.restore_rules import RestoreOverrides


class RestoreShape(structures.Shape, frozen=True, kw_only=True):
    """The new table's name, and the settings that differ from the source's."""

    TargetTableName: shapes.LengthFirstName
    BillingModeOverride: shapes.BillingMode | None = None
    GlobalSecondaryIndexOverride: list[structures.GlobalSecondaryIndexShape] | None = None
    LocalSecondaryIndexOverride: list[structures.LocalSecondaryIndexShape] | None = None
    ProvisionedThroughputOverride: structures.ProvisionedThroughputShape | None = None
    OnDemandThroughputOverride: structures.OnDemandThroughputShape | None = None
    SSESpecificationOverride: structures.SSESpecificationShape | None = None
    VectorIndexOverride: list[structures.VectorIndexShape] | None = None


def restore_overrides(request: RestoreShape) -> RestoreOverrides:
    """The overrides of a request.

    Raises:
        ValidationException: vector indexes are not supported.
    """
    if request.VectorIndexOverride:
        raise ValidationException("VectorIndexes are not supported yet")
    local, of_all = request.LocalSecondaryIndexOverride, request.GlobalSecondaryIndexOverride
    return RestoreOverrides(
        billing_mode=request.BillingModeOverride,
        throughput=throughput(request.ProvisionedThroughputOverride),
        on_demand_throughput=given(request.OnDemandThroughputOverride),
        sse_specification=given(request.SSESpecificationOverride),
        local_indexes=None if local is None else tuple(map(new_local_index, local)),
        global_indexes=None if of_all is None else tuple(map(new_global_index, of_all)),
    )
