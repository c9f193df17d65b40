"""The actor that fills a table with the items of a backup.

It reads them page by page and has the table's partitions, who alone write its rows, put them, with
a durable cursor. After a crash it goes on from the cursor: what comes once more is there already.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from typing import Final

import structlog
from msgspec import Struct

from dynactor.actors.derived.pacing import Pacing
from dynactor.actors.derived.scan import DONE, read_page
from dynactor.actors.derived.stored_checkpoint import StoredCheckpoint
from dynactor.actors.partition.messages import RestoreItems
from dynactor.actors.runtime.fencing import is_fenced
from dynactor.actors.runtime.mailbox import Envelope, Mailbox
from dynactor.actors.runtime.replies import for_nobody
from dynactor.actors.table.table import Table
from dynactor.model.errors import InternalServerError
from dynactor.model.tables.table import Restoration
from dynactor.storage import key_layout
from dynactor.storage.store import Damaged, Row, Store

# A write of this kind takes a multiple of what it takes to read its row: a message has few of them.
_MESSAGE_ROWS: Final = 16
# How many pages a crash may make it read again.
_CURSOR_PAGES: Final = 32
_REFUSED_SECONDS: Final = 0.1

_log = structlog.get_logger("actors")


class Filled(Struct, frozen=True, tag=True):
    """All items are durably in the table; or not, as the backup can't be read."""

    failure: str | None = None


class TableFilling:
    """The actor.

    Invariant: all items before the stored cursor are durably in the table.
    """

    def __init__(
        self,
        table: Table,
        restoration: Restoration,
        store: Store,
        pause: Pacing,
        *,
        ended: Callable[[Filled], None],
    ) -> None:
        self.name = f"filling of {table.definition.name}"
        self.mailbox = Mailbox(1)
        self.in_hand: list[Envelope] = []
        # Whether the store takes nothing, as the disk is full: so far, it goes on trying.
        self.waits_for_room = False
        self._table = table
        self._store = store
        self._pause = pause
        self._ended = ended
        self._prefix = key_layout.row_prefix(restoration.backup_rows_id)
        cursor_key = key_layout.filling_cursor(table.definition.table_id)
        self._cursor = StoredCheckpoint(store, cursor_key, self.name)

    async def run(self) -> None:
        """Put the items from the cursor on, unless the mailbox is closed before."""
        closed = self.mailbox.when_closed()
        try:
            is_whole = await self._fill(closed)
        except Damaged as error:
            self._ended(Filled(str(error)))
        else:
            if is_whole:
                self._ended(Filled())

    async def _fill(self, closed: asyncio.Future[None]) -> bool:
        """Put what is missing; False if the mailbox was closed meanwhile."""
        loop = asyncio.get_running_loop()
        stored = await self._cursor.load()
        start = self._prefix if stored is None else stored
        end = key_layout.end_of(self._prefix)
        pages = 0
        while start != DONE:
            began = loop.time()
            rows, following = await read_page(self._store.durable(), start, end)
            asked = []
            for message in self._messages(rows):
                asked.append((message, self._ask(message)))
                # One is worked off, and then others have their turn.
                await asyncio.sleep(0)
            took_seconds = loop.time() - began
            for message, reply in asked:
                await self._wait_put(message, reply, closed)
            if closed.done():
                return False
            start = following
            pages += 1
            if (pages % _CURSOR_PAGES == 0 or start == DONE) and not await self._cursor.store(
                start, closed
            ):
                return False
            rest_seconds = self._pause.seconds_after(took_seconds)
            if rest_seconds:
                await asyncio.wait([closed], timeout=rest_seconds)
        return True

    def _messages(self, rows: list[Row]) -> list[RestoreItems]:
        """The rows of a page as messages, each of them for one partition."""
        by_partition: defaultdict[int, list[Row]] = defaultdict(list)
        skipped = len(self._prefix)
        for key, value in rows:
            position = key[skipped:]
            by_partition[self._table.number_of(position)].append(Row(position, value))
        return [
            RestoreItems(*zip(*part[at : at + _MESSAGE_ROWS], strict=True))
            for part in by_partition.values()
            for at in range(0, len(part), _MESSAGE_ROWS)
        ]

    def _ask(self, message: RestoreItems) -> asyncio.Future[None]:
        """Have a partition put items; the future completes once they are durable."""
        size_bytes = sum(map(len, message.rows))
        try:
            reply = self._table.send(message.positions[0], message, size_bytes, always=True)
        except InternalServerError as error:
            refused = asyncio.get_running_loop().create_future()
            refused.set_exception(error)
            reply = refused
        # If another reply ends the filling, nobody reads this one.
        reply.add_done_callback(for_nobody)
        return reply

    async def _wait_put(
        self, message: RestoreItems, reply: asyncio.Future[None], closed: asyncio.Future[None]
    ) -> None:
        """Wait until items are durable; ask again, however long the store takes no writes."""
        while True:
            try:
                await reply
            except InternalServerError as error:
                if closed.done():
                    return
                if is_fenced(error):
                    raise
                _log.info("restore_refused", who=self.name, error=str(error))
                self.waits_for_room = True
                await asyncio.wait([closed], timeout=_REFUSED_SECONDS)
                reply = self._ask(message)
            else:
                self.waits_for_room = False
                return
