"""GetItem."""

from __future__ import annotations

from collections.abc import Awaitable

from dynactor.actors.table.table import ItemRead, Table
from dynactor.api.access import data_asks
from dynactor.api.answers.item_answers import EMPTY, capacity_member, joined, projected
from dynactor.api.execution.operation import DATA_FAULTS, Effect, Location, Operation
from dynactor.api.requests import as_of
from dynactor.api.requests.call import Call
from dynactor.api.requests.expression_members import (
    check_together,
    read_placeholders,
    read_projector,
)
from dynactor.api.requests.inputs import GetItemInput
from dynactor.api.requests.table_arn import table_name
from dynactor.api.requests.validation_errors import NEWER_READS
from dynactor.model.expressions.key_paths import check_scalar_keys
from dynactor.model.expressions.projection import Projector
from dynactor.model.keys import key as keys
from dynactor.model.tables.key_rules import check_key
from dynactor.model.values import item as items


def handle(call: Call[GetItemInput]) -> bytes | Awaitable[bytes]:
    """Read one item. Every read is strongly consistent; ConsistentRead changes only its price.

    An item in memory is answered at once, without an awaitable.
    """
    if call.as_of_epoch_seconds is not None:
        return _read_past(call)
    request = call.request
    table = call.database.usable_table(request.TableName)
    position = None
    if (
        table is not None
        and request.ProjectionExpression is None
        and request.AttributesToGet is None
        and request.ExpressionAttributeNames is None
    ):
        position = table.encode_position(request.Key)
    projector = None
    if table is None or position is None:
        table, position, projector = _checked(call)
    read = table.read_item(position, consistent=request.ConsistentRead is True)
    if isinstance(read, ItemRead):
        return _answer(call, table, read, projector)
    return _answer_later(call, table, read, projector)


async def _read_past(call: Call[GetItemInput]) -> bytes:
    table, position, projector = _checked(call)
    as_of.refuse_consistent(consistent=call.request.ConsistentRead)
    async with as_of.past_views(call, [table]) as (past,):
        read = await table.read_past_item(past, position)
    return _answer(call, table, read, projector)


def _checked(call: Call[GetItemInput]) -> tuple[Table, bytes, Projector | None]:
    """Check any request, in DynamoDB's order."""
    request = call.request
    name = table_name(request.TableName)
    check_together(request)
    items.check(request.Key)
    placeholders = read_placeholders(request)
    projector = read_projector(request, placeholders)
    placeholders.check_all_used()
    table = call.database.table(name)
    schema = table.definition.key_schema
    check_key(schema, request.Key)
    check_scalar_keys(table.definition, placeholders.nested)
    return table, keys.encode(schema, request.Key), projector


async def _answer_later(
    call: Call[GetItemInput], table: Table, read: Awaitable[ItemRead], projector: Projector | None
) -> bytes:
    return _answer(call, table, await read, projector)


def _answer(
    call: Call[GetItemInput], table: Table, read: ItemRead, projector: Projector | None
) -> bytes:
    request = call.request
    stored = read.stored
    found = None if stored is None else projected(stored, projector)
    if call.paid is None and request.ReturnConsumedCapacity is None:
        return EMPTY if found is None else b'{"Item":%b}' % found
    receipt = read.receipt(consistent=request.ConsistentRead is True)
    call.note(table.definition, receipt)
    members = [] if found is None else [b'"Item":' + found]
    members += capacity_member(table.definition.name, receipt, request.ReturnConsumedCapacity)
    return joined(members)


OPERATION = Operation(
    GetItemInput,
    handle,
    asks=data_asks.get_item,
    effect=Effect.READS,
    location=Location.HOME,
    layer=NEWER_READS,
    reads_past=True,
    faults=DATA_FAULTS,
)
