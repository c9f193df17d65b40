"""Execution of PartiQL statements as queries, scans and writes.

Each statement becomes a checked ``Task``, which returns an ``StatementResult``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio
from msgspec import Struct, structs

from dynactor.actors.database.database import Database
from dynactor.actors.table.pages import ReadRange, read_page
from dynactor.actors.table.table import Table
from dynactor.api.execution.page_requests import (
    named_index,
    page_rules,
    query_start,
    scan_start,
)
from dynactor.api.requests.foreign_arns import named_table
from dynactor.model.capacity import Receipt, ReturnConsumedCapacity
from dynactor.model.definitions.index import IndexDefinition
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import (
    ConditionalCheckFailedException,
    DuplicateItemException,
    SerializationException,
    Throttled,
    ValidationException,
)
from dynactor.model.expressions.key_paths import check_scalar_keys
from dynactor.model.key_conditions import key_range
from dynactor.model.keys import key as keys
from dynactor.model.limits import PAGE_BYTES, PARTIQL_READS_PAGE_ITEMS, READ_UNIT_BYTES
from dynactor.model.partiql import next_token, read_plan, write_plan
from dynactor.model.partiql.binding import check_parameters, prepare
from dynactor.model.partiql.next_token import Position
from dynactor.model.partiql.parser import EXISTS_OUTSIDE_TRANSACTION
from dynactor.model.partiql.read_plan import ReadPlan
from dynactor.model.partiql.statement import (
    DeleteStatement,
    ExistsStatement,
    InsertStatement,
    SelectStatement,
    Statement,
    UpdateStatement,
)
from dynactor.model.values import attribute_value
from dynactor.model.values import item as items
from dynactor.model.values.attribute_value import AttributeValue
from dynactor.model.values.item import Item
from dynactor.model.writes.write import Write


class StatementResult(Struct, frozen=True):
    """The result of a statement. ``items`` are JSON texts.

    ``position`` is where the next page of a SELECT begins; None after the last page. ``last_key``
    is the key of the last item read, if the next page begins right after that item.
    """

    items: list[bytes]
    receipt: Receipt
    position: Position | None = None
    last_key: Item | None = None


class Task(Struct, frozen=True):
    """A statement to execute on its table; ``key`` is the encoded key if it names one item.

    ``run`` checks the item to write, and executes the statement.
    """

    table: TableDefinition
    key: bytes | None
    run: Callable[[], Awaitable[StatementResult]]


class Reading(Struct, frozen=True):
    """The parameters of a SELECT.

    ``start`` is the position from a NextToken. ``one_item``: the SELECT must give the primary key.
    """

    limit: int | None = None
    consistent: bool = False
    start: Position = Position(0)
    one_item: bool = False


class _StatementPage(Struct, frozen=True):
    """A SELECT's page as the request of a Query or Scan."""

    IndexName: str | None
    Limit: int | None
    Select: str | None = None
    AttributesToGet: list[str] | None = None
    ProjectionExpression: str | None = None
    ExclusiveStartKey: Item | None = None
    ReturnConsumedCapacity: ReturnConsumedCapacity | None = None


def bound(database: Database, text: str, parameters: Sequence[AttributeValue]) -> Statement:
    """Bind parameters to a statement; checks them and makes them canonical in place.

    Raises ``ValidationException``, or ``SerializationException`` as ``attribute_value.check``.
    """
    check_parameters(parameters)
    prepared = prepare(text)
    if prepared.index is not None:
        _check_one_attribute_keys(database, *prepared.index)
    return prepared.bound(parameters)


def _check_one_attribute_keys(database: Database, table: str, index: str) -> None:
    """Refuse to read an index with several partition or sort key attributes.

    This error comes before all other errors of a well-formed SELECT except those of its parameters
    (seen on AWS in 2026).
    """
    usable = database.usable_table(named_table(database, table))
    found = usable.definition.global_index(index) if usable is not None else None
    if found is None:
        return
    schema = found.definition.key_schema
    if len(schema.partition) > 1 or len(schema.sort) > 1:
        raise ValidationException(
            "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or "
            "multi-attribute RANGE keys."
        )


def statement_task(
    database: Database,
    statement: Statement,
    *,
    reading: Reading,
    return_item_on_failure: bool,
) -> Task:
    """The task of a statement; raises ``ResourceNotFoundException`` or ``ValidationException``."""
    match statement:
        case SelectStatement():
            return _select(database, statement, reading)
        case ExistsStatement():
            raise ValidationException(EXISTS_OUTSIDE_TRANSACTION)
        case InsertStatement() | UpdateStatement() | DeleteStatement():
            return _write(database, statement, return_item_on_failure=return_item_on_failure)


def _write(
    database: Database,
    statement: InsertStatement | UpdateStatement | DeleteStatement,
    *,
    return_item_on_failure: bool,
) -> Task:
    table = database.table(named_table(database, statement.table))
    definition = table.definition
    key = write_plan.extract_key(statement, definition.key_schema)

    async def run() -> StatementResult:
        write = _statement_write(
            statement, definition, return_item_on_failure=return_item_on_failure
        )
        try:
            written = await table.write(write)
        except ConditionalCheckFailedException as error:
            if not isinstance(statement, InsertStatement):
                raise
            if statement.if_not_exists:
                return StatementResult([], error.receipt)
            raise DuplicateItemException(
                "Duplicate primary key exists in table", error.receipt
            ) from None
        except ValidationException as error:
            if isinstance(statement, UpdateStatement) and error.message == attribute_value.TOO_DEEP:
                raise ValidationException(attribute_value.NESTING) from None
            raise
        found = [items.encode(written.attributes)] if written.attributes else []
        return StatementResult(found, written.receipt)

    return Task(definition, keys.encode(definition.key_schema, key), run)


def _statement_write(
    statement: InsertStatement | UpdateStatement | DeleteStatement,
    table: TableDefinition,
    *,
    return_item_on_failure: bool,
) -> Write:
    match statement:
        case InsertStatement():
            return write_plan.plan_put(statement, table)
        case UpdateStatement():
            return write_plan.plan_update(
                statement, table, return_item_on_failure=return_item_on_failure
            )
        case DeleteStatement():
            return write_plan.plan_delete(
                statement, table, return_item_on_failure=return_item_on_failure
            )


def _select(database: Database, select: SelectStatement, reading: Reading) -> Task:
    table = database.table(named_table(database, select.table))
    definition = table.definition
    index = named_index(definition, select.index, consistent=reading.consistent, is_statement=True)
    schema = index.key_schema if index else definition.key_schema
    if reading.one_item and read_plan.key_of_one_item(select, schema) is None:
        raise ValidationException(
            "Select statements within BatchExecuteStatement must specify the primary key in the "
            "where clause."
        )
    plan = read_plan.read_plan(select, schema)
    if not reading.one_item:
        # The read of one item may use any projection, as in GetItem.
        check_scalar_keys(definition, select.nested)
    limit = reading.limit
    if len(plan.ranges) > 1:
        limit = min(limit or PARTIQL_READS_PAGE_ITEMS, PARTIQL_READS_PAGE_ITEMS)
    request = _StatementPage(select.index, limit)
    rules = page_rules(
        request, definition, index, plan.filter, select.projector, filter_names=plan.filter_names
    )
    whole = ReadRange(
        plan.ranges[0],
        rules,
        index=index,
        after=_after(definition, index, plan, reading.start),
        reverse=plan.reverse,
        consistent=reading.consistent,
        by_partition=plan.is_scan,
    )

    async def run() -> StatementResult:
        return await _read(table, whole, plan, reading.start.range_index)

    return Task(definition, plan.ranges[0].start if reading.one_item else None, run)


def _after(
    table: TableDefinition, index: IndexDefinition | None, plan: ReadPlan, start: Position
) -> bytes | None:
    """The position after which a SELECT continues; raises ``ValidationException`` if invalid."""
    if start.range_index >= len(plan.ranges):
        raise next_token.invalid()
    if start.last_key is None:
        return None
    try:
        for value in start.last_key.values():
            attribute_value.check(value)
        place = scan_start if plan.is_scan else query_start
        after = place(table, index, start.last_key)
    except (ValidationException, SerializationException):
        raise next_token.invalid() from None
    if not key_range.contains(plan.ranges[start.range_index], after):
        raise next_token.invalid()
    return after


async def _read(table: Table, whole: ReadRange, plan: ReadPlan, first: int) -> StatementResult:
    """Read one page of several ranges; the limits of a page apply to all ranges together."""
    found: list[bytes] = []
    receipt = Receipt()
    rows_left = whole.rules.limit
    ranges = plan.ranges
    is_short = whole.index is None and plan.has_single_items
    after = whole.after
    for at in range(first, len(ranges)):
        rules = structs.replace(whole.rules, limit=rows_left)
        part = structs.replace(whole, key_range=ranges[at], rules=rules, after=after)
        try:
            page = await read_page(table, part)
        except Throttled:
            if at == first:
                raise
            # Return the items that were read and charged before.
            return StatementResult(found, receipt, Position(at))
        after = None
        found += page.items
        receipt += page.receipt
        if page.last is not None and not is_short:
            return StatementResult(found, receipt, Position(at, page.last), page.last)
        if page.last is not None and at + 1 < len(ranges):
            # Reading the rest of this range would cost an empty page.
            return StatementResult(found, receipt, Position(at + 1), page.last)
        if rows_left is not None:
            rows_left -= page.scanned_count
        if at + 1 < len(ranges) and _read_bytes(receipt, whole) >= PAGE_BYTES:
            return StatementResult(found, receipt, Position(at + 1))
        # Reading short ranges from memory never waits, so let other requests run here.
        await anyio.lowlevel.checkpoint()
    return StatementResult(found, receipt)


def _read_bytes(receipt: Receipt, read: ReadRange) -> float:
    """The bytes read for these units, in blocks of 4 KB."""
    blocks = receipt.total_units * (1 if read.consistent else 2)
    return blocks * READ_UNIT_BYTES
