"""PutItem."""

from __future__ import annotations

from api import shapes, structures
from api.arn import table_name
from api.item_answers import write_answer
from api.item_requests import check_together, condition_of, placeholders_of
from api.operation import Call, Operation
from model import item as items
from model.errors import ValidationException
from model.expressions.key_paths import check_scalar_keys
from model.index import check_size_with_entries
from model.key_rules import check_index_keys, check_item_key
from model.write import Put


class PutItemInput(structures.Shape, frozen=True):
    """The members of PutItem."""

    TableName: shapes.TableName
    Item: shapes.AttributeMap
    Expected: dict[str, structures.ExpectedAttributeValueShape] | None = None
    ReturnValues: shapes.ReturnValue | None = None
    ReturnConsumedCapacity: shapes.ReturnConsumedCapacity | None = None
    ReturnItemCollectionMetrics: shapes.ReturnItemCollectionMetrics | None = None
    ConditionalOperator: shapes.ConditionalOperator | None = None
    ConditionExpression: str | None = None
    ExpressionAttributeNames: shapes.ExpressionAttributeNames | None = None
    ExpressionAttributeValues: shapes.ExpressionAttributeValues | None = None
    ReturnValuesOnConditionCheckFailure: shapes.ReturnValuesOnConditionCheckFailure | None = None


async def handle(call: Call[PutItemInput]) -> bytes:
    """Put an item; the answer goes out when it is durable."""
    request = call.request
    name = table_name(request.TableName)
    check_together(request)
    size_bytes = items.check(request.Item)
    if request.ReturnValues not in (None, "NONE", "ALL_OLD"):
        raise ValidationException("ReturnValues can only be ALL_OLD or NONE")
    items.check_size(size_bytes)
    placeholders = placeholders_of(request)
    put = Put(
        request.Item,
        size_bytes,
        condition=condition_of(request, placeholders),
        return_values=request.ReturnValues or "NONE",
        return_item_on_failure=request.ReturnValuesOnConditionCheckFailure == "ALL_OLD",
    )
    placeholders.check_all_used()
    table = call.database.table(name)
    schema = table.definition.key_schema
    check_item_key(schema, request.Item)
    check_scalar_keys(table.definition, placeholders.nested)
    check_index_keys(table.definition, request.Item)
    check_size_with_entries(table.definition.local_indexes, schema, request.Item, size_bytes)
    return write_answer(
        table_name=name,
        schema=schema,
        key=request.Item,
        written=await call.noting(table.definition, table.submit(put)),
        return_capacity=request.ReturnConsumedCapacity,
        return_metrics=request.ReturnItemCollectionMetrics,
    )


OPERATION = Operation("PutItem", PutItemInput, handle)
