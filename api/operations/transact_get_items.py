"""TransactGetItems."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from dynactor.actors.database.database import Database
from dynactor.actors.table.table import Table
from dynactor.actors.transactions.coordinator import TableKey, table_key
from dynactor.api.access import data_asks
from dynactor.api.answers.item_answers import EMPTY, array_member, joined, projected
from dynactor.api.execution.operation import WRITE_FAULTS, Effect, Location, Operation
from dynactor.api.execution.transaction_requests import (
    Cancelling,
    capacity_members,
    check_distinct,
    checked_size_bytes,
    read_items,
)
from dynactor.api.requests import inputs
from dynactor.api.requests.call import Call
from dynactor.api.requests.expression_members import check_together, read_placeholders
from dynactor.api.requests.inputs import TransactGetItemsInput
from dynactor.api.requests.table_arn import table_name
from dynactor.model.errors import ValidationException
from dynactor.model.expressions.key_paths import check_scalar_keys
from dynactor.model.expressions.projection import Projector, parse_projection
from dynactor.model.tables.key_rules import check_key, check_key_not_empty
from dynactor.model.values.stored_item import StoredItem


class _ParsedGet(NamedTuple):
    request: inputs.GetShape
    projector: Projector | None
    # The attributes in which the projection reads nested values.
    nested: set[str]


async def handle(call: Call[TransactGetItemsInput]) -> bytes:
    """Read items of several tables in one snapshot."""
    request = call.request
    gets = [_parsed(one.Get) for one in request.TransactItems]
    reads = await read_items(call, _checked(call.database, gets))
    responses = [
        _response(read.stored, get.projector) for get, read in zip(gets, reads, strict=True)
    ]
    members = capacity_members(
        [get.request.TableName for get in gets],
        [read.receipt(consistent=True) for read in reads],
        request.ReturnConsumedCapacity,
        "ReadCapacityUnits",
    )
    members.append(array_member(b"Responses", responses))
    return joined(members)


def _response(stored: StoredItem | None, projector: Projector | None) -> bytes:
    """One item's response; empty if the projection selects none of the item's attributes."""
    shown = EMPTY if stored is None else projected(stored, projector)
    return EMPTY if shown == EMPTY else joined([b'"Item":' + shown])


def _parsed(get: inputs.GetShape) -> _ParsedGet:
    check_together(get)
    checked_size_bytes(get.Key, partial(_bound, get))
    return _bound(get)


def _bound(get: inputs.GetShape) -> _ParsedGet:
    placeholders = read_placeholders(get)
    projector = None
    if get.ProjectionExpression is not None:
        projector = parse_projection(get.ProjectionExpression, placeholders)
    placeholders.check_all_used()
    return _ParsedGet(get, projector, placeholders.nested)


def _checked(database: Database, gets: Sequence[_ParsedGet]) -> list[TableKey]:
    tables = [database.table(table_name(get.request.TableName)) for get in gets]
    for get, table in zip(gets, tables, strict=True):
        check_scalar_keys(table.definition, get.nested)
        check_key_not_empty(table.definition.key_schema, get.request.Key)
    cancelling = Cancelling(len(gets))
    wanted = []
    for ordinal, (get, table) in enumerate(zip(gets, tables, strict=True)):
        try:
            wanted.append(_key(get, table))
        except ValidationException as fault:
            cancelling.note(ordinal, fault)
    check_distinct(wanted)
    if cancelling.error is not None:
        raise cancelling.error
    return wanted


def _key(get: _ParsedGet, table: Table) -> TableKey:
    check_key(table.definition.key_schema, get.request.Key)
    return table_key(table, get.request.Key)


OPERATION = Operation(
    TransactGetItemsInput,
    handle,
    asks=data_asks.transact_get_items,
    effect=Effect.READS,
    location=Location.HOME,
    faults=WRITE_FAULTS,
    is_transaction=True,
)
