"""Destinations of a table's items and changes, as values and functions without I/O.

A sink says what is derived from an item or a change. ``TableScan`` and ``Follower`` read, wait,
commit, retry and keep checkpoints for it. Two kinds differ in how often an effect may happen:

- A ``RowSink`` owns rows. They are committed in one batch with the checkpoint: exactly once.
- A ``MessageSink`` sends messages to actors that own the rows. After a crash messages come again:
  at least once, so their effects are idempotent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from enum import Enum
from typing import ClassVar, Generic, NamedTuple, TypeVar

from msgspec import Struct

from dynactor.model.values.item import Item
from dynactor.model.values.stored_item import StoredItem
from dynactor.streams.change_record import ChangeRecord

T = TypeVar("T")


class Order(Enum):
    """Which changes must come in the order in which they were made."""

    # Changes of one item stay in order, also across a split: a child's log follows its parent's.
    ITEM = "item"
    # None: effects commute, so the logs of parents and children are read side by side.
    NONE = "none"


class Gap(Enum):
    """What it means to a sink if changes are trimmed before it has applied them."""

    # The derived data is wrong until it is dropped and the table is scanned again.
    REBUILD = "rebuild"
    # The derived data stays right, without the missing changes.
    MISSING = "missing"
    # The sink ends, because its consumers count on every change.
    END = "end"


class Delivery(Enum):
    """How often a change takes effect if the server crashes meanwhile."""

    # Effects may come again, so they are idempotent.
    AT_LEAST_ONCE = "at least once"
    # Exactly once: the effects are rows, committed in one batch with the checkpoint.
    WITH_CHECKPOINT = "with the checkpoint"
    # Exactly once: positions are in the destination's own transaction, and are read first.
    TRANSACTION = "transaction"


class Contract(Struct, frozen=True):
    """What a sink needs of the logs that it is fed from.

    ``trim_delay_bytes`` is how many bytes of the logs are kept for it at most; None for all that
    it has not applied.
    """

    order: Order
    gap: Gap
    trim_delay_bytes: int | None
    delivery: Delivery = Delivery.AT_LEAST_ONCE

    def is_delayed_too_long(self, lag_bytes: int) -> bool:
        """Whether a sink that has not applied this many bytes of records must take a gap."""
        return self.trim_delay_bytes is not None and lag_bytes > self.trim_delay_bytes


class RowSink(ABC, Generic[T]):
    """Keeps one row for each item that has an entry; the row's value is empty."""

    contract: ClassVar[Contract]

    @abstractmethod
    def entry(self, item: StoredItem) -> T | None:
        """What the row says of an item; None for an item without a row."""

    @abstractmethod
    def position(self, key: Item) -> bytes:
        """The position of an item in its table."""

    @abstractmethod
    def row(self, entry: T, position: bytes) -> bytes:
        """The key of the row for the item at a position."""

    def committed(self, rows: Sequence[bytes]) -> None:
        """Rows that were put are durable; those of a scan are not reported."""
        del rows


class MessageSink(ABC):
    """Sends each run of a log to the actors that own what is derived."""

    contract: ClassVar[Contract]

    @abstractmethod
    def send(self, records: list[ChangeRecord]) -> Sequence[Awaitable[None]]:
        """Send messages; each result waits until its message is carried out, durably."""

    def delay_seconds(self, last: int, tail: int) -> float:
        """How long to hold back the run that ends with a counter, of a log with this tail."""
        del last, tail
        return 0.0


class RowChanges(NamedTuple):
    """The keys of rows that changes put and delete."""

    puts: list[bytes]
    deletes: list[bytes]


def row_changes(sink: RowSink[T], records: Sequence[ChangeRecord]) -> RowChanges:
    """The rows that changes put and delete, each key once: the last change of a row decides."""
    is_put: dict[bytes, bool] = {}
    for record in records:
        old = None if record.old is None else sink.entry(record.old)
        new = None if record.new is None else sink.entry(record.new)
        if old == new:
            continue
        position = sink.position(record.key)
        if old is not None:
            is_put[sink.row(old, position)] = False
        if new is not None:
            is_put[sink.row(new, position)] = True
    return RowChanges(
        [row for row, put in is_put.items() if put],
        [row for row, put in is_put.items() if not put],
    )
