"""PutItem."""

from __future__ import annotations

from dynactor.api.access import data_asks
from dynactor.api.answers.item_answers import write_answer
from dynactor.api.execution.operation import WRITE_FAULTS, Location, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.expression_members import (
    check_together,
    is_plain,
    read_condition,
    read_placeholders,
)
from dynactor.api.requests.inputs import PutItemInput
from dynactor.api.requests.table_arn import table_name
from dynactor.api.requests.validation_errors import NEWER_WRITES, marks_request_errors
from dynactor.model.definitions.index import check_size_with_entries
from dynactor.model.errors import ValidationException
from dynactor.model.expressions.condition import Condition
from dynactor.model.expressions.key_paths import check_scalar_keys
from dynactor.model.tables.key_rules import check_index_keys, check_item_key
from dynactor.model.values import item as items
from dynactor.model.writes.write import Put


async def handle(call: Call[PutItemInput]) -> bytes:
    """Put an item; the answer is sent when the item is durable."""
    request = call.request
    item = request.Item
    name = table_name(request.TableName)
    # Most puts have no expression to bind.
    is_bare = is_plain(request)
    size_bytes = _checked_size(request, is_bare=is_bare)
    items.check_size(size_bytes)
    condition, nested = (None, None) if is_bare else _condition(request)
    put = Put(
        item,
        size_bytes,
        condition,
        request.ReturnValues or "NONE",
        request.ReturnValuesOnConditionCheckFailure == "ALL_OLD",
    )
    table = call.database.table(name)
    definition = table.definition
    schema = definition.key_schema
    parts = table.encode_parts(item)
    if parts is None:
        check_item_key(schema, item)
    if nested:
        check_scalar_keys(definition, nested)
    check_index_keys(definition, item)
    check_size_with_entries(definition.local_indexes, schema, item, size_bytes)
    return write_answer(
        table_name=name,
        schema=schema,
        key=item,
        written=await call.noting(definition, table.submit(put, parts)),
        return_capacity=request.ReturnConsumedCapacity,
        return_metrics=request.ReturnItemCollectionMetrics,
    )


@marks_request_errors
def _checked_size(request: PutItemInput, *, is_bare: bool) -> int:
    """Check everything but the condition; returns the item's size in bytes."""
    if not is_bare:
        check_together(request)
    size_bytes = items.check(request.Item)
    if request.ReturnValues not in (None, "NONE", "ALL_OLD"):
        raise ValidationException("ReturnValues can only be ALL_OLD or NONE")
    return size_bytes


@marks_request_errors
def _condition(request: PutItemInput) -> tuple[Condition | None, set[str]]:
    """Parse the condition, and the attributes whose nested values it reads."""
    placeholders = read_placeholders(request)
    condition = read_condition(request, placeholders)
    placeholders.check_all_used()
    return condition, placeholders.nested


OPERATION = Operation(
    PutItemInput,
    handle,
    asks=data_asks.put_item,
    location=Location.HOME,
    layer=NEWER_WRITES,
    faults=WRITE_FAULTS,
)
