"""The actor that reads a whole table page by page, for a sink."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import structlog

from dynactor.actors.followers.outside import Inlet, Outlet, OutsideFailed
from dynactor.actors.followers.pacing import Pacing
from dynactor.actors.followers.sink import FillSink, RowSink, Send, TakeUnits
from dynactor.actors.followers.stored_checkpoint import CommitOutcome, StoredCheckpoint
from dynactor.actors.runtime.cancellation import outcomes
from dynactor.actors.runtime.fencing import is_fenced
from dynactor.actors.runtime.mailbox import Envelope, Mailbox
from dynactor.model.errors import InternalServerError
from dynactor.model.pauses import REFUSED_SECONDS, SCAN_SECONDS
from dynactor.storage import key_layout
from dynactor.storage.store import Damaged, Fenced, Full, Row, Store, StoreError

# Small, because a request waits while a page is processed.
PAGE_ROWS: Final = 128
PAGE_BYTES: Final = 256 * 1024

# The cursor after the last page.
DONE: Final = b""


# Maximum number of commits of an import that are not durable. One sync covers several.
_COMMITS_IN_FLIGHT: Final = 4

_HASH_BYTES: Final = 8
_HASH_SPACE: Final = 1 << 64

_log = structlog.get_logger("actors")


class _PageInFlight:
    """A page whose messages were sent, and are not all known to be carried out."""

    def __init__(self, following: bytes) -> None:
        self.following = following
        self.share_written = 0.0
        self.sent: deque[tuple[Send, Awaitable[None]]] = deque()


class TableScan:
    """The actor that feeds all items of a table to a sink; calls ``ended`` after the last.

    A sink gets each page from a new durable view, and a crashed scan continues from the stored
    cursor. So an item may be out of date or deleted by then. The followers that start after the
    scan apply every change since its start.

    An ``Outlet`` gets each page from a new durable view, too, but no cursor is stored: a crashed
    scan starts over. An ``Inlet`` gives rows instead of getting them; the scan commits them.

    Invariants: the effects of all items before the stored cursor are durable. When ``run`` ends, no
    message of the scan is in flight, so no message arrives after a later change.
    """

    def __init__(
        self,
        name: str,
        table_id: int,
        cursor_key: bytes,
        sink: RowSink[Any] | FillSink | Outlet | Inlet,
        store: Store,
        *,
        ended: Callable[[], None],
        failed: Callable[[str], None] | None = None,
        pacing: Pacing | None = None,
    ) -> None:
        """``failed`` gets the reason if the table can't be read, or its files can't be used.

        Without ``failed``, the scan crashes then. With ``pacing`` the scan rests while requests use
        the server.
        """
        self.name = name
        self.mailbox = Mailbox(1)
        self.in_progress: list[Envelope] = []
        # Whether the last message was refused because the disk is full; the scan sends it again.
        self.is_refused = False
        self._sink = sink
        self._store = store
        self._ended = ended
        self._failed = failed
        self._pacing = pacing
        self._prefix = key_layout.row_prefix(table_id)
        self._checkpoint = StoredCheckpoint(store, cursor_key, name)
        # The cursors after the last durable page, and after the last page that was read.
        self._cursor = self._next = self._prefix
        self._in_flight: deque[_PageInFlight] = deque()
        self._durable_pages = 0
        self._has_waited = False
        self._waited_seconds = 0.0
        # While a page is read, one page less than the sink allows is in flight.
        self._most_in_flight = sink.pages_in_flight - 1 if isinstance(sink, FillSink) else 0
        self._pages_per_cursor = sink.pages_per_cursor if isinstance(sink, FillSink) else 1

    @property
    def fraction_done(self) -> float:
        """The share of the table's hash space that was scanned.

        A page in flight counts by the share of its messages that are carried out.
        """
        begin = done = self._share_before(self._cursor)
        for page in self._in_flight:
            end = self._share_before(page.following)
            done += (end - begin) * page.share_written
            begin = end
        return done

    def _share_before(self, cursor: bytes) -> float:
        if cursor == DONE:
            return 1.0
        position = cursor[len(self._prefix) :][:_HASH_BYTES].ljust(_HASH_BYTES, b"\x00")
        return int.from_bytes(position, "big") / _HASH_SPACE

    async def run(self) -> None:
        """Read the table from the cursor to its end, unless the mailbox is closed first."""
        stopped = self.mailbox.when_closed()
        while not stopped.done():
            try:
                is_whole = await self._scan(stopped)
            except Fenced:
                raise
            except OutsideFailed as error:
                assert self._failed is not None
                self._failed(str(error))
                return
            except StoreError as error:
                starts_over = isinstance(self._sink, Outlet | Inlet)
                if isinstance(error, Damaged) or (starts_over and isinstance(error, Full)):
                    if self._failed is None:
                        raise
                    self._failed(str(error))
                    return
                if not starts_over:
                    raise
                _log.info("scan_restarted", scan=self.name, reason=str(error))
                await asyncio.wait([stopped], timeout=SCAN_SECONDS)
            else:
                if is_whole:
                    self._ended()
                return

    async def _scan(self, stopped: asyncio.Future[None]) -> bool:
        """Read from the cursor to the end; False if the scan was stopped first."""
        await self._start()
        end = key_layout.prefix_end(self._prefix)
        loop = asyncio.get_running_loop()
        sink = self._sink
        try:
            if isinstance(sink, Inlet):
                return await self._load(sink, stopped)
            while self._next != DONE:
                if stopped.done():
                    return False
                began, self._waited_seconds = loop.time(), 0.0
                rows = await self._store.durable().page(
                    self._next, end, max_rows=PAGE_ROWS, max_bytes=PAGE_BYTES
                )
                # The page after the last row is empty.
                self._next = rows[-1].key + b"\x00" if rows else DONE
                if not await self._give(rows, stopped):
                    return False
                took_seconds = loop.time() - began - self._waited_seconds
                if not await self._wait_in_flight(self._most_in_flight, stopped):
                    return False
                await self._rest(took_seconds, stopped)
            if not await self._wait_in_flight(0, stopped):
                return False
            if isinstance(sink, Outlet):
                await sink.finish()
            return True
        finally:
            if isinstance(sink, Outlet):
                await sink.abort()
            sent = [result for page in self._in_flight for _, result in page.sent]
            await outcomes(sent)

    async def _start(self) -> None:
        """Find the first page."""
        self._in_flight.clear()
        self._has_waited = False
        sink, stored = self._sink, None
        if isinstance(sink, Outlet):
            await sink.begin()
        else:
            stored = await self._checkpoint.load()
        if isinstance(sink, Inlet):
            stored = self._prefix
            await self._checkpoint.begin(stored, [sink.target])
        self._cursor = self._next = self._prefix if stored is None else stored

    async def _rest(self, took_seconds: float, stopped: asyncio.Future[None]) -> None:
        rest_seconds = self._pacing.seconds_after(took_seconds) if self._pacing else 0.0
        if rest_seconds:
            await asyncio.wait([stopped], timeout=rest_seconds)

    async def _give(self, stored: Sequence[Row], stopped: asyncio.Future[None]) -> bool:
        """Give a page to the sink; False if the scan was stopped first."""
        skipped = len(self._prefix)
        rows = [Row(key[skipped:], value) for key, value in stored]
        sink = self._sink
        if isinstance(sink, FillSink):
            return await self._send(sink, rows, stopped)
        if isinstance(sink, Outlet):
            await sink.write(rows)
            self._cursor = self._next
            return True
        assert not isinstance(sink, Inlet)
        return await self._commit(sink, rows, stopped)

    async def _load(self, inlet: Inlet, stopped: asyncio.Future[None]) -> bool:
        """Commit the rows that an inlet gives; False if the scan was stopped first."""
        loop = asyncio.get_running_loop()
        # A crash starts the scan over, so a commit need not wait until the last one is durable.
        commits: deque[asyncio.Future[None]] = deque()
        try:
            await inlet.open(stopped)
            while not stopped.done():
                loaded = await inlet.rows()
                if stopped.done():
                    return False
                if loaded is None:
                    await _all_durable(commits, 0)
                    return True
                began = loop.time()
                commits.append(await self._checkpoint.commit_later(self._prefix, loaded.rows))
                await self._rest(loaded.took_seconds + loop.time() - began, stopped)
                await _all_durable(commits, _COMMITS_IN_FLIGHT)
            return False
        finally:
            await inlet.close()
            await outcomes(commits)

    # -- rows, committed with the cursor ------------------------------------------------------

    async def _commit(
        self, sink: RowSink[Any], rows: Sequence[Row], stopped: asyncio.Future[None]
    ) -> bool:
        """Commit the rows for a page; False if the scan was stopped first."""
        outcome = await self._checkpoint.commit(self._next, stopped, sink.puts(rows))
        if outcome is CommitOutcome.STOPPED:
            return False
        if outcome is CommitOutcome.CHANGED:
            # Rows may be lost with the last cursor: continue from the stored one.
            self._next = self._checkpoint.value or self._prefix
        self._cursor = self._next
        return True

    # -- messages -----------------------------------------------------------------------------

    async def _send(
        self, sink: FillSink, rows: Sequence[Row], stopped: asyncio.Future[None]
    ) -> bool:
        """Perform the steps for a page; False if the scan was stopped first."""
        page = _PageInFlight(self._next)
        # Add the page before the first await, because a crash may leave the page half sent.
        self._in_flight.append(page)
        for step in sink.steps(rows):
            match step:
                case Send(ask):
                    page.sent.append((step, _asked(ask)))
                case TakeUnits():
                    if not await self._take(step, stopped):
                        return False
                case _:
                    # Let other tasks run, because a page is too much work for one turn of the loop.
                    await asyncio.sleep(0)
        return True

    async def _take(self, units: TakeUnits, stopped: asyncio.Future[None]) -> bool:
        """Wait until units are taken; False if the scan was stopped first."""
        loop = asyncio.get_running_loop()
        waited_since = loop.time()
        # Store the next cursor at once, because a repetition would take these units again.
        self._has_waited = True
        refused: asyncio.Future[None] | None = units.refused
        while refused is not None:
            try:
                # Until units are free, wait for the pages in flight to be durable.
                for page in self._in_flight:
                    if not await self._wait_durable(page, stopped):
                        return False
                await asyncio.wait([refused, stopped], return_when=asyncio.FIRST_COMPLETED)
            finally:
                refused.cancel()
            if stopped.done():
                return False
            refused = units.take()
        self._waited_seconds += loop.time() - waited_since
        return True

    async def _wait_in_flight(self, pages: int, stopped: asyncio.Future[None]) -> bool:
        """Wait until few pages are in flight, moving the cursor; False if the scan was stopped."""
        while len(self._in_flight) > pages:
            page = self._in_flight[0]
            if not await self._wait_durable(page, stopped):
                return False
            self._in_flight.popleft()
            self._cursor = page.following
            self._durable_pages += 1
            is_due = self._durable_pages % self._pages_per_cursor == 0 or self._has_waited
            if is_due or self._cursor == DONE:
                self._has_waited = False
                if not await self._checkpoint.store(self._cursor, stopped):
                    return False
        return True

    async def _wait_durable(self, page: _PageInFlight, stopped: asyncio.Future[None]) -> bool:
        """Wait until all messages are carried out; False if the scan was stopped first."""
        while page.sent:
            send, result = page.sent[0]
            try:
                await result
            except InternalServerError as error:
                if stopped.done():
                    return False
                if is_fenced(error):
                    raise
                _log.info("scan_refused", scan=self.name, error=str(error))
                self.is_refused = True
                await asyncio.wait([stopped], timeout=REFUSED_SECONDS)
                page.sent[0] = (send, _asked(send.ask))
            else:
                self.is_refused = False
                page.sent.popleft()
                page.share_written += send.share
        return True


async def _all_durable(commits: deque[asyncio.Future[None]], but: int) -> None:
    """Wait until the commits are durable, in order, except a number of the last ones."""
    while len(commits) > but:
        await commits[0]
        commits.popleft()


def _asked(ask: Callable[[], Awaitable[None]]) -> Awaitable[None]:
    """The reply to a message; an immediate refusal is an error of the reply."""
    try:
        return ask()
    except InternalServerError as error:
        refused: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        refused.set_exception(error)
        return refused
