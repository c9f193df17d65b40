"""ExecuteTransaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, NoReturn

from dynactor.actors.database.database import Database
from dynactor.actors.transactions.coordinator import TableKey
from dynactor.api.access import data_asks
from dynactor.api.answers.item_answers import EMPTY, array_member, joined, projected
from dynactor.api.execution.operation import WRITE_FAULTS, Location, Operation
from dynactor.api.execution.transaction_requests import (
    Cancelling,
    ParsedAction,
    capacity_members,
    check_distinct,
    checked_actions,
    digest,
    execute,
    read_items,
)
from dynactor.api.requests import inputs
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import ExecuteTransactionInput
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import (
    CancellationReason,
    TransactionCanceledException,
    ValidationException,
)
from dynactor.model.partiql import read_plan, write_plan
from dynactor.model.partiql.binding import check_parameters, prepare
from dynactor.model.partiql.parser import EXISTS_OUTSIDE_TRANSACTION
from dynactor.model.partiql.statement import (
    DeleteStatement,
    ExistsStatement,
    InsertStatement,
    SelectStatement,
    Statement,
    UpdateStatement,
)
from dynactor.model.tables.key_rules import NO_MATCH, check_item_key, check_key
from dynactor.model.values import attribute_value
from dynactor.model.writes.transaction import ActionWrite

_NOT_WELL_FORMED: Final = "Statement wasn't well formed"
_DUPLICATE: Final = CancellationReason("DuplicateItem", "Duplicate primary key exists in table")


async def handle(call: Call[ExecuteTransactionInput]) -> bytes:
    """Execute all statements or none: only reads of single items, or only writes and EXISTS."""
    request = call.request
    token = request.ClientRequestToken
    content = None if token is None else digest(request.TransactStatements)
    for one in request.TransactStatements:
        # Errors of parameters come first, and don't name their statement.
        check_parameters(one.Parameters or ())
    statements = [_bound(ordinal, one) for ordinal, one in enumerate(request.TransactStatements)]
    selects = [statement for statement in statements if isinstance(statement, SelectStatement)]
    if not selects:
        return await _write(call, statements, content)
    if len(selects) < len(statements):
        raise ValidationException(
            "ExecuteTransaction API does not support both read and write operations in the same "
            "request."
        )
    return await _read(call, selects)


def _bound(ordinal: int, request: inputs.ParameterizedStatementShape) -> Statement:
    with _statement_faults(ordinal):
        return prepare(request.Statement).bound(request.Parameters or ())


@contextmanager
def _statement_faults(ordinal: int) -> Iterator[None]:
    """Add the index of a statement to its errors, except errors of its grammar."""
    try:
        yield
    except ValidationException as error:
        if error.message == EXISTS_OUTSIDE_TRANSACTION:
            raise ValidationException("Unsupported operation in transaction.") from None
        if error.message.startswith(_NOT_WELL_FORMED):
            raise
        _refuse(ordinal, error.message)


def _refuse(ordinal: int, message: str) -> NoReturn:
    raise ValidationException(f"Validation failed in TransactStatements[{ordinal}]: {message}")


# -- reads ----------------------------------------------------------------------------------


async def _read(call: Call[ExecuteTransactionInput], selects: Sequence[SelectStatement]) -> bytes:
    reads = await read_items(call, _checked(call.database, selects))
    responses = [
        EMPTY
        if read.stored is None
        else joined([b'"Item":' + projected(read.stored, select.projector)])
        for select, read in zip(selects, reads, strict=True)
    ]
    members = [array_member(b"Responses", responses)]
    members += capacity_members(
        [select.table for select in selects],
        [read.receipt(consistent=True) for read in reads],
        call.request.ReturnConsumedCapacity,
        "ReadCapacityUnits",
    )
    return joined(members)


def _checked(database: Database, selects: Sequence[SelectStatement]) -> list[TableKey]:
    for ordinal, select in enumerate(selects):
        if select.index is not None:
            _refuse(ordinal, "Reads on indices are not supported within transactions.")
    cancelling = Cancelling(len(selects), are_statements=True)
    tables = cancelling.tables(database, [select.table for select in selects])
    wanted = []
    for ordinal, (select, table) in enumerate(zip(selects, tables, strict=True)):
        if table is None:
            continue
        schema = table.definition.key_schema
        key = read_plan.key_of_one_item(select, schema)
        if key is None:
            _refuse(
                ordinal,
                "Select statements within ExecuteTransaction must specify the primary key in "
                "the where clause.",
            )
        try:
            check_key(schema, key)
            plan = read_plan.read_plan(select, schema)
        except ValidationException as fault:
            cancelling.note(ordinal, fault)
        else:
            wanted.append(TableKey(table, plan.ranges[0].start))
    if cancelling.error is not None:
        raise cancelling.error
    check_distinct(wanted)
    return wanted


# -- writes ---------------------------------------------------------------------------------


async def _write(
    call: Call[ExecuteTransactionInput], statements: Sequence[Statement], content: bytes | None
) -> bytes:
    request = call.request
    parsed = [
        _parsed(ordinal, statement, one)
        for ordinal, (statement, one) in enumerate(
            zip(statements, request.TransactStatements, strict=True)
        )
    ]
    checked = checked_actions(call.database, parsed, are_statements=True)
    try:
        written = await execute(call, checked, request.ClientRequestToken, content)
    except TransactionCanceledException as error:
        raise _with_duplicates(error, statements) from None
    members = [b'"Responses":[]']
    members += capacity_members(
        checked.given_names, written.receipts, request.ReturnConsumedCapacity, written.repeated_as
    )
    return joined(members)


def _with_duplicates(
    error: TransactionCanceledException, statements: Sequence[Statement]
) -> TransactionCanceledException:
    """The same error, with the reason DuplicateItem for each INSERT whose item exists."""
    return TransactionCanceledException(
        [
            _DUPLICATE
            if isinstance(statement, InsertStatement) and reason.code == "ConditionalCheckFailed"
            else reason
            for statement, reason in zip(statements, error.reasons, strict=True)
        ],
        error.receipts,
    )


def _parsed(
    ordinal: int, statement: Statement, request: inputs.ParameterizedStatementShape
) -> ParsedAction:
    size_bytes = len(request.Statement) + sum(
        map(attribute_value.size_bytes, request.Parameters or ())
    )
    return_item = request.ReturnValuesOnConditionCheckFailure == "ALL_OLD"
    match statement:
        case InsertStatement():
            if statement.if_not_exists:
                _refuse(ordinal, "IF NOT EXISTS is not supported in ExecuteTransaction.")
            table = statement.table
        case UpdateStatement(return_values=returned) | DeleteStatement(returning=returned):
            if returned not in (None, "NONE"):
                _refuse(ordinal, "RETURNING clause is not supported in ExecuteTransaction.")
            table = statement.table
        case ExistsStatement():
            table = statement.select.table
        case SelectStatement():
            raise AssertionError(statement)

    def check(definition: TableDefinition) -> None:
        if isinstance(statement, ExistsStatement) and not write_plan.is_check(
            statement, definition
        ):
            _refuse(ordinal, "EXISTS() must contain a single item read with additional condition")

    return ParsedAction(table, size_bytes, check, partial(_write_on, statement, return_item))


def _write_on(
    statement: InsertStatement | UpdateStatement | DeleteStatement | ExistsStatement,
    return_item: bool,
    definition: TableDefinition,
    _is_key_checked: bool,
) -> ActionWrite:
    schema = definition.key_schema
    if isinstance(statement, InsertStatement):
        check_item_key(schema, statement.item)
    elif not write_plan.has_key(statement, schema):
        raise ValidationException(NO_MATCH)
    match statement:
        case InsertStatement():
            return write_plan.plan_put(statement, definition)
        case UpdateStatement():
            return write_plan.plan_update(statement, definition, return_item_on_failure=return_item)
        case DeleteStatement():
            return write_plan.plan_delete(statement, definition, return_item_on_failure=return_item)
        case ExistsStatement():
            return write_plan.plan_check(statement, definition, return_item_on_failure=return_item)


OPERATION = Operation(
    ExecuteTransactionInput,
    handle,
    asks=lambda asking: data_asks.statements(asking, asking.request.TransactStatements),
    location=Location.HOME,
    faults=WRITE_FAULTS,
    is_transaction=True,
)
