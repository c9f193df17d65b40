"""BatchGetItem."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct, field, json

from dynactor.actors.database.database import Database
from dynactor.actors.table.batch_reads import BatchPart, BatchRead, read_items
from dynactor.actors.table.table import ItemRead, Table
from dynactor.api.access import data_asks
from dynactor.api.answers.item_answers import joined, projected
from dynactor.api.execution.operation import BATCH_FAULTS, Effect, Location, Operation
from dynactor.api.requests import as_of, inputs
from dynactor.api.requests.call import Call
from dynactor.api.requests.expression_members import (
    check_together,
    is_plain,
    read_placeholders,
    read_projector,
)
from dynactor.api.requests.inputs import BatchGetItemInput
from dynactor.api.requests.table_arn import table_name
from dynactor.api.requests.validation_errors import NEWER_READS
from dynactor.model.capacity import Receipt, consumed_capacity
from dynactor.model.errors import Throttled, ValidationException
from dynactor.model.expressions.key_paths import check_scalar_keys
from dynactor.model.expressions.parameters import check_parameters
from dynactor.model.expressions.projection import Projector
from dynactor.model.keys import key as keys
from dynactor.model.limits import BATCH_GET_KEYS
from dynactor.model.reads.batch_get_budget import BatchGetBudget
from dynactor.model.tables.key_rules import check_key
from dynactor.model.values import item as items
from dynactor.model.values.item import Item


class _TableGets(NamedTuple):
    """The checked keys of one table; ``given_name`` is the name in the request."""

    given_name: str
    request: inputs.KeysAndAttributesShape
    table: Table
    # One key for each item, even if the request names an item twice with other spellings.
    wanted: list[Item]
    positions: list[bytes]
    projector: Projector | None = None


class _Parsed(NamedTuple):
    """The parts of a request about one table that can be checked without the table."""

    given_name: str
    name: str
    request: inputs.KeysAndAttributesShape
    projector: Projector | None
    # The attributes in which the projection reads nested values.
    nested: set[str]


class _ReadOutcome(Struct):
    """The items of one table that were read, and the keys that were not read."""

    is_read: bool = False
    found: list[bytes] = field(default_factory=list)
    read_units: float = 0.0
    keys_left: list[Item] = field(default_factory=list)
    refusal: Throttled | None = None


async def handle(call: Call[BatchGetItemInput]) -> bytes:
    """Read items of several tables; each read costs the units of a GetItem.

    UnprocessedKeys has the throttled keys, and the keys whose items don't fit into the answer
    (``BatchGetBudget``). The batch fails only if every key was throttled.
    """
    request = call.request
    gets = _fast_checked(call) or _checked(call)
    parts = [
        BatchPart(each.table, each.positions, each.request.ConsistentRead is True) for each in gets
    ]
    if call.as_of_epoch_seconds is None:
        reads = await read_items(parts, BatchGetBudget())
    else:
        reads = await _read_past(call, parts)
    outcomes = [
        _outcome(call, table_gets, table_reads)
        for table_gets, table_reads in zip(gets, reads, strict=True)
    ]
    if not any(outcome.is_read for outcome in outcomes):
        raise next(outcome.refusal for outcome in outcomes if outcome.refusal)
    responses = [
        b"%b:[%b]" % (json.encode(table_gets.given_name), b",".join(outcome.found))
        for table_gets, outcome in zip(gets, outcomes, strict=True)
    ]
    unprocessed = {
        table_gets.given_name: _rest(table_gets.request, outcome.keys_left)
        for table_gets, outcome in zip(gets, outcomes, strict=True)
        if outcome.keys_left
    }
    members = [
        b'"Responses":%b' % joined(responses),
        b'"UnprocessedKeys":' + json.encode(unprocessed),
    ]
    consumed = [
        consumed_capacity(
            table_gets.table.definition.name,
            Receipt(read_units=outcome.read_units),
            request.ReturnConsumedCapacity,
        )
        for table_gets, outcome in zip(gets, outcomes, strict=True)
    ]
    if any(consumed):
        members.append(b'"ConsumedCapacity":' + json.encode(consumed))
    return joined(members)


async def _read_past(
    call: Call[BatchGetItemInput], parts: Sequence[BatchPart]
) -> list[list[BatchRead]]:
    as_of.refuse_consistent(consistent=any(part.consistent for part in parts))
    async with as_of.past_views(call, [part.table for part in parts]) as views:
        past = [part._replace(past=view) for part, view in zip(parts, views, strict=True)]
        return await read_items(past, BatchGetBudget())


def _outcome(
    call: Call[BatchGetItemInput], table_gets: _TableGets, reads: Sequence[BatchRead]
) -> _ReadOutcome:
    outcome = _ReadOutcome()
    consistent = table_gets.request.ConsistentRead is True
    for at, read in enumerate(reads):
        if isinstance(read, ItemRead):
            outcome.is_read = True
            outcome.read_units += read.units
            if call.paid is not None:
                call.note(table_gets.table.definition, read.receipt(consistent=consistent))
            if read.stored is not None:
                outcome.found.append(projected(read.stored, table_gets.projector))
            continue
        outcome.keys_left.append(table_gets.wanted[at])
        outcome.refusal = read or outcome.refusal
    return outcome


def _fast_checked(call: Call[BatchGetItemInput]) -> list[_TableGets] | None:
    """The checked gets, if all are valid, have typical keys and read whole items; else None."""
    gets = []
    keys_count = 0
    for given_name, table_gets in call.request.RequestItems.items():
        table = call.database.usable_table(given_name)
        if table is None or not is_plain(table_gets):
            return None
        encode_position = table.encode_position
        positions = []
        for key in table_gets.Keys:
            position = encode_position(key)
            if position is None:
                return None
            positions.append(position)
        keys_count += len(positions)
        if keys_count > BATCH_GET_KEYS or len(set(positions)) < len(positions):
            return None
        gets.append(_TableGets(given_name, table_gets, table, table_gets.Keys, positions))
    return gets


def _checked(call: Call[BatchGetItemInput]) -> list[_TableGets]:
    """Check a request that the fast path did not accept, in DynamoDB's order."""
    return [_with_table(call.database, table_gets) for table_gets in _parsed(call.request)]


def _parsed(request: BatchGetItemInput) -> list[_Parsed]:
    """Check everything that does not need the table."""
    _check_projections(request)
    gets = []
    keys_count = 0
    for given_name, table_gets in request.RequestItems.items():
        name = table_name(given_name)
        placeholders = read_placeholders(table_gets)
        projector = read_projector(table_gets, placeholders)
        placeholders.check_all_used()
        _check_keys(table_gets.Keys)
        keys_count += len(table_gets.Keys)
        if keys_count > BATCH_GET_KEYS:
            raise ValidationException("Too many items requested for the BatchGetItem call")
        gets.append(_Parsed(given_name, name, table_gets, projector, placeholders.nested))
    return gets


def _check_projections(request: BatchGetItemInput) -> None:
    """Refuse a batch with both AttributesToGet and ProjectionExpression, even for different tables.

    Raises ``ValidationException`` if the batch has both.
    """
    for table_gets in request.RequestItems.values():
        check_together(table_gets)
    tables = request.RequestItems.values()
    check_parameters(
        {"ProjectionExpression": _first(table_gets.ProjectionExpression for table_gets in tables)},
        {"AttributesToGet": _first(table_gets.AttributesToGet for table_gets in tables)},
        None,
    )


_T = TypeVar("_T")


def _first(given: Iterable[_T | None]) -> _T | None:
    return next((each for each in given if each is not None), None)


def _check_keys(wanted: list[Item]) -> None:
    """Check the values of keys, and refuse duplicates, without the table's key schema.

    A key with two spellings of one number is no duplicate; its item is read once.
    """
    as_written = {json.encode(key, order="sorted") for key in wanted}
    for key in wanted:
        items.check(key)
    if len(as_written) < len(wanted):
        raise ValidationException("Provided list of item keys contains duplicates")


def _with_table(database: Database, parsed: _Parsed) -> _TableGets:
    table = database.table(parsed.name)
    schema = table.definition.key_schema
    for key in parsed.request.Keys:
        check_key(schema, key)
    check_scalar_keys(table.definition, parsed.nested)
    by_position: dict[bytes, Item] = {}
    for key in parsed.request.Keys:
        by_position.setdefault(keys.encode(schema, key), key)
    return _TableGets(
        parsed.given_name,
        parsed.request,
        table,
        list(by_position.values()),
        list(by_position),
        parsed.projector,
    )


def _rest(request: inputs.KeysAndAttributesShape, keys_left: list[Item]) -> dict[str, Any]:
    """The UnprocessedKeys of one table, which the client can send as a new request."""
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


OPERATION = Operation(
    BatchGetItemInput,
    handle,
    asks=data_asks.batch_get_item,
    effect=Effect.READS,
    location=Location.HOME,
    layer=NEWER_READS,
    reads_past=True,
    faults=BATCH_FAULTS,
    unprocessed_member="UnprocessedKeys",
)
