"""Random histories of a table with point-in-time recovery, and the model of its states."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from copy import deepcopy
from random import Random
from typing import Final, TypeVar

import anyio
from msgspec import structs

from dynactor.actors.backups.point_in_time import UpdateRecovery
from dynactor.actors.database.database import Database
from dynactor.actors.restores.restore_phases import RestoreTableToTime
from dynactor.actors.table.messages import CreateTable, KeepStreams
from dynactor.actors.table.table import Table
from dynactor.model.errors import ResourceInUseException
from dynactor.model.tables.restore_rules import RestoreOverrides, restored
from dynactor.model.values.item import Item
from dynactor.model.writes.write import Delete
from dynactor.storage import codec, key_layout
from dynactor.storage.store import Store
from dynactor.streams import change_log
from tests.support.databases.backed_up import indexed_definition, rows_of, wait_followed
from tests.support.databases.databases import (
    SetClock,
    TickingClock,
    put,
    table_definition,
    thread,
)
from tests.support.databases.expiry import switch, until_items, until_status
from tests.support.databases.splitting import halve
from tests.support.databases.transacting import transact
from tests.support.stores.faulty_store import FaultyStore

T = TypeVar("T")

NAME: Final = "Thread"
_DEADLINE_SECONDS: Final = 60
_FORUMS: Final = 8
_SUBJECTS: Final = 12
_PAGE_ROWS: Final = 1_000
_PAGE_BYTES: Final = 1 << 24
_EXPIRES: Final = "expires"


async def enable_recovery(database: Database, name: str = NAME, days: int | None = 35) -> None:
    """Enable point-in-time recovery, or disable it without days."""
    await database.ask(UpdateRecovery(name, days))


async def recoverable_table(database: Database, days: int = 35) -> Table:
    """Create the table Thread, without items, and enable its recovery."""
    await database.ask(CreateTable(table_definition()))
    await enable_recovery(database, days=days)
    return database.table(NAME)


async def restore_to(
    database: Database, epoch_seconds: float | None, name: str = "Restored"
) -> None:
    """Start to restore the table Thread to a time."""
    source = database.table_in_any_state(NAME).definition
    definition = restored(source, name, RestoreOverrides())
    await database.ask(RestoreTableToTime(definition, NAME, epoch_seconds))


async def trim(database: Database) -> None:
    """Trim logs and delete expired backups, as the database does every few minutes."""
    await database.actor.ref.ask(KeepStreams(), always=True)


async def items_of(store: Store, table: Table) -> dict[str, Item]:
    """The items of a table, by key."""
    start = key_layout.row_prefix(table.definition.table_id)
    end = key_layout.prefix_end(start)
    found: dict[str, Item] = {}
    while rows := await store.durable().page(
        start, end, max_rows=_PAGE_ROWS, max_bytes=_PAGE_BYTES
    ):
        for row in rows:
            item = codec.decode(row.value).item
            found[_name(item)] = item
        start = rows[-1].key + b"\x00"
    return found


async def record_times(store: Store, table: Table) -> list[int]:
    """The commit times of the changes in a table's logs, in microseconds."""
    found = []
    for number in table.record.log_numbers:
        records = await change_log.read(
            store.durable(), number, 0, max_records=_PAGE_ROWS, max_bytes=_PAGE_BYTES
        )
        found += [record.commit_time_us for record in records]
    return found


async def transactions_apart(
    database: Database, store: Store, clock: TickingClock
) -> tuple[list[Item], list[float]]:
    """Put and delete items by transactions whose parts have different times.

    Returns:
        The keys of the items, and the times of all changes.
    """
    table = await recoverable_table(database)
    clock.is_ticking = True
    keys = [thread(f"f{number}", "s") for number in range(12)]
    for number in range(3):
        items = [{**key, "votes": {"N": str(number)}} for key in keys]
        await transact(database, *((table, put(item)) for item in items))
    await transact(database, *((table, Delete(key)) for key in keys))
    clock.is_ticking = False
    times = sorted(set(await record_times(store, table)))
    assert len(times) > len(keys), "the parts of transactions have different times"
    return keys, [time_us / 1e6 for time_us in times]


@asynccontextmanager
async def write_in_flight(
    store: FaultyStore, database: Database, clock: SetClock
) -> AsyncIterator[Item]:
    """A new table with a write that is not durable yet, a second ago; yields its item.

    After the context, the write is durable.
    """
    table = await recoverable_table(database)
    store.hold_syncs()
    written = thread("f", "s")
    writing = asyncio.ensure_future(table.write(put(written)))
    await wait_held(store, 1)
    clock.step(1)
    yield written
    await store.release_syncs()
    await writing


async def wait_held(
    store: FaultyStore, count: int, unless: asyncio.Future[T] | None = None
) -> None:
    """Wait until a store holds this many syncs, or until a future is done."""
    with anyio.fail_after(_DEADLINE_SECONDS):
        while store.held_count < count and not (unless is not None and unless.done()):
            await asyncio.sleep(0)


def _name(item: Mapping[str, object]) -> str:
    return f"{item['forum']} {item['subject']}"


class History:
    """Writes at random, and remembers the table's state at each time."""

    def __init__(self, seed: int, clock: SetClock) -> None:
        self.draw = Random(seed)
        self.clock = clock
        self.items: dict[str, Item] = {}
        self._times: list[float] = []
        self._states: list[dict[str, Item]] = []

    async def begin(self, database: Database) -> None:
        """Create the table with time to live and some items, and enable its recovery."""
        await database.ask(CreateTable(indexed_definition()))
        table = database.table(NAME)
        for _ in range(20):
            await self.write(database)
        await switch(database, NAME, _EXPIRES, enabled=True)
        await until_status(table, "ENABLED")
        await self.step(database)
        await enable_recovery(database, days=1)

    async def step(self, database: Database, seconds: float | None = None) -> None:
        """Remember the state at the present time, advance the clock, and let items expire."""
        self._times.append(self.clock.now_epoch_seconds())
        self._states.append(deepcopy(self.items))
        self.clock.step(self.draw.choice((0.25, 1, 7, 600)) if seconds is None else seconds)
        await self._expire(database)

    def state_at(self, epoch_seconds: float) -> dict[str, Item]:
        """The items that the table had at a time."""
        at = bisect_right(self._times, epoch_seconds + 0.000_001)
        now = self.clock.now_epoch_seconds()
        return self.items if epoch_seconds >= now else self._states[at - 1]

    def earliest(self, database: Database) -> float:
        """The beginning of the window."""
        recovery = database.table(NAME).definition.point_in_time_recovery
        assert recovery is not None
        return recovery.earliest_epoch_seconds(self.clock.now_epoch_seconds())

    def time(self, database: Database) -> float:
        """A time in the window: mostly whole seconds, and times of changes."""
        first, now = self.earliest(database), self.clock.now_epoch_seconds()
        known = [each for each in self._times if each >= first]
        if known and self.draw.randrange(2):
            return self.draw.choice(known)
        return min(now, max(first, float(round(self.draw.uniform(first, now)))))

    async def run(self, database: Database, steps: int) -> None:
        """Write, split, trim, let items expire and switch the recovery."""
        for _ in range(steps):
            chance = self.draw.randrange(100)
            if chance < 60:
                await self.write(database)
            elif chance < 75:
                await self.transact(database)
            elif chance < 90:
                await self.step(database)
            elif chance < 94:
                await self.split(database)
            elif chance < 98:
                await trim(database)
            elif chance == 98:
                await self.step(database, self.draw.choice((3_600, 60_000)))
            else:
                await enable_recovery(database, days=None)
                await self.write(database)
                await self.step(database)
                await enable_recovery(database, days=1)

    async def write(self, database: Database) -> None:
        """Put or delete an item."""
        item = self._item()
        write = put(item) if self.draw.randrange(4) else Delete(_key(item))
        await database.table(NAME).write(write)
        self._apply(item, is_put=not isinstance(write, Delete))

    async def transact(self, database: Database) -> None:
        """Put or delete some items in one transaction."""
        chosen = {_name(item): item for item in (self._item() for _ in range(4))}
        table = database.table(NAME)
        is_put = [bool(self.draw.randrange(4)) for _ in chosen]
        await transact(
            database,
            *(
                (table, put(item) if each else Delete(_key(item)))
                for item, each in zip(chosen.values(), is_put, strict=True)
            ),
        )
        for item, each in zip(chosen.values(), is_put, strict=True):
            self._apply(item, is_put=each)

    async def split(self, database: Database) -> None:
        """Split a partition in two."""
        table = database.table(NAME)
        # The table is not split while one of its followers changes its phase.
        with suppress(ResourceInUseException):
            await halve(database, table, self.draw.choice(table.record.partitions).number)

    async def _expire(self, database: Database) -> None:
        """Wait until the items are deleted whose time has come."""
        now = int(self.clock.now_epoch_seconds())
        due = [
            name
            for name, item in self.items.items()
            if _EXPIRES in item and float(item[_EXPIRES]["N"]) < now
        ]
        if not due:
            return
        for name in due:
            del self.items[name]
        await until_items(database, NAME, len(self.items))

    def _item(self) -> Item:
        draw = self.draw
        item = thread(f"f{draw.randrange(_FORUMS)}", f"s{draw.randrange(_SUBJECTS)}")
        item["text"] = {"S": "x" * draw.randrange(100)}
        for name in ("posts", "votes"):
            if draw.randrange(3):
                item[name] = {"N": str(draw.randrange(20))}
        if not draw.randrange(6):
            at = int(self.clock.now_epoch_seconds()) + draw.randrange(1, 900)
            item[_EXPIRES] = {"N": str(at)}
        return item

    def _apply(self, item: Item, *, is_put: bool) -> None:
        if is_put:
            self.items[_name(item)] = item
        else:
            self.items.pop(_name(item), None)


def _key(item: Item) -> Item:
    return {name: item[name] for name in ("forum", "subject")}


async def wait_active(database: Database, name: str) -> Table:
    """Wait until a restored table is ACTIVE."""
    with anyio.fail_after(_DEADLINE_SECONDS):
        while database.table_in_any_state(name).definition.status != "ACTIVE":
            await asyncio.sleep(0)
    return database.table(name)


async def rebuilt(
    database: Database, store: Store, items: Mapping[str, Item], name: str
) -> dict[bytes, bytes]:
    """The rows of a new table with these items."""
    await database.ask(CreateTable(structs.replace(indexed_definition(), name=name)))
    table = database.table(name)
    for item in items.values():
        await table.write(put(item))
    await wait_followed(table)
    return await rows_of(store, table.definition.table_id)
