"""UpdateItem."""

from __future__ import annotations

from dynactor.api.access import data_asks
from dynactor.api.answers.item_answers import write_answer
from dynactor.api.execution.operation import WRITE_FAULTS, Location, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.expression_members import (
    check_together,
    read_condition,
    read_placeholders,
    read_update,
)
from dynactor.api.requests.inputs import UpdateItemInput
from dynactor.api.requests.table_arn import table_name
from dynactor.api.requests.validation_errors import NEWER_WRITES, marks_request_errors
from dynactor.model.expressions.key_paths import check_scalar_keys
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.expressions.update_size import check_expression_size
from dynactor.model.tables.key_rules import check_index_key_types, check_key, check_no_key_updated
from dynactor.model.values import item as items
from dynactor.model.writes.write import Update


async def handle(call: Call[UpdateItemInput]) -> bytes:
    """Update an item, or create a missing one."""
    request = call.request
    name = table_name(request.TableName)
    update, placeholders = _parsed(request)
    table = call.database.table(name)
    definition = table.definition
    schema = definition.key_schema
    parts = table.encode_parts(request.Key)
    if parts is None or len(request.Key) != len(schema.attributes):
        check_key(schema, request.Key)
    if update.update is not None:
        check_no_key_updated(schema, update.update.attributes)
        if definition.local_indexes or definition.global_indexes:
            check_index_key_types(definition, update.update.static_types)
    check_scalar_keys(definition, placeholders.nested)
    if request.UpdateExpression is not None and update.update is not None:
        check_expression_size(request.UpdateExpression, update.update, placeholders.size_bytes)
    return write_answer(
        table_name=name,
        schema=schema,
        key=request.Key,
        written=await call.noting(definition, table.submit(update, parts)),
        return_capacity=request.ReturnConsumedCapacity,
        return_metrics=request.ReturnItemCollectionMetrics,
    )


@marks_request_errors
def _parsed(request: UpdateItemInput) -> tuple[Update, Placeholders]:
    """Parse the update; returns also its placeholders, which are checked."""
    check_together(request)
    items.check(request.Key)
    placeholders = read_placeholders(request)
    wanted = read_update(request.UpdateExpression, request.AttributeUpdates, placeholders)
    update = Update(
        request.Key,
        update=wanted,
        condition=read_condition(request, placeholders),
        return_values=request.ReturnValues or "NONE",
        return_item_on_failure=request.ReturnValuesOnConditionCheckFailure == "ALL_OLD",
    )
    placeholders.check_all_used()
    return update, placeholders


OPERATION = Operation(
    UpdateItemInput,
    handle,
    asks=data_asks.change_item,
    location=Location.HOME,
    layer=NEWER_WRITES,
    faults=WRITE_FAULTS,
)
