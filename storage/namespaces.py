"""Namespaces: separate tables for each region, or for each access key in a region.

Each namespace has a slice of the store's keys and behaves like a store of its own. The home
namespace is that of the configured region. Its keys have no prefix, like all keys of a server
without separation. A row records the kind of separation: with another kind, a later start would not
find the namespaces' tables.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import MsgspecError, Struct

from dynactor.storage import key_layout
from dynactor.storage.row_pages import rows_in
from dynactor.storage.store import (
    NOT_CACHED,
    CannotOpen,
    Damaged,
    Group,
    Locked,
    NotCached,
    Row,
    Store,
    View,
)
from dynactor.storage.store_figures import StoreFigures

T = TypeVar("T")

# The unit that has separate tables: the server, each region, or each access key in a region.
Separation: TypeAlias = Literal["shared", "region", "access key"]

_OPTIONS: Final[dict[Separation, str]] = {
    "shared": "for all regions together: give neither --regions apart nor --compat without "
    "--shared-db",
    "region": "for each region: give --regions apart",
    "access key": "for each access key and region: give --compat dynamodb-local without "
    "--shared-db",
}


class Namespace(Struct, frozen=True):
    """The tables of an access key in a region, or of all access keys if the id is empty."""

    region: str
    access_key_id: str = ""


class _Stored(Struct, frozen=True):
    """The separation of a store, and the region of its home namespace."""

    separation: Separation
    home_region: str


def separation_row(separation: Separation, home_region: str) -> tuple[bytes, bytes]:
    """The row, key and value, that records a store's separation."""
    stored = _Stored(separation, home_region)
    return key_layout.SEPARATION, msgspec.json.encode(stored)


async def settle_separation(store: Store, wanted: Separation, region: str) -> str:
    """Record the separation of the store; returns the region of the home namespace.

    A store without separation can start to separate regions: its tables then belong to ``region``.
    Raises ``CannotOpen`` if requests could not reach tables that exist, or ``StoreError``.
    """
    row, head = await store.latest.load([key_layout.SEPARATION, key_layout.CATALOG_HEAD])
    stored = None if row is None else _decode(row)
    if stored is not None:
        if stored.separation != wanted:
            raise CannotOpen(
                f"The data has tables {_OPTIONS[stored.separation]}, or choose another directory."
            )
        return stored.home_region
    if wanted == "shared":
        return region
    if wanted == "access key" and head is not None:
        raise CannotOpen(f"The data has tables {_OPTIONS['shared']}, or choose another directory.")
    key, value = separation_row(wanted, region)
    await (await store.commit([Group(key, None, value)]))
    return region


async def stored_namespaces(view: View) -> list[Namespace]:
    """The namespaces that ever had a table, except the home."""
    found = []
    async for row in rows_in(view, *key_layout.NAMESPACES):
        name, _ = key_layout.split_namespace(row.key)
        region, _, access_key_id = name.partition("/")
        found.append(Namespace(region, access_key_id))
    return found


class _SliceKeys:
    """Converts keys of a namespace to keys of the store."""

    def __init__(self, namespace: Namespace) -> None:
        name = f"{namespace.region}/{namespace.access_key_id}"
        self._prefixes = key_layout.namespace_prefixes(name)

    def stored(self, key: bytes) -> bytes:
        """The stored form of a key."""
        return self._prefixes[key[0]] + key[1:]

    def stored_range(self, start: bytes, end: bytes) -> tuple[bytes, bytes]:
        """The stored form of a range of keys of one kind; the end is exclusive."""
        prefix = self._prefixes[start[0]]
        if end[0] == start[0]:
            return prefix + start[1:], prefix + end[1:]
        assert end == bytes([start[0] + 1]), "a range has keys of one kind"
        return prefix + start[1:], key_layout.prefix_end(prefix)

    def within(self, row: Row) -> Row:
        _, key = key_layout.split_namespace(row.key)
        return Row(key, row.value)


class StoreSlice:
    """A namespace's part of a store, with a store's interface. Closing it closes nothing."""

    def __init__(self, store: Store, namespace: Namespace) -> None:
        self._store = store
        self._keys = _SliceKeys(namespace)

    @property
    def latest(self) -> View:
        """The owners' view of the namespace."""
        return _ViewSlice(self._store.latest, self._keys)

    def durable(self) -> View:
        """The durable view of the namespace."""
        return _ViewSlice(self._store.durable(), self._keys)

    def eventual(self) -> View:
        """The view of the namespace that may lag."""
        return _ViewSlice(self._store.eventual(), self._keys)

    async def in_snapshot(
        self, read: Callable[[View], Awaitable[T]], *, calls_once: bool, eventual: bool = False
    ) -> T:
        """Read one durable state of the namespace."""

        async def read_slice(view: View) -> T:
            return await read(_ViewSlice(view, self._keys))

        return await self._store.in_snapshot(read_slice, calls_once=calls_once, eventual=eventual)

    @asynccontextmanager
    async def locked(self, heads: Sequence[bytes]) -> AsyncIterator[Locked]:
        """Lock heads of the namespace: see ``Store``."""
        async with self._store.locked(list(map(self._keys.stored, heads))) as locked:
            yield _LockedSlice(locked, self._keys, self._stored)

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        """Commit rows of the namespace."""
        return await self._store.commit([self._stored(group) for group in groups])

    def commit_nowait(self, groups: Sequence[Group]) -> Future[None] | None:
        """Commit rows of the namespace, without an await."""
        return self._store.commit_nowait([self._stored(group) for group in groups])

    async def reclaim(self, start: bytes, end: bytes) -> None:
        """Reclaim a range of the namespace."""
        await self._store.reclaim(*self._keys.stored_range(start, end))

    async def checkpoint(self, directory: Path) -> None:
        """Copy the rows of all namespaces."""
        await self._store.checkpoint(directory)

    def figures(self) -> StoreFigures:
        """The figures of the whole store."""
        return self._store.figures()

    async def close(self) -> None:
        """Do nothing, because other namespaces use the store."""

    def _stored(self, group: Group) -> Group:
        stored = self._keys.stored
        return Group(
            stored(group.head_key),
            group.expected_head,
            group.head,
            puts=[(stored(key), value) for key, value in group.puts],
            deletes=[stored(key) for key in group.deletes],
            range_deletes=[self._keys.stored_range(*each) for each in group.range_deletes],
            guards=[(stored(key), value) for key, value in group.guards],
            raises=[stored(key) for key in group.raises],
            discards=[self._keys.stored_range(*each) for each in group.discards],
        )


class _LockedSlice:
    """Locked heads of one namespace."""

    def __init__(
        self, locked: Locked, keys: _SliceKeys, stored_group: Callable[[Group], Group]
    ) -> None:
        self._locked = locked
        self._keys = keys
        self._stored_group = stored_group

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return await self._locked.load(list(map(self._keys.stored, keys)))

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        return await self._locked.commit(list(map(self._stored_group, groups)))


class _ViewSlice:
    """A view of one namespace."""

    def __init__(self, view: View, keys: _SliceKeys) -> None:
        self._view = view
        self._keys = keys

    def cached(self, key: bytes) -> bytes | NotCached | None:
        return self._view.cached(self._keys.stored(key))

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return await self._view.load([self._keys.stored(key) for key in keys])

    async def page(
        self, start: bytes, end: bytes, *, reverse: bool = False, max_rows: int, max_bytes: int
    ) -> list[Row]:
        low, high = self._keys.stored_range(start, end)
        rows = await self._view.page(
            low, high, reverse=reverse, max_rows=max_rows, max_bytes=max_bytes
        )
        return [self._keys.within(row) for row in rows]

    def page_nowait(
        self, start: bytes, end: bytes, *, reverse: bool = False, max_rows: int, max_bytes: int
    ) -> list[Row] | NotCached:
        low, high = self._keys.stored_range(start, end)
        rows = self._view.page_nowait(
            low, high, reverse=reverse, max_rows=max_rows, max_bytes=max_bytes
        )
        return rows if rows is NOT_CACHED else [self._keys.within(row) for row in rows]

    async def first_rows(
        self, ranges: Sequence[tuple[bytes, bytes]], *, max_rows: int, reverse: bool = False
    ) -> list[list[Row]]:
        stored = [self._keys.stored_range(*each) for each in ranges]
        found = await self._view.first_rows(stored, max_rows=max_rows, reverse=reverse)
        return [list(map(self._keys.within, rows)) for rows in found]

    async def load_with_page(
        self, keys: Sequence[bytes], start: bytes, end: bytes, *, max_rows: int, max_bytes: int
    ) -> tuple[list[bytes | None], list[Row]]:
        low, high = self._keys.stored_range(start, end)
        values, rows = await self._view.load_with_page(
            list(map(self._keys.stored, keys)), low, high, max_rows=max_rows, max_bytes=max_bytes
        )
        return values, list(map(self._keys.within, rows))


def _decode(row: bytes) -> _Stored:
    try:
        return msgspec.json.decode(row, type=_Stored)
    except MsgspecError as error:
        raise Damaged(f"The row that separates namespaces has an unknown form: {error}") from error
