"""The actor that fills a global secondary index with what was in the table before it.

It reads durable views page by page and puts entries, with a durable cursor. It may put what is
out of date: every change since the index began is in the logs, and the followers that start
behind it apply them all. After a crash it goes on from the cursor with a new view.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from dynactor.actors.derived.indexes.index_changes import IndexWriter
from dynactor.actors.derived.scan import DONE, read_page
from dynactor.actors.derived.stored_checkpoint import StoredCheckpoint
from dynactor.actors.partition.index_partition import Backfill
from dynactor.actors.runtime.mailbox import Envelope, Mailbox
from dynactor.actors.table.throttle import BackfillUnits
from dynactor.model.capacity.capacity import write_units
from dynactor.model.errors import InternalServerError
from dynactor.model.indexes.index import IndexDefinition, entry_position, global_entry
from dynactor.model.keys import key as keys
from dynactor.model.keys.key import KeySchema
from dynactor.model.tables.table import TABLE_INDEX_ID
from dynactor.model.values.item import decode, part_decoder
from dynactor.model.values.stored_item import StoredItem
from dynactor.storage import codec, key_layout
from dynactor.storage.store import Row, Store

# While one page becomes durable, the next one is read.
_PAGES_AHEAD: Final = 2
# A write takes several turns of the loop, and a sync too: the thread that runs it gets on between
# turns. So of a page only so many rows are made entries in one turn.
_TURN_ROWS: Final = 32
# While others use the table it rests behind each page, so many times as long as that took to make.
_REST: Final = 2.0
# Where requests leave nothing of the loop, a longer rest would be of no use to them.
_LONGEST_REST_SECONDS: Final = 0.01
# How many pages a crash may make it read again.
_CURSOR_PAGES: Final = 64
_HASH_BYTES: Final = 8
_HASH_SPACE: Final = 1 << 64


class _Entry(NamedTuple):
    """An entry to be put, the write units that it takes, and its item's position in the table."""

    position: bytes
    value: bytes
    units: int
    item: bytes


class _Page:
    """A page of items on its way into the index.

    ``entries`` by the numbers of the index's partitions; ``asked``, of those messages that are
    not known to be carried out, what waits for that and how many entries each has; ``following``
    is where the next page begins.
    """

    def __init__(self, items: int, following: bytes) -> None:
        self.entries: dict[int, list[_Entry]] = {}
        self.asked: deque[tuple[Awaitable[None], int]] = deque()
        self.written_entries = 0
        self.items = items
        self.following = following

    @property
    def share_written(self) -> float:
        """How much of the page is durably in the index; 0 until it has entries."""
        entries = sum(map(len, self.entries.values()))
        return self.written_entries / entries if entries else 0.0

    async def wait_written(self) -> None:
        """Wait until all that was asked for is durable."""
        while self.asked:
            carried_out, entries = self.asked[0]
            await carried_out
            self.asked.popleft()
            self.written_entries += entries


class IndexBackfill:
    """The actor.

    Invariant: the entries of all items before the cursor are durably in the index, and the
    stored cursor is at or before it.
    """

    def __init__(
        self,
        index: IndexDefinition,
        table_id: int,
        table_key: KeySchema,
        writer: IndexWriter,
        store: Store,
        *,
        units: BackfillUnits,
        ended: Callable[[], None],
    ) -> None:
        self.name = f"backfill of index {index.name}"
        self.mailbox = Mailbox(1)
        self.in_hand: list[Envelope] = []
        self.read_items = 0
        # Since the server started; what a crash made it put again was consumed again.
        self.write_units = 0
        # How often entries had to wait for units of the index.
        self.throttle_events = 0
        self._index = index
        self._table_key = table_key
        self._holds_whole_items = index.projection.type == "ALL"
        # Whole items go as they are: no more is looked at than their keys.
        self._decode = (
            part_decoder([attribute.name for attribute in index.key_schema.attributes])
            if self._holds_whole_items
            else decode
        )
        self._writer = writer
        self._store = store
        self._units = units
        self._ended = ended
        self._prefix = key_layout.row_prefix(table_id, TABLE_INDEX_ID)
        cursor_key = key_layout.backfill_cursor(table_id, index.index_id)
        self._stored_cursor = StoredCheckpoint(store, cursor_key, self.name)
        self._cursor = self._prefix
        # Pages in flight behind the cursor, in order.
        self._pages: deque[_Page] = deque()

    @property
    def fraction_done(self) -> float:
        """How much of the table is in the index, as the share of its hash space.

        Of a page that is under way, the entries that are written count.
        """
        begin = done = self._share_before(self._cursor)
        for page in self._pages:
            end = self._share_before(page.following)
            done += (end - begin) * page.share_written
            begin = end
        return done

    def _share_before(self, cursor: bytes) -> float:
        """The share of the hash space before a cursor."""
        if cursor == DONE:
            return 1.0
        position = cursor[len(self._prefix) :][:_HASH_BYTES].ljust(_HASH_BYTES, b"\x00")
        return int.from_bytes(position, "big") / _HASH_SPACE

    async def run(self) -> None:
        """Read the table from the cursor to its end, unless the mailbox is closed before."""
        stored = await self._stored_cursor.load()
        if stored is not None:
            self._cursor = stored
        end = key_layout.end_of(self._prefix)
        start = self._cursor
        closed = self.mailbox.when_closed()
        loop = asyncio.get_running_loop()
        self._pages = pages = deque[_Page]()
        passed = 0
        stored_at_events = 0
        try:
            while pages or (start != DONE and not self.mailbox.closed):
                if start != DONE and len(pages) < _PAGES_AHEAD and not self.mailbox.closed:
                    began = loop.time()
                    rows, start = await read_page(self._store.durable(), start, end)
                    page = _Page(len(rows), start)
                    # Known before it is whole: it may be left half asked for.
                    pages.append(page)
                    await self._fill(page, rows)
                    took_seconds = loop.time() - began
                    if not await self._put_entries(page, closed):
                        return
                    if self._units.is_table_in_use():
                        rest_seconds = min(_REST * took_seconds, _LONGEST_REST_SECONDS)
                        await asyncio.wait([closed], timeout=rest_seconds)
                    continue
                await self._pass(pages[0])
                pages.popleft()
                passed += 1
                # Units that were waited for are not taken twice.
                has_waited = self.throttle_events > stored_at_events
                if passed % _CURSOR_PAGES == 0 or has_waited or self._cursor == DONE:
                    stored_at_events = self.throttle_events
                    await self._stored_cursor.store(self._cursor, closed)
        except InternalServerError:
            # The index is being closed, and the store takes no writes.
            if not self.mailbox.closed:
                raise
        finally:
            # What is under way would come late to an index whose followers have begun.
            asked = [carried_out for page in pages for carried_out, _ in page.asked]
            await asyncio.gather(*asked, return_exceptions=True)
        if self._cursor == DONE:
            self._ended()

    async def _fill(self, page: _Page, rows: list[Row]) -> None:
        """Make entries of the items in these rows, and let others have the loop in between."""
        for at in range(0, len(rows), _TURN_ROWS):
            for row in rows[at : at + _TURN_ROWS]:
                self._add_entry(page, row)
            await asyncio.sleep(0)

    def _add_entry(self, page: _Page, row: Row) -> None:
        stored = codec.decode(row.value)
        entry = global_entry(self._index, self._table_key, self._decode(stored.data))
        if entry is None:
            return
        item = row.key[len(self._prefix) :]
        position = entry_position(self._index, entry, keys.without_hash(item))
        value = row.value
        if not self._holds_whole_items:
            stored = StoredItem.of(entry, stored.version)
            value = codec.encode(stored)
        number = self._writer.number_of(position)
        put = _Entry(position, value, write_units(stored.size_bytes), item)
        page.entries.setdefault(number, []).append(put)

    async def _put_entries(self, page: _Page, closed: asyncio.Future[None]) -> bool:
        """Ask for the entries of a page as far as the index has units, then for the others.

        Returns:
            False if the mailbox was closed before all were asked for.
        """
        for number, entries in page.entries.items():
            begin = 0
            for at, entry in enumerate(entries):
                is_waiting = False
                while (wait := self._units.take(number, entry.units)) is not None:
                    if not is_waiting:
                        is_waiting = True
                        self.throttle_events += 1
                        self._ask(page, number, entries[begin:at])
                        begin = at
                    try:
                        # There is time to see how far it came.
                        for under_way in self._pages:
                            await under_way.wait_written()
                        await asyncio.wait([wait, closed], return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        wait.cancel()
                    if closed.done():
                        return False
                self.write_units += entry.units
            self._ask(page, number, entries[begin:])
        return True

    def _ask(self, page: _Page, number: int, entries: Sequence[_Entry]) -> None:
        if entries:
            message = Backfill(
                tuple([(entry.position, entry.value) for entry in entries]),
                (entries[0].item, entries[-1].item),
            )
            page.asked.append((self._writer.ask(number, message), len(entries)))

    async def _pass(self, page: _Page) -> None:
        """Wait until a page is durable, all of it, and go on behind it."""
        await page.wait_written()
        self.read_items += page.items
        self._cursor = page.following
