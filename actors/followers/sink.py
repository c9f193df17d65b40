"""Destinations of a table's items and changes, as values and functions without I/O.

A sink says what is derived from an item or a change. ``TableScan`` and ``Follower`` read, wait,
commit, retry and keep checkpoints for the sink. The kinds differ in how often an effect may happen:

- A ``RowSink`` owns rows. They are committed in one batch with the checkpoint: exactly once.
- A ``MessageSink`` sends a log's changes to actors that own the rows. After a crash messages are
  sent again: at least once, so their effects are idempotent.
- A ``FillSink`` sends a table's items to actors that own the rows: at least once, too.
- A ``SnapshotSink`` owns a copy of a table at one moment. After a crash the copy is dropped and
  made again, of the same moment.

A scan feeds a ``RowSink`` or ``FillSink``, a follower a ``RowSink`` or ``MessageSink``, and a
``TableCopy`` a ``SnapshotSink``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from asyncio import Future
from collections.abc import Awaitable, Callable, Iterator, Sequence
from enum import Enum
from typing import ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct

from dynactor.model.values.item import Item
from dynactor.model.values.stored_item import StoredItem
from dynactor.storage import codec
from dynactor.storage.store import Row
from dynactor.streams.change_record import ChangeRecord

T = TypeVar("T")


class ChangeOrder(Enum):
    """Which changes must be applied in the order of the log."""

    # Changes of one item stay in order, also across a split: a child's log follows its parent's.
    ITEM = "item"
    # None: effects commute, so the logs of parents and children are read in parallel.
    NONE = "none"


class Gap(Enum):
    """The consequence if changes are trimmed before the sink has applied them."""

    # The derived data is wrong until it is dropped and the table is scanned again.
    REBUILD = "rebuild"
    # The derived data stays correct without the missing changes.
    MISSING = "missing"
    # The sink ends, because its consumers rely on every change.
    END = "end"


class Delivery(Enum):
    """The number of times that a change takes effect if the server crashes meanwhile."""

    # Effects may be repeated, so they must be idempotent.
    AT_LEAST_ONCE = "at least once"
    # Exactly once: the effects are rows, committed in one batch with the checkpoint.
    WITH_CHECKPOINT = "with the checkpoint"
    # Exactly once: positions are in the destination's own transaction, and are read at the start.
    TRANSACTION = "transaction"


class Contract(Struct, frozen=True):
    """The requirements of a sink on the logs.

    ``trim_delay_bytes`` is the maximum number of bytes of the logs that are kept for the sink; None
    keeps everything that the sink has not applied.
    """

    order: ChangeOrder
    gap: Gap
    trim_delay_bytes: int | None
    delivery: Delivery = Delivery.AT_LEAST_ONCE

    def must_accept_gap(self, lag_bytes: int) -> bool:
        """Whether a sink with this many unapplied bytes of records must accept a gap."""
        return self.trim_delay_bytes is not None and lag_bytes > self.trim_delay_bytes


class RowSink(ABC, Generic[T]):
    """Keeps one row for each item that has an entry; the row's value is empty."""

    contract: ClassVar[Contract]

    @abstractmethod
    def entry(self, item: StoredItem) -> T | None:
        """The entry for an item; None for an item without a row."""

    @abstractmethod
    def position(self, key: Item) -> bytes:
        """The position of an item in its table."""

    @abstractmethod
    def row(self, entry: T, position: bytes) -> bytes:
        """The key of the row for the item at a position."""

    def committed(self, _rows: Sequence[bytes]) -> None:
        """Called when rows that changes have put are durable; not called for rows of a scan."""

    def puts(self, rows: Sequence[Row]) -> list[tuple[bytes, bytes]]:
        """The rows for a page of stored items, whose keys are positions."""
        return [
            (self.row(entry, row.key), b"")
            for row in rows
            if (entry := self.entry(codec.decode(row.value))) is not None
        ]


class MessageSink(ABC):
    """Sends each run of a log to the actors that own the derived data."""

    contract: ClassVar[Contract]

    @abstractmethod
    def send(self, records: list[ChangeRecord]) -> Sequence[Awaitable[None]]:
        """Send messages; each result completes when its message is carried out, durably."""

    def delay_seconds(self, _last: int, _tail: int) -> float:
        """The delay of the run that ends with a counter, in a log with this tail."""
        return 0.0


class Turn(NamedTuple):
    """Let other tasks run before the next step."""


class TakeUnits(NamedTuple):
    """Take units of a limit before the next step.

    Everything that was sent before is durable when the scan waits. ``refused`` completes when it is
    time to ``take`` the units again; ``take`` returns None once they are taken.
    """

    refused: Future[None]
    take: Callable[[], Future[None] | None]


class Send(NamedTuple):
    """Send a message.

    The result of ``ask`` completes when the message is carried out, durably. ``ask`` or its result
    raises InternalServerError if the store refuses writes. The scan then calls ``ask`` again.
    ``share`` is the share of the page that the message contains.
    """

    ask: Callable[[], Awaitable[None]]
    share: float


Step: TypeAlias = Turn | TakeUnits | Send


class FillSink(ABC):
    """Sends a table's items, page by page, to the actors that own the derived data."""

    # Maximum number of pages whose messages are sent and not known to be durable.
    pages_in_flight: ClassVar[int]
    # After a crash, the scan may repeat up to this number of pages.
    pages_per_cursor: ClassVar[int]

    @abstractmethod
    def steps(self, rows: Sequence[Row]) -> Iterator[Step]:
        """The steps for a page of stored items, whose keys are positions."""


class SnapshotSink(ABC):
    """Keeps a copy of a table at one moment."""

    @property
    @abstractmethod
    def target(self) -> tuple[bytes, bytes]:
        """The range of the rows, start inclusive, end exclusive; emptied before the first page."""

    @abstractmethod
    def start(self) -> None:
        """Called when the target is empty, before the first page; may be called again."""

    @abstractmethod
    def key(self, position: bytes) -> bytes:
        """The key of the row for the item at a position."""

    @abstractmethod
    def puts(self, rows: Sequence[Row]) -> list[tuple[bytes, bytes]]:
        """The rows for stored items that have none yet, whose keys are positions."""


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
