"""DeleteItem."""

from __future__ import annotations

from dynactor.api.access import data_asks
from dynactor.api.answers.item_answers import write_answer
from dynactor.api.execution.operation import WRITE_FAULTS, Location, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.expression_members import (
    check_together,
    read_condition,
    read_placeholders,
)
from dynactor.api.requests.inputs import DeleteItemInput
from dynactor.api.requests.table_arn import table_name
from dynactor.api.requests.validation_errors import NEWER_WRITES, marks_request_errors
from dynactor.model.errors import ValidationException
from dynactor.model.expressions.key_paths import check_scalar_keys
from dynactor.model.tables.key_rules import check_key
from dynactor.model.values import item as items
from dynactor.model.writes.write import Delete


async def handle(call: Call[DeleteItemInput]) -> bytes:
    """Delete an item; deleting a missing one succeeds."""
    request = call.request
    name = table_name(request.TableName)
    delete, nested = _parsed(request)
    table = call.database.table(name)
    schema = table.definition.key_schema
    parts = table.encode_parts(request.Key)
    if parts is None or len(request.Key) != len(schema.attributes):
        check_key(schema, request.Key)
    check_scalar_keys(table.definition, nested)
    return write_answer(
        table_name=name,
        schema=schema,
        key=request.Key,
        written=await call.noting(table.definition, table.submit(delete, parts)),
        return_capacity=request.ReturnConsumedCapacity,
        return_metrics=request.ReturnItemCollectionMetrics,
    )


@marks_request_errors
def _parsed(request: DeleteItemInput) -> tuple[Delete, set[str]]:
    """Parse the delete, and the attributes whose nested values its condition reads."""
    check_together(request)
    items.check(request.Key)
    if request.ReturnValues not in (None, "NONE", "ALL_OLD"):
        raise ValidationException("ReturnValues can only be ALL_OLD or NONE")
    placeholders = read_placeholders(request)
    delete = Delete(
        request.Key,
        condition=read_condition(request, placeholders),
        return_values=request.ReturnValues or "NONE",
        return_item_on_failure=request.ReturnValuesOnConditionCheckFailure == "ALL_OLD",
    )
    placeholders.check_all_used()
    return delete, placeholders.nested


OPERATION = Operation(
    DeleteItemInput,
    handle,
    asks=data_asks.change_item,
    location=Location.HOME,
    layer=NEWER_WRITES,
    faults=WRITE_FAULTS,
)
