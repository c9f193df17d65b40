"""Transactional writes: their actions, the effect of each on an item, and its cost.

Sources: API reference, "TransactWriteItems" and "TransactionCanceledException"; Developer Guide,
"Amazon DynamoDB transactions: how it works". On the table, an action costs twice the units of a
single write. On an index, it costs the same units as a single write.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec import Struct

from dynactor.model import capacity
from dynactor.model.capacity import ItemWrite, Receipt
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import (
    CancellationReason,
    ConditionalCheckFailedException,
    DuplicateItemException,
    DynamoDBError,
    ItemCollectionSizeLimitExceededException,
    ProvisionedThroughputExceededException,
    RequestLimitExceeded,
    ThrottlingException,
    TransactionConflictException,
    ValidationException,
)
from dynactor.model.expressions.condition import Condition
from dynactor.model.values.item import Item
from dynactor.model.values.stored_item import StoredItem
from dynactor.model.writes.change import Change
from dynactor.model.writes.write import Put, Write, check_condition, decide

# Prepare and commit: each takes the units of a write, or of a read.
UNITS_FACTOR: Final = 2

NO_REASON: Final = CancellationReason()

_CODES: Final[dict[type[DynamoDBError], str]] = {
    ConditionalCheckFailedException: "ConditionalCheckFailed",
    DuplicateItemException: "DuplicateItem",
    ItemCollectionSizeLimitExceededException: "ItemCollectionSizeLimitExceeded",
    ProvisionedThroughputExceededException: "ProvisionedThroughputExceeded",
    RequestLimitExceeded: "ThrottlingError",
    ThrottlingException: "ThrottlingError",
    TransactionConflictException: "TransactionConflict",
    ValidationException: "ValidationError",
}
THROTTLING_CODES: Final = ("ProvisionedThroughputExceeded", "ThrottlingError")
# Errors that cancel a transaction; any other error fails the whole request.
CANCELLING: Final = tuple(_CODES)


class Check(Struct, frozen=True, tag=True, gc=False):
    """A condition on an item that the transaction does not change."""

    key: Item
    condition: Condition
    return_item_on_failure: bool = False

    @property
    def identity(self) -> Item:
        """The item's key."""
        return self.key


ActionWrite: TypeAlias = Write | Check


class Action(Struct, frozen=True, gc=False):
    """One action of a transaction.

    ``ordinal`` is its index in the transaction, from 0. ``position`` is the item's encoded key: the
    partition key and the sort key. ``author`` is the access key of the caller, or empty.
    """

    ordinal: int
    partition_key: bytes
    sort_key: bytes
    position: bytes
    write: ActionWrite
    author: str = ""


def decide_action(table: TableDefinition, old: StoredItem | None, write: ActionWrite) -> Change:
    """Decide an action on ``old``; the new item gets its version later (``give_version``).

    Raises as ``dynactor.model.writes.write.decide``.
    """
    if isinstance(write, Check):
        check_condition(old, write)
        size_bytes = old.size_bytes if old else None
        units = capacity.write_units(size_bytes or 0)
        return _unchanged(old, ItemWrite(size_bytes, size_bytes, units, is_check=True))
    change = decide(table, old, write, version=0)
    receipt = change.receipt
    # Written out, because ``replace`` inspects each field and every action runs this.
    doubled = Receipt(
        receipt.read_units, receipt.write_units * UNITS_FACTOR, receipt.indexes, receipt.work
    )
    return Change(
        change.old,
        change.new,
        change.local_changes,
        change.attributes,
        doubled,
        change.global_changes,
    )


def failed_action(old: StoredItem | None, write: ActionWrite) -> Change:
    """The cost of an action whose condition is false."""
    old_bytes = old.size_bytes if old else None
    put_bytes = write.size_bytes if isinstance(write, Put) else None
    units = capacity.write_units(max(old_bytes or 0, put_bytes or 0))
    return _unchanged(old, ItemWrite(old_bytes, put_bytes, units, refused=True))


def _unchanged(old: StoredItem | None, work: ItemWrite) -> Change:
    receipt = Receipt(write_units=UNITS_FACTOR * work.units, work=(work,))
    return Change(old, old, (), None, receipt, ())


def item_read_units(size_bytes: int) -> float:
    """Read units of one item in a transaction."""
    return UNITS_FACTOR * capacity.item_read_units(size_bytes, consistent=True)


def cancellation_reason(error: DynamoDBError) -> CancellationReason:
    """Return the cancellation reason for the error of an action."""
    if isinstance(error, ItemCollectionSizeLimitExceededException):
        return CancellationReason(_CODES[type(error)], "Collection size exceeded.")
    item = error.item if isinstance(error, ConditionalCheckFailedException) else None
    return CancellationReason(_CODES[type(error)], error.message, item)
