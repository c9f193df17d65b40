"""BatchGetItem."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from msgspec import Struct, field, json

from actors.database import Database
from actors.table import Table
from api import shapes, structures
from api.arn import table_name
from api.item_answers import joined, projected
from api.item_requests import check_together, placeholders_of, projector_of
from api.operation import Call, Operation
from model import item as items
from model.capacity import Receipt, consumed_capacity
from model.errors import Throttled, ValidationException
from model.expressions.key_paths import check_scalar_keys
from model.expressions.projection import Projector
from model.item import Item
from model.key_rules import check_key
from model.limits import BATCH_GET_KEYS, BATCH_GET_RESPONSE_BYTES

# A hundred items of 400 KB are more than twice what an answer holds.
_KEYS_AT_ONCE: Final = 10
_NO_ROOM: Final = -1


class BatchGetItemInput(structures.Shape, frozen=True):
    """The members of BatchGetItem."""

    RequestItems: structures.BatchGetRequests
    ReturnConsumedCapacity: shapes.ReturnConsumedCapacity | None = None


class _TableGets(NamedTuple):
    """What is asked of one table; ``given_name`` is how the request names it."""

    given_name: str
    name: str
    request: structures.KeysAndAttributesShape
    projector: Projector | None
    # The attributes that the projection looks into.
    nested: set[str]


class _Outcome(Struct):
    """What was read of one table, and what was not."""

    # That of the answer's 16 MB which is left; below 0 once an item did not fit.
    room_bytes: int
    is_read: bool = False
    found: list[bytes] = field(default_factory=list)
    read_units: float = 0.0
    keys_left: list[Item] = field(default_factory=list)
    refusal: Throttled | None = None


async def handle(call: Call[BatchGetItemInput]) -> bytes:
    """Read items of several tables, each at the price of a GetItem.

    Keys refused for want of capacity, and those left once the answer holds 16 MB, are given
    back as UnprocessedKeys; only if all are refused, the batch fails.
    """
    request = call.request
    gets = _checked(request)
    tables = [_checked_table(call.database, of_table) for of_table in gets]
    outcomes = []
    room_bytes = BATCH_GET_RESPONSE_BYTES
    for of_table, table in zip(gets, tables, strict=True):
        outcome = await _read(call, of_table, table, room_bytes)
        room_bytes = outcome.room_bytes
        outcomes.append(outcome)
    if not any(outcome.is_read for outcome in outcomes):
        raise next(outcome.refusal for outcome in outcomes if outcome.refusal)
    responses = [
        json.encode(of_table.given_name) + b":[" + b",".join(outcome.found) + b"]"
        for of_table, outcome in zip(gets, outcomes, strict=True)
    ]
    unprocessed = {
        of_table.given_name: _rest(of_table.request, outcome.keys_left)
        for of_table, outcome in zip(gets, outcomes, strict=True)
        if outcome.keys_left
    }
    members = [
        b'"Responses":' + joined(responses),
        b'"UnprocessedKeys":' + json.encode(unprocessed),
    ]
    consumed = [
        consumed_capacity(
            of_table.name,
            Receipt(read_units=outcome.read_units),
            request.ReturnConsumedCapacity,
        )
        for of_table, outcome in zip(gets, outcomes, strict=True)
    ]
    if any(consumed):
        members.append(b'"ConsumedCapacity":' + json.encode(consumed))
    return joined(members)


async def _read(
    call: Call[BatchGetItemInput], of_table: _TableGets, table: Table, room_bytes: int
) -> _Outcome:
    """Read what is admitted and fits into the room of an answer; nothing behind that."""
    outcome = _Outcome(room_bytes)
    keys_wanted = of_table.request.Keys
    consistent = bool(of_table.request.ConsistentRead)
    while keys_wanted and outcome.room_bytes >= 0:
        asked = keys_wanted[:_KEYS_AT_ONCE]
        reads = await table.get_many(asked, consistent=consistent, room_bytes=outcome.room_bytes)
        for key, read in zip(asked, reads, strict=False):
            if isinstance(read, Throttled):
                outcome.keys_left.append(key)
                outcome.refusal = read
                continue
            outcome.is_read = True
            outcome.read_units += read.units
            if call.paid is not None:
                call.note(table.definition, read.receipt(consistent=consistent))
            if read.stored is not None:
                outcome.room_bytes -= read.stored.size_bytes
                outcome.found.append(projected(read.stored, of_table.projector))
        keys_wanted = keys_wanted[len(reads) :]
        if len(reads) < len(asked):
            outcome.room_bytes = _NO_ROOM
    outcome.keys_left += keys_wanted
    return outcome


def _checked(request: BatchGetItemInput) -> list[_TableGets]:
    """Check all that needs no table."""
    gets = []
    keys_count = 0
    for given_name, of_table in request.RequestItems.items():
        name = table_name(given_name)
        check_together(of_table)
        placeholders = placeholders_of(of_table)
        projector = projector_of(of_table, placeholders)
        placeholders.check_all_used()
        _check_keys(of_table.Keys)
        keys_count += len(of_table.Keys)
        if keys_count > BATCH_GET_KEYS:
            raise ValidationException("Too many items requested for the BatchGetItem call")
        gets.append(_TableGets(given_name, name, of_table, projector, placeholders.nested))
    return gets


def _check_keys(wanted: list[Item]) -> None:
    """Check the values of keys, and that none stands twice, whatever the table's key is."""
    for key in wanted:
        items.check(key)
    if len({json.encode(key, order="sorted") for key in wanted}) < len(wanted):
        raise ValidationException("Provided list of item keys contains duplicates")


def _checked_table(database: Database, of_table: _TableGets) -> Table:
    table = database.table(of_table.name)
    schema = table.definition.key_schema
    for key in of_table.request.Keys:
        check_key(schema, key)
    check_scalar_keys(table.definition, of_table.nested)
    return table


def _rest(request: structures.KeysAndAttributesShape, keys_left: list[Item]) -> dict[str, Any]:
    """A request for the keys that were not read, ready to be sent again."""
    rest: dict[str, Any] = {
        name: value
        for name in (
            "AttributesToGet",
            "ConsistentRead",
            "ProjectionExpression",
            "ExpressionAttributeNames",
        )
        if (value := getattr(request, name)) is not None
    }
    return {"Keys": keys_left, **rest}


OPERATION = Operation("BatchGetItem", BatchGetItemInput, handle)
