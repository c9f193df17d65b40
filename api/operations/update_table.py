"""UpdateTable."""

from __future__ import annotations

from typing import Final

from msgspec import json

from dynactor.actors.table.messages import UpdateTable
from dynactor.api.access import asks
from dynactor.api.answers.table_description import table_description
from dynactor.api.execution.operation import Location, Operation
from dynactor.api.requests import inputs
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import UpdateTableInput
from dynactor.api.requests.table_arn import table_name
from dynactor.api.requests.table_request import (
    attribute_definitions,
    given,
    new_global_index,
    stream_change,
    throughput,
)
from dynactor.model.errors import ValidationException, invalid_value
from dynactor.model.tables.global_index_rules import GlobalIndexUpdate
from dynactor.model.tables.table_edits import TableEdit, check_edit


async def handle(call: Call[UpdateTableInput]) -> bytes:
    """Change a table's settings. The changes apply before the answer, which shows UPDATING.

    The backfill of a new index starts after the answer.
    """
    request = call.request
    name = table_name(request.TableName)
    _refuse_unsupported(request)
    index_updates = request.GlobalSecondaryIndexUpdates or []
    _check_index_updates(index_updates)
    edit = TableEdit(
        billing_mode=request.BillingMode,
        throughput=throughput(request.ProvisionedThroughput),
        table_class=request.TableClass,
        deletion_protection=request.DeletionProtectionEnabled,
        sse_specification=given(request.SSESpecification),
        on_demand_throughput=given(request.OnDemandThroughput),
        warm_throughput=given(request.WarmThroughput),
        index_creates=tuple(
            new_global_index(change.Create) for change in index_updates if change.Create
        ),
        index_updates=tuple(
            _index_update(change.Update) for change in index_updates if change.Update
        ),
        index_deletes=tuple(change.Delete.IndexName for change in index_updates if change.Delete),
        attribute_definitions=attribute_definitions(request.AttributeDefinitions or []),
        stream=stream_change(request.StreamSpecification, call.database.clock.now_epoch_seconds()),
    )
    check_edit(edit)
    state = await call.database.ask(UpdateTable(name, edit))
    if call.database.settings.is_like_dynamodb_local:
        state = await call.database.describe(name)
    return json.encode({"TableDescription": table_description(call.database, state)})


_INDEX_ACTIONS: Final = (
    "GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, "
    "GlobalSecondaryIndexUpdate.Delete"
)


def _check_index_updates(updates: list[inputs.GlobalSecondaryIndexUpdateShape]) -> None:
    """Check that each entry has one action. The message for several actions is our own."""
    for update in updates:
        actions = sum(map(bool, (update.Update, update.Create, update.Delete)))
        if actions == 0:
            raise invalid_value(f"One of {_INDEX_ACTIONS} must not be null")
        if actions > 1:
            raise invalid_value(f"Only one of {_INDEX_ACTIONS} may be specified")


def _index_update(shape: inputs.UpdateGlobalSecondaryIndexActionShape) -> GlobalIndexUpdate:
    return GlobalIndexUpdate(
        shape.IndexName,
        throughput(shape.ProvisionedThroughput),
        given(shape.OnDemandThroughput),
        given(shape.WarmThroughput),
    )


def _refuse_unsupported(request: UpdateTableInput) -> None:
    refused = {
        "ReplicaUpdates": request.ReplicaUpdates,
        "MultiRegionConsistency": request.MultiRegionConsistency,
        "GlobalTableWitnessUpdates": request.GlobalTableWitnessUpdates,
        "GlobalTableSettingsReplicationMode": request.GlobalTableSettingsReplicationMode,
        "DisassociationProtectionEnabled": request.DisassociationProtectionEnabled,
        "VectorIndexUpdates": request.VectorIndexUpdates,
    }
    for name, value in refused.items():
        if value:
            raise ValidationException(f"{name} is not supported yet")


OPERATION = Operation(UpdateTableInput, handle, asks=asks.table, location=Location.HOME)
