"""Common parts of the transaction operations: checks actions and passes them to the coordinator.

Errors of an action that don't depend on its table fail the request, and so does an empty key.
Errors that depend on the table, such as a key of another type, cancel the transaction. The first of
them becomes the cancellation reason of its action.

Sources: Developer Guide, "Amazon DynamoDB transactions: how it works"; DynamoDB Local 3.3, whose
messages these are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from msgspec import json

from dynactor.actors.database.database import Database
from dynactor.actors.partition.item_locks import ActionDone
from dynactor.actors.table.table import ItemRead, Table
from dynactor.actors.transactions.client_tokens import TokenClaim
from dynactor.actors.transactions.coordinator import TableAction, TableKey, table_action
from dynactor.api.answers.item_answers import collection_metrics
from dynactor.api.requests.call import Call
from dynactor.api.requests.foreign_arns import named_table
from dynactor.api.requests.table_arn import table_name
from dynactor.model.advice.explained_costs import Outcome
from dynactor.model.capacity import (
    Receipt,
    ReturnConsumedCapacity,
    TransactionUnits,
    consumed_capacity,
)
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import (
    CancellationReason,
    ResourceNotFoundException,
    TransactionCanceledException,
    ValidationException,
)
from dynactor.model.limits import TRANSACTION_BYTES
from dynactor.model.values import attribute_value
from dynactor.model.values import item as items
from dynactor.model.values.item import Item
from dynactor.model.writes.transaction import NO_REASON, ActionWrite, Check, cancellation_reason

_ON_ONE_ITEM = "Transaction request cannot include multiple operations on one item"


class ParsedAction(NamedTuple):
    """An action, checked except for its table.

    Both functions take the table and raise ValidationException. ``check``, if any, checks paths and
    empty keys. ``write_on`` makes the other checks and returns the write. Its second argument says
    whether ``fast_key`` has already checked the key of the ``item`` to put.
    """

    given_name: str
    size_bytes: int
    check: Callable[[TableDefinition], None] | None
    write_on: Callable[[TableDefinition, bool], ActionWrite]
    item: Item | None = None


class CheckedActions(NamedTuple):
    """The actions of a transaction, with the names of tables in the request."""

    actions: list[TableAction]
    given_names: list[str]
    # The error that cancels the transaction, whatever its items contain.
    cancelled: TransactionCanceledException | None


def checked_size_bytes(item: Item, check_expressions: Callable[[], object]) -> int:
    """Check an item or a key from a request, and return its size.

    In a transaction the error of an empty attribute name comes before too deep nesting, and nesting
    before an empty name in a map. ``check_expressions`` raises the errors of the action's
    expressions, which come before nesting. Raises as ``item.check``.
    """
    try:
        return items.check(item)
    except ValidationException as fault:
        if fault.message not in (attribute_value.TOO_DEEP, attribute_value.EMPTY_NAME):
            raise
        attribute_value.check_names(item)
        if not any(map(attribute_value.is_too_deep, item.values())):
            raise
    check_expressions()
    raise ValidationException(attribute_value.TOO_DEEP)


def checked_actions(
    database: Database, parsed: Sequence[ParsedAction], *, are_statements: bool = False
) -> CheckedActions:
    """The actions with their tables.

    Raises ``ResourceNotFoundException``, which cancels for statements, or ``ValidationException``
    if two are on the same item or too large.
    """
    _check_size(parsed)
    cancelling = Cancelling(len(parsed), are_statements=are_statements)
    tables = cancelling.tables(database, [one.given_name for one in parsed])
    for one, table in zip(parsed, tables, strict=True):
        if one.check is not None and table is not None:
            one.check(table.definition)
    actions = []
    for ordinal, (one, table) in enumerate(zip(parsed, tables, strict=True)):
        if table is None:
            continue
        parts = None if one.item is None else table.encode_parts(one.item)
        try:
            write = one.write_on(table.definition, parts is not None)
            actions.append(table_action(ordinal, table, write, parts))
        except ValidationException as fault:
            cancelling.note(ordinal, fault)
    if not (are_statements and cancelling.error is not None):
        check_distinct([TableKey(table, action.position) for table, action in actions])
    return CheckedActions(actions, [one.given_name for one in parsed], cancelling.error)


class Cancelling:
    """Keeps the error that cancels a transaction, whatever its items contain.

    It has the reason of the first faulty action. For statements, it has the reasons of all, and a
    missing table is one of them (measured on AWS, 2026).
    """

    def __init__(self, total: int, *, are_statements: bool = False) -> None:
        self._reasons = [NO_REASON] * total
        self._are_statements = are_statements
        self.error: TransactionCanceledException | None = None

    def tables(self, database: Database, given_names: Sequence[str]) -> list[Table | None]:
        """The tables of actions; None for a missing one, whose reason is noted.

        Raises:
            ResourceNotFoundException: a table is missing, and the actions are no statements.
        """
        found: list[Table | None] = []
        for ordinal, given_name in enumerate(given_names):
            try:
                found.append(database.table(named_table(database, given_name)))
            except ResourceNotFoundException as fault:
                if not self._are_statements:
                    raise
                found.append(None)
                self._note(ordinal, CancellationReason("ResourceNotFound", fault.message))
        return found

    def note(self, ordinal: int, fault: ValidationException) -> None:
        """Note the reason of an action."""
        if self._are_statements or self.error is None:
            self._note(ordinal, cancellation_reason(fault))

    def _note(self, ordinal: int, reason: CancellationReason) -> None:
        self._reasons[ordinal] = reason
        self.error = TransactionCanceledException(self._reasons)


def check_distinct(keys: Sequence[TableKey]) -> None:
    """Refuse a transaction that names an item twice; raises ``ValidationException``."""
    named = {(table.definition.table_id, position) for table, position in keys}
    if len(named) < len(keys):
        raise ValidationException(_ON_ONE_ITEM)


def _check_size(parsed: Sequence[ParsedAction]) -> None:
    size_bytes = 0
    for one in parsed:
        size_bytes += one.size_bytes
        if size_bytes > TRANSACTION_BYTES:
            raise ValidationException(
                f"Transaction payload size cannot exceed 4MB. Payload Size: {size_bytes}"
            )


def digest(content: Any) -> bytes:
    """A digest that distinguishes two requests with one client token."""
    return blake2b(json.encode(content, order="deterministic"), digest_size=16).digest()


async def read_items(call: Call[Any], wanted: Sequence[TableKey]) -> list[ItemRead]:
    """Read items in one snapshot; notes the cost of each even if the read is canceled.

    Raises ``TransactionCanceledException``, ``ValidationException`` or ``InternalServerError``.
    """
    tables = [table.definition for table, _ in wanted]
    try:
        reads = await call.database.transactions.read(wanted)
    except TransactionCanceledException as error:
        _note_actions(call, tables, error.receipts, "cancelled")
        raise
    if call.paid is not None:
        _note_actions(call, tables, [read.receipt(consistent=True) for read in reads], "done")
    return reads


class TransactionResult(NamedTuple):
    """The result of a transaction; a repeated one costs reads only, and has no outcomes."""

    receipts: list[Receipt]
    outcomes: list[ActionDone]
    repeated_as: TransactionUnits


async def execute(
    call: Call[Any], checked: CheckedActions, token: str | None, content: bytes | None
) -> TransactionResult:
    """Execute a transaction, unless a transaction with the same token is already done.

    ``content`` is the digest of the request. The cost of each action is noted even if the
    transaction is canceled. Raises ``TransactionCanceledException``, or as ``ClientTokens`` and
    ``Transactions.write``.
    """
    tables = [table.definition for table, _ in checked.actions]
    try:
        written = await _executed(call.database, checked, token, content)
    except TransactionCanceledException as error:
        _note_actions(call, tables, error.receipts, "cancelled")
        raise
    _note_actions(call, tables, written.receipts, "done")
    return written


def _note_actions(
    call: Call[Any],
    tables: Sequence[TableDefinition],
    receipts: Sequence[Receipt],
    outcome: Outcome,
) -> None:
    """Record the cost of a transaction's actions; actions without receipts cost nothing."""
    for table, receipt in zip(tables, receipts, strict=False):
        call.note(table, receipt, outcome)


async def _executed(
    database: Database, checked: CheckedActions, token: str | None, content: bytes | None
) -> TransactionResult:
    transactions = database.transactions
    if token is None or content is None:
        return await _done(database, checked, None)
    claim = await transactions.tokens.claim(token, content)
    try:
        if claim.is_repeated and checked.cancelled is None:
            wanted = [TableKey(table, action.position) for table, action in checked.actions]
            receipts = await transactions.receipts_again(wanted)
            return TransactionResult(receipts, [], "ReadCapacityUnits")
        return await _done(database, checked, claim)
    finally:
        transactions.tokens.release(claim)


async def _done(
    database: Database, checked: CheckedActions, claim: TokenClaim | None
) -> TransactionResult:
    if checked.cancelled is not None:
        raise checked.cancelled
    outcomes = await database.transactions.write(checked.actions, claim)
    receipts = [outcome.receipt for outcome in outcomes]
    return TransactionResult(receipts, outcomes, "WriteCapacityUnits")


def capacity_members(
    given_names: Sequence[str],
    receipts: Sequence[Receipt],
    mode: ReturnConsumedCapacity | None,
    repeated_as: TransactionUnits,
) -> list[bytes]:
    """The ConsumedCapacity member, if requested: tables in the order of the request."""
    if mode is None or mode == "NONE":
        return []
    by_table: dict[str, Receipt] = {}
    for given_name, receipt in zip(given_names, receipts, strict=True):
        name = table_name(given_name)
        by_table[name] = by_table.get(name, Receipt()) + receipt
    consumed = [
        consumed_capacity(name, receipt, mode, repeated_as=repeated_as)
        for name, receipt in by_table.items()
    ]
    return [b'"ConsumedCapacity":' + json.encode(consumed)]


def metrics_members(
    checked: CheckedActions, outcomes: Sequence[ActionDone], return_metrics: str | None
) -> list[bytes]:
    """The ItemCollectionMetrics member, if requested and not empty."""
    if return_metrics != "SIZE":
        return []
    by_table: dict[str, dict[bytes, dict[str, Any]]] = {}
    for (table, action), given_name, outcome in zip(
        checked.actions, checked.given_names, outcomes, strict=False
    ):
        if outcome.collection_size_bytes is None or isinstance(action.write, Check):
            continue
        schema = table.definition.key_schema
        by_table.setdefault(given_name, {})[action.partition_key] = collection_metrics(
            schema, action.write.identity, outcome.collection_size_bytes
        )
    if not by_table:
        return []
    metrics = {name: list(collections.values()) for name, collections in by_table.items()}
    return [b'"ItemCollectionMetrics":' + json.encode(metrics)]
