"""The actor that lists when the items expire that were in a table before time to live was.

It reads durable views page by page; the rows of a page are written together with the cursor. A
row may be out of date: every change since the beginning is in the logs, and the expirers that
start behind it apply them all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dynactor.actors.derived.expiry.expirer import ExpiryRows
from dynactor.actors.runtime.commit_retry import commit_with_retries
from dynactor.actors.runtime.mailbox import Envelope, Mailbox
from dynactor.storage import codec, key_layout
from dynactor.storage.store import Conflict, Group, Row, Store

# Few: a request waits for as many as are in work.
_PAGE_ROWS: Final = 128
_PAGE_BYTES: Final = 256 * 1024

_DONE: Final = b""


class ExpiryBackfill:
    """The actor.

    Invariant: the rows of all items before the stored cursor are durable.
    """

    def __init__(self, rows: ExpiryRows, store: Store, *, ended: Callable[[], None]) -> None:
        self.name = f"expiry times of table {rows.table_id}"
        self.mailbox = Mailbox(1)
        self.in_hand: list[Envelope] = []
        self._rows = rows
        self._store = store
        self._ended = ended
        self._prefix = key_layout.row_prefix(rows.table_id)
        self._cursor_key = key_layout.expiry_cursor(rows.table_id)

    async def run(self) -> None:
        """Read the table from the cursor to its end, unless the mailbox is closed before."""
        closed = self.mailbox.when_closed()
        stored = await self._stored_cursor()
        end = key_layout.end_of(self._prefix)
        while stored != _DONE and not closed.done():
            rows = await self._store.durable().page(
                stored or self._prefix, end, max_rows=_PAGE_ROWS, max_bytes=_PAGE_BYTES
            )
            following = rows[-1].key + b"\x00" if rows else _DONE
            puts = [(key, b"") for row in rows if (key := self._expiry_row(row)) is not None]
            group = Group(self._cursor_key, stored, following, puts)
            try:
                if not await commit_with_retries(self._store, group, closed, self.name):
                    return
            except Conflict:
                # What was tried before was written after all, or the last page was not.
                stored = await self._stored_cursor()
            else:
                stored = following
        if stored == _DONE:
            self._ended()

    async def _stored_cursor(self) -> bytes | None:
        (stored,) = await self._store.latest.load([self._cursor_key])
        return stored

    def _expiry_row(self, row: Row) -> bytes | None:
        at_us = self._rows.at_us(codec.decode(row.value))
        return None if at_us is None else self._rows.row(at_us, row.key[len(self._prefix) :])
