"""TransactWriteItems."""

from __future__ import annotations

from functools import partial
from typing import Final, TypeAlias

from dynactor.api.access import data_asks
from dynactor.api.answers.item_answers import joined
from dynactor.api.execution.operation import WRITE_FAULTS, Location, Operation
from dynactor.api.execution.transaction_requests import (
    ParsedAction,
    capacity_members,
    checked_actions,
    checked_size_bytes,
    digest,
    execute,
    metrics_members,
)
from dynactor.api.requests import inputs, shapes
from dynactor.api.requests.call import Call
from dynactor.api.requests.expression_members import check_together, is_plain, read_placeholders
from dynactor.api.requests.inputs import TransactWriteItemsInput
from dynactor.model.definitions.index import check_size_with_entries
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import ValidationException
from dynactor.model.expressions.condition import Condition
from dynactor.model.expressions.condition_binding import parse_condition
from dynactor.model.expressions.key_paths import check_scalar_keys
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.expressions.update import parse_update
from dynactor.model.tables.key_rules import (
    check_index_key_types,
    check_index_keys,
    check_index_keys_not_empty,
    check_item_key,
    check_key,
    check_key_not_empty,
    check_no_key_updated,
)
from dynactor.model.values import item as items
from dynactor.model.values.item import Item
from dynactor.model.writes.transaction import Check
from dynactor.model.writes.write import Delete, Put, Update

_Action: TypeAlias = (
    inputs.PutShape | inputs.UpdateShape | inputs.DeleteShape | inputs.ConditionCheckShape
)

# Number of kinds of actions.
_KINDS: Final = 4


async def handle(call: Call[TransactWriteItemsInput]) -> bytes:
    """Execute all actions or none; the answer is sent when they are durable."""
    request = call.request
    # Compute the digest before values are made canonical in place, because a retry is compared with
    # the request as it was sent.
    token = request.ClientRequestToken
    content = None if token is None else digest(request.TransactItems)
    parsed = [_parsed(one) for one in request.TransactItems]
    checked = checked_actions(call.database, parsed)
    written = await execute(call, checked, token, content)
    members = capacity_members(
        checked.given_names, written.receipts, request.ReturnConsumedCapacity, written.repeated_as
    )
    members += metrics_members(checked, written.outcomes, request.ReturnItemCollectionMetrics)
    return joined(members)


def _parsed(one: inputs.TransactWriteItemShape) -> ParsedAction:
    action = one.Put or one.Update or one.Delete or one.ConditionCheck
    if action is None:
        raise ValidationException(
            "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request"
        )
    if (one.Put, one.Update, one.Delete, one.ConditionCheck).count(None) < _KINDS - 1:
        raise ValidationException(
            "TransactItems can only contain one of Check, Put, Update or Delete"
        )
    if action.ExpressionAttributeNames is not None or action.ExpressionAttributeValues is not None:
        # Without expressions and legacy parameters there is no combination to check.
        check_together(action)
    match action:
        case inputs.PutShape():
            return _put(action)
        case inputs.UpdateShape():
            return _update(action)
        case inputs.DeleteShape():
            return _delete(action)
        case inputs.ConditionCheckShape():
            return _check(action)


def _put(request: inputs.PutShape) -> ParsedAction:
    item = request.Item
    size_bytes = checked_size_bytes(item, partial(_check_expressions, request))
    items.check_size(size_bytes)
    if is_plain(request):
        write_on = partial(_put_on, Put(item, size_bytes))
        check = partial(_check_item_not_empty, item)
        return ParsedAction(request.TableName, size_bytes, check, write_on, item)
    placeholders = read_placeholders(request)
    put = Put(
        item,
        size_bytes,
        condition=_condition(request.ConditionExpression, placeholders),
        return_item_on_failure=request.ReturnValuesOnConditionCheckFailure == "ALL_OLD",
    )
    placeholders.check_all_used()
    return ParsedAction(
        request.TableName,
        size_bytes + _values_bytes(request.ExpressionAttributeValues),
        partial(_check_item_and_paths, item, placeholders),
        partial(_put_on, put),
        item,
    )


def _put_on(put: Put, definition: TableDefinition, is_key_checked: bool) -> Put:
    item = put.item
    if not is_key_checked:
        check_item_key(definition.key_schema, item)
    check_index_keys(definition, item)
    check_size_with_entries(definition.local_indexes, definition.key_schema, item, put.size_bytes)
    return put


def _update(request: inputs.UpdateShape) -> ParsedAction:
    size_bytes = checked_size_bytes(request.Key, partial(_check_expressions, request))
    placeholders = read_placeholders(request)
    update = Update(
        request.Key,
        update=parse_update(request.UpdateExpression, placeholders),
        condition=_condition(request.ConditionExpression, placeholders),
        return_item_on_failure=request.ReturnValuesOnConditionCheckFailure == "ALL_OLD",
    )
    placeholders.check_all_used()
    return ParsedAction(
        request.TableName,
        size_bytes + _values_bytes(request.ExpressionAttributeValues),
        partial(_check_update, update, placeholders),
        partial(_update_on, update),
    )


def _update_on(
    update: Update,
    definition: TableDefinition,
    _is_key_checked: bool,
) -> Update:
    check_key(definition.key_schema, update.key)
    assert update.update is not None
    check_no_key_updated(definition.key_schema, update.update.attributes)
    check_index_key_types(definition, update.update.static_types)
    return update


def _delete(request: inputs.DeleteShape) -> ParsedAction:
    size_bytes = checked_size_bytes(request.Key, partial(_check_expressions, request))
    placeholders = read_placeholders(request)
    delete = Delete(
        request.Key,
        condition=_condition(request.ConditionExpression, placeholders),
        return_item_on_failure=request.ReturnValuesOnConditionCheckFailure == "ALL_OLD",
    )
    placeholders.check_all_used()
    return ParsedAction(
        request.TableName,
        size_bytes + _values_bytes(request.ExpressionAttributeValues),
        partial(_check_key_and_paths, request.Key, placeholders),
        partial(_by_key_on, delete),
    )


def _check(request: inputs.ConditionCheckShape) -> ParsedAction:
    size_bytes = checked_size_bytes(request.Key, partial(_check_expressions, request))
    placeholders = read_placeholders(request)
    check = Check(
        request.Key,
        parse_condition(request.ConditionExpression, placeholders, kind="ConditionExpression"),
        return_item_on_failure=request.ReturnValuesOnConditionCheckFailure == "ALL_OLD",
    )
    placeholders.check_all_used()
    return ParsedAction(
        request.TableName,
        size_bytes + _values_bytes(request.ExpressionAttributeValues),
        partial(_check_key_and_paths, request.Key, placeholders),
        partial(_by_key_on, check),
    )


def _by_key_on(
    write: Delete | Check,
    definition: TableDefinition,
    _is_key_checked: bool,
) -> Delete | Check:
    check_key(definition.key_schema, write.key)
    return write


# An empty key value fails the request, and is not a cancellation reason of its action. Recorded
# from AWS for the table's key, and from DynamoDB Local 3.3 for keys of indexes.
def _check_item_not_empty(item: Item, definition: TableDefinition) -> None:
    check_key_not_empty(definition.key_schema, item)
    check_index_keys_not_empty(definition, item, updated=False)


def _check_item_and_paths(
    item: Item, placeholders: Placeholders, definition: TableDefinition
) -> None:
    check_scalar_keys(definition, placeholders.nested)
    _check_item_not_empty(item, definition)


def _check_key_and_paths(
    key: Item, placeholders: Placeholders, definition: TableDefinition
) -> None:
    check_scalar_keys(definition, placeholders.nested)
    check_key_not_empty(definition.key_schema, key)


def _check_update(update: Update, placeholders: Placeholders, definition: TableDefinition) -> None:
    _check_key_and_paths(update.key, placeholders, definition)
    assert update.update is not None
    check_index_keys_not_empty(definition, update.update.literals, updated=True)


def _check_expressions(action: _Action) -> None:
    """Raise the error of an action's expressions, if any."""
    placeholders = read_placeholders(action)
    if isinstance(action, inputs.UpdateShape):
        parse_update(action.UpdateExpression, placeholders)
    _condition(action.ConditionExpression, placeholders)
    placeholders.check_all_used()


def _condition(expression: str | None, placeholders: Placeholders) -> Condition | None:
    if expression is None:
        return None
    return parse_condition(expression, placeholders, kind="ConditionExpression")


def _values_bytes(values: shapes.ExpressionAttributeValues | None) -> int:
    return items.size_bytes(values) if values else 0


OPERATION = Operation(
    TransactWriteItemsInput,
    handle,
    asks=data_asks.transact_write_items,
    location=Location.HOME,
    faults=WRITE_FAULTS,
    is_transaction=True,
)
