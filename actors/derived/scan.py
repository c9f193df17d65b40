"""Reading a whole table page by page, from a durable view or from a stored cursor on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from dynactor.actors.derived.sink import RowSink
from dynactor.actors.derived.stored_checkpoint import Outcome, StoredCheckpoint
from dynactor.actors.runtime.mailbox import Envelope, Mailbox
from dynactor.storage import codec, key_layout
from dynactor.storage.store import Row, Store, View

# Few: a request waits while a page is processed.
PAGE_ROWS: Final = 128
_PAGE_BYTES: Final = 256 * 1024

# The cursor behind the last page.
DONE: Final = b""


class Page(NamedTuple):
    """Some rows, and the cursor of the next page: its first key, or ``DONE``."""

    rows: list[Row]
    following: bytes


async def read_page(view: View, start: bytes, end: bytes) -> Page:
    """The rows from ``start`` on, before ``end``. The page behind the last row is empty.

    Raises:
        Damaged, Closed: as the view.
    """
    rows = await view.page(start, end, max_rows=PAGE_ROWS, max_bytes=_PAGE_BYTES)
    return Page(rows, rows[-1].key + b"\x00" if rows else DONE)


class TableScan:
    """The actor that gives all items of a table to a sink, ``ended`` is called behind the last.

    Each page is read from a new durable view. So an item may be out of date, and it may be
    gone: the followers that start behind the scan apply every change since before it.

    Invariant: the rows of all items before the stored cursor are durable.
    """

    def __init__(
        self,
        name: str,
        table_id: int,
        cursor_key: bytes,
        sink: RowSink[Any],
        store: Store,
        *,
        ended: Callable[[], None],
    ) -> None:
        self.name = name
        self.mailbox = Mailbox(1)
        self.in_hand: list[Envelope] = []
        self._sink = sink
        self._store = store
        self._ended = ended
        self._prefix = key_layout.row_prefix(table_id)
        self._cursor = StoredCheckpoint(store, cursor_key, name)

    async def run(self) -> None:
        """Read the table from the cursor to its end, unless the mailbox is closed before."""
        closed = self.mailbox.when_closed()
        end = key_layout.end_of(self._prefix)
        await self._cursor.load()
        while self._cursor.value != DONE and not closed.done():
            start = self._cursor.value or self._prefix
            page = await read_page(self._store.durable(), start, end)
            puts = [(key, b"") for row in page.rows if (key := self._row(row)) is not None]
            # A changed cursor is where the next page starts: rows may be lost with the last one.
            if await self._cursor.commit(page.following, closed, puts) is Outcome.STOPPED:
                return
        if self._cursor.value == DONE:
            self._ended()

    def _row(self, row: Row) -> bytes | None:
        entry = self._sink.entry(codec.decode(row.value))
        return None if entry is None else self._sink.row(entry, row.key[len(self._prefix) :])
