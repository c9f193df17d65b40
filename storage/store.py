"""The storage port: what the floors above may ask of a storage engine.

One ordered space of keys. Writes are atomic batches with two moments: *accepted* (the owner's
view ``latest`` shows them) and *durable* (they outlive a power cut, and the view ``durable()``
shows them). Nobody above this floor knows a path, a file or an iterator of an engine.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from dynactor.storage.store_figures import StoreFigures


class StoreError(Exception):
    """The root of the errors that a store raises."""


class Conflict(StoreError):
    """A head was not the expected one: somebody else owns these rows. Nothing was written."""


class Fenced(Conflict):
    """A guard did not have its value: this work now belongs to another owner.

    Nothing was written. The caller ends, because the same commit would be refused again; after any
    other ``Conflict`` the caller reads its head again and repeats.
    """


class Unknown(StoreError):
    """A commit was accepted, and nobody can tell whether it will be there after a restart.

    It is never shown by the durable view of this store, and no later commit is accepted.
    """


class Retry(StoreError):
    """The engine can't keep up at this moment. Nothing was written; try again soon."""


class Full(StoreError):
    """The disk is full. Nothing was written; commits are accepted again once there is space."""


class Closed(StoreError):
    """The store takes no more commits: it was closed, or a sync failed."""


class Unavailable(StoreError):
    """The database can't be reached at this moment. Nothing was written; try again later."""


class Damaged(StoreError):
    """What is stored can't be read, or is not what was written."""


class CannotOpen(StoreError):
    """The store can't be opened as things are; the message says what to do."""


class Row(NamedTuple):
    """A key and its value."""

    key: bytes
    value: bytes


class Group(Struct, frozen=True):
    """The writes of one partition in one commit, and the head by which it owns them.

    The head is a row that only the partition writes. The group is refused with ``Conflict``
    unless the stored head is ``expected_head`` (None: there is none yet); it then becomes
    ``head``. Range deletes (start inclusive, end exclusive) come before the group's puts and
    deletes, so that a commit may empty a range and fill it again.

    Guards are rows that the group requires but does not own: a key and the value that the row must
    have, or None if the row must be absent. They are compared with the rows before the commit. If
    one differs, the whole commit is refused with ``Fenced``, even if a head differs too.
    """

    head_key: bytes
    expected_head: bytes | None
    head: bytes
    puts: Sequence[tuple[bytes, bytes]] = ()
    deletes: Sequence[bytes] = ()
    range_deletes: Sequence[tuple[bytes, bytes]] = ()
    guards: Sequence[tuple[bytes, bytes | None]] = ()


class NotAtHand(Enum):
    """The answer where a value is not in memory: whoever wants it awaits ``load``."""

    NOT_AT_HAND = "not at hand"


NOT_AT_HAND: Final = NotAtHand.NOT_AT_HAND


class View(Protocol):
    """A way of reading the rows. All methods raise ``Damaged``, ``Unavailable`` or ``Closed``."""

    def at_hand(self, key: bytes) -> bytes | NotAtHand | None:
        """The value under this key, None where there is none; never waits for a disk.

        ``NOT_AT_HAND`` says nothing of the key: ``load`` it.
        """
        ...

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values under these keys, in their order; None where there is none."""
        ...

    async def page(
        self, start: bytes, end: bytes, *, reverse: bool = False, max_rows: int, max_bytes: int
    ) -> list[Row]:
        """The first rows from ``start`` on, before ``end``; in reverse, the last ones downwards.

        The page ends with the row that reaches ``max_rows`` or ``max_bytes`` (keys and values
        counted), so it is empty only if the range is. It is consistent in itself on either view.
        """
        ...


def _nothing() -> None:
    """Release nothing."""


class Snapshot(NamedTuple):
    """A view of one state, which the store keeps until ``release``; that may be repeated."""

    view: View
    release: Callable[[], None] = _nothing


class Store(Protocol):
    """An open store. All methods are for the event loop it was opened on."""

    @property
    def latest(self) -> View:
        """The owner's view: it shows every accepted commit."""
        ...

    def durable(self) -> View:
        """A view of what is durable. Never waits, costs nothing.

        Each call of its methods is consistent in itself. What has to see one state with several
        calls takes a ``snapshot``.
        """
        ...

    async def snapshot(self, *, is_long: bool = False) -> Snapshot:
        """One consistent state in which everything is durable, until it is released.

        ``is_long``: it may be kept longer than a request. It then holds back disk space, and
        raises ``Closed`` once the store takes writes again after a full disk, or has lost its
        connection.

        Raises:
            Unavailable, Closed: as a view.
        """
        ...

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        """Write all groups or none; returns when they are accepted.

        The future completes when they are durable and ``durable()`` shows them, or with
        ``Unknown``. Commits become durable in the order in which they were accepted. One of no
        groups writes nothing: it becomes durable behind all that was accepted before it.

        The caller can't be cancelled here: a cancellation is delivered behind the commit.

        Raises ``Conflict`` (``Fenced`` if a guard failed), ``Retry``, ``Full``, ``Unavailable`` or
        ``Closed``: then nothing was written. One of no groups is refused only where nobody knows
        what of all that is durable.
        """
        ...

    async def reclaim(self, start: bytes, end: bytes) -> None:
        """Give back the disk space of what was deleted in this range. May take minutes.

        Raises:
            Full, Retry, Closed, Unknown: commits are refused, or began to be refused meanwhile.
            Damaged: a table can't be read.
        """
        ...

    async def checkpoint(self, directory: Path) -> None:
        """Make ``directory``, which must not exist yet, a data directory with all that is durable.

        It is there when it is whole, and durable when this returns.

        Raises:
            CannotOpen: it can't be made there.
            Full, Retry, Closed: commits are refused, or began to be refused meanwhile.
            Damaged: a table can't be read.
        """
        ...

    def figures(self) -> StoreFigures:
        """What the store tells of itself, for the metrics."""
        ...

    async def close(self) -> None:
        """Make what was accepted durable, complete its futures, and close. May be repeated."""
        ...


@runtime_checkable
class ClearableStore(Store, Protocol):
    """An open store that can forget every row."""

    async def clear(self) -> None:
        """Delete every row. Nobody else may use the store meanwhile."""
        ...
