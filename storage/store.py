"""The storage port: the operations that a storage engine offers to the layers above.

Rows are ordered by key. Writes are atomic commits. A commit is first *accepted*: the owner's view
``latest`` shows it. Then it is *durable*: it survives a power cut, and the view ``durable()`` shows
it. No module above this layer uses a path, a file or an iterator of an engine.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeVar, runtime_checkable

from msgspec import Struct

from dynactor.storage.store_figures import StoreFigures

T = TypeVar("T")


VERSION_BYTES: Final = 8


class StoreError(Exception):
    """The root of the errors that a store raises."""


class Conflict(StoreError):
    """A head was not the expected one, so these rows have another owner. Nothing was written."""


class Fenced(Conflict):
    """A guard row did not have the required value: this work has another owner now.

    Nothing was written. The caller ends, because the same commit would be refused again; after any
    other ``Conflict`` the caller reads its head again and repeats.
    """


class Unknown(StoreError):
    """Whether a commit was written is unknown: its sync failed, or the connection was lost.

    With RocksDB, the durable view never shows such a commit, and later commits are refused. With
    PostgreSQL, it may be shown or not, and later commits are accepted: the stored head shows
    whether it was written.
    """


class Retry(StoreError):
    """The engine is temporarily overloaded. Nothing was written; retry soon."""


class Full(StoreError):
    """The disk is full. Nothing was written; commits are accepted again once there is space."""


class Closed(StoreError):
    """The store or view can't be used: it was closed, a sync failed, or there is a new owner."""


class TakenOver(Closed):
    """Another server owns the data now, and this store can't be used any more."""


class Unavailable(StoreError):
    """The database can't be reached at this moment. Nothing was written; try again later."""


class Damaged(StoreError):
    """Stored data can't be read, or differs from what was written."""


class CannotOpen(StoreError):
    """The store can't be opened; the message says how to fix it."""


class InUse(CannotOpen):
    """Another server uses the data."""


class Row(NamedTuple):
    """A key and its value."""

    key: bytes
    value: bytes


class Group(Struct, frozen=True):
    """The writes of one partition in one commit, and the partition's head, which proves ownership.

    The head is a row that only the partition writes. The group is refused with ``Conflict`` unless
    the stored head is ``expected_head`` (None: there is none yet); it then becomes ``head``, or is
    deleted if ``head`` is None. Range deletes (start inclusive, end exclusive) come before the
    group's puts and deletes, so that a commit may empty a range and fill it again. ``discards`` are
    ranges whose rows nothing reads or writes after the commit. The engine deletes them with the
    commit, or later in the background, even after a restart.

    Guards are rows that the group requires but does not own: a key and the value that the row must
    have, or None if the row must be absent. They are compared with the rows before the commit. If
    one differs, the whole commit is refused with ``Fenced``, even if a head differs too.

    ``raises`` are keys of versions: 8-byte big-endian numbers that the commit raises by one, from 0
    if the row is absent. Commits that raise the same version don't conflict.
    """

    head_key: bytes
    expected_head: bytes | None
    head: bytes | None
    puts: Sequence[tuple[bytes, bytes]] = ()
    deletes: Sequence[bytes] = ()
    range_deletes: Sequence[tuple[bytes, bytes]] = ()
    guards: Sequence[tuple[bytes, bytes | None]] = ()
    raises: Sequence[bytes] = ()
    discards: Sequence[tuple[bytes, bytes]] = ()

    @property
    def ranges(self) -> Sequence[tuple[bytes, bytes]]:
        """All ranges whose rows the group deletes."""
        return (*self.range_deletes, *self.discards) if self.discards else self.range_deletes


class NotCached(Enum):
    """The result for a value that is not in memory; ``load`` reads the value."""

    NOT_CACHED = "not cached"


NOT_CACHED: Final = NotCached.NOT_CACHED


# Locks of heads end after this time without a call by their holder.
LOCK_SECONDS: Final = 2.0


class RowReads(Protocol):
    """A way to read rows. All methods raise ``Damaged``, ``Unavailable`` or ``Closed``."""

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of these keys in order; None for missing keys."""

    async def page(
        self, start: bytes, end: bytes, *, reverse: bool = False, max_rows: int, max_bytes: int
    ) -> list[Row]:
        """Return the first rows from ``start`` to before ``end``; or the last, in reverse order.

        The page ends with the row that reaches ``max_rows`` or ``max_bytes`` (keys and values
        counted), so it is empty only if the range is empty. All rows of a page are from one state.
        """


class View(RowReads, Protocol):
    """A way to read the rows of a state of the store; raises as ``RowReads``."""

    def cached(self, key: bytes) -> bytes | NotCached | None:
        """The value of this key, without an await; None if there is no such row.

        ``NOT_CACHED`` means that the value is not in memory: await ``load``.
        """

    def page_nowait(
        self, start: bytes, end: bytes, *, reverse: bool = False, max_rows: int, max_bytes: int
    ) -> list[Row] | NotCached:
        """The page that ``page`` returns, without an await.

        ``NOT_CACHED`` means that reading could take long: await ``page``. A durable view that
        returns rows here shows one state in all its calls.
        """

    async def first_rows(
        self, ranges: Sequence[tuple[bytes, bytes]], *, max_rows: int, reverse: bool = False
    ) -> list[list[Row]]:
        """The first rows of each range, or the last, in reverse order; all from one state.

        This takes few round trips for any number of ranges. There is no limit of bytes, so the rows
        must be small. The end of a range is exclusive.
        """

    async def load_with_page(
        self, keys: Sequence[bytes], start: bytes, end: bytes, *, max_rows: int, max_bytes: int
    ) -> tuple[list[bytes | None], list[Row]]:
        """The values of these keys and a page, all from one state if the view is a durable one."""


class Locked(Protocol):
    """Locked heads. After the locks have ended, each call raises ``Conflict``."""

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The accepted values of these keys in order; None for missing keys."""

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        """Write all groups or none, like the store's ``commit``, and release the locks."""


class Store(Protocol):
    """An open store. Its methods may only be called on the event loop that opened it."""

    @property
    def latest(self) -> View:
        """The owner's view: it shows every accepted commit."""

    def durable(self) -> View:
        """The view of durable rows. Never waits, and costs nothing.

        Each call reads one state. Use ``in_snapshot`` to read one state with several calls.
        """

    def eventual(self) -> View:
        """The view for eventually consistent reads: it may lag behind ``durable()``."""

    async def in_snapshot(
        self, read: Callable[[View], Awaitable[T]], *, calls_once: bool, eventual: bool = False
    ) -> T:
        """Return the result of ``read`` for a view of one durable state, for at most 30 seconds.

        The store may call ``read`` again from its start, so ``read`` must change nothing.
        ``calls_once``: ``read`` likely calls the view only once, which may save round trips.
        ``eventual``: the state may lag behind ``durable()``. Raises as ``View``.
        """

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        """Write all groups or none; returns when they are accepted.

        The future completes when they are durable and ``durable()`` shows them, or with
        ``Unknown``. Commits become durable in the order of their acceptance. A commit without
        groups writes nothing: it becomes durable after everything accepted before it.

        The caller can't be canceled here: a cancellation is delivered after the commit.

        Raises ``Conflict`` (``Fenced`` if a guard failed), ``Retry``, ``Full``, ``Unavailable`` or
        ``Closed``; then nothing was written. A commit without groups is refused only if the
        durable state is unknown.
        """

    def commit_nowait(self, groups: Sequence[Group]) -> Future[None] | None:
        """Commit like ``commit``, without an await; None if that is impossible now.

        Then nothing was written. Raises as ``commit``.
        """
        ...

    def locked(self, heads: Sequence[bytes]) -> AbstractAsyncContextManager[Locked]:
        """Lock heads in the order of their keys; other commits of these heads wait.

        The locks end with the context, with a commit, or after ``LOCK_SECONDS`` without a call by
        their holder. Another caller may wait that long for the locks. A head that is absent is not
        locked. Raises as ``View``.
        """

    async def reclaim(self, start: bytes, end: bytes) -> None:
        """Reclaim the disk space of deleted and discarded rows in this range. May take minutes.

        Raises:
            Full, Retry, Closed, Unknown: commits are refused, or began to be refused meanwhile.
        """

    async def checkpoint(self, directory: Path) -> None:
        """Create a data directory with all durable data at ``directory``, which must not exist.

        The checkpoint becomes visible when it is complete, and is durable when this call returns.
        Raises ``CannotOpen`` if the directory can't be created; ``Full``, ``Retry`` or ``Closed``
        if commits are refused; ``Damaged`` if a row can't be read.
        """

    def figures(self) -> StoreFigures:
        """The store's figures for the metrics."""

    async def close(self) -> None:
        """Make accepted commits durable, complete their futures, and close. Idempotent."""


@runtime_checkable
class ClearableStore(Store, Protocol):
    """An open store that can delete every row."""

    async def clear(self) -> None:
        """Delete every row. Nothing else may use the store meanwhile."""
