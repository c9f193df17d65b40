"""The actor that copies a table's items into a backup.

All are read from one durable view, which shows every write that was answered before the backup
was asked for. The view does not outlive a restart: then the copy is begun anew, of the table as it
is by then, and what there was of it is deleted. It is never of two moments.

It does not wait for room on a full disk: its view would keep there what others delete.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeAlias

import structlog
from msgspec import Struct

from dynactor.actors.derived.pacing import Pacing
from dynactor.actors.derived.scan import DONE, read_page
from dynactor.actors.runtime.commit_retry import commit_past_stalls
from dynactor.actors.runtime.mailbox import Envelope, Mailbox
from dynactor.model.tables.table_backup import TableBackup
from dynactor.storage import codec, key_layout
from dynactor.storage.store import Damaged, Fenced, Full, Group, Row, Store, StoreError

_AGAIN_SECONDS: Final = 1.0

_log = structlog.get_logger("actors")


class Copied(Struct, frozen=True, tag=True):
    """What a copy holds: how many items, and their size as DynamoDB counts it."""

    item_count: int
    size_bytes: int


class CopyFailed(Struct, frozen=True, tag=True):
    """The table can't be copied."""

    reason: str


CopyOutcome: TypeAlias = Copied | CopyFailed


class TableBackupCopy:
    """The actor.

    Invariant: between two commits the stored rows are the first ones of one view, or of none.
    """

    def __init__(
        self,
        backup: TableBackup,
        store: Store,
        pause: Pacing,
        *,
        ended: Callable[[CopyOutcome], None],
    ) -> None:
        self.name = f"backup {backup.name} of {backup.definition.name}"
        self.mailbox = Mailbox(1)
        self.in_hand: list[Envelope] = []
        # What became of it, once that is known.
        self.outcome: CopyOutcome | None = None
        self._store = store
        self._pause = pause
        self._ended = ended
        self._source = key_layout.row_prefix(backup.definition.table_id)
        self._target = key_layout.row_prefix(backup.rows_id)
        self._old_rows = key_layout.table_range(backup.rows_id)
        self._cursor_key = key_layout.filling_cursor(backup.rows_id)

    async def run(self) -> None:
        """Copy the table, unless the mailbox is closed before."""
        closed = self.mailbox.when_closed()
        while not closed.done():
            try:
                copied = await self._copy(closed)
            except (Full, Damaged) as error:
                self._end(CopyFailed(str(error)))
                return
            except Fenced:
                raise
            except StoreError as error:
                _log.info("table_backup_begun_anew", who=self.name, reason=str(error))
                await asyncio.wait([closed], timeout=_AGAIN_SECONDS)
            else:
                if copied is not None:
                    self._end(copied)
                return

    def _end(self, outcome: CopyOutcome) -> None:
        self.outcome = outcome
        self._ended(outcome)

    async def _copy(self, closed: asyncio.Future[None]) -> Copied | None:
        """Copy the table as it is now.

        Returns:
            None if the mailbox was closed meanwhile.

        Raises:
            Full, Damaged: there is no room for it, or a row can't be read.
            StoreError: the view is gone, or nobody knows what of the copy is there.
        """
        view = self._store.durable()
        loop = asyncio.get_running_loop()
        start, end = self._source, key_layout.end_of(self._source)
        (stored,) = await self._store.latest.load([self._cursor_key])
        # What an earlier attempt left goes first.
        await self._commit(Group(self._cursor_key, stored, start, range_deletes=[self._old_rows]))
        item_count = size_bytes = 0
        while True:
            began = loop.time()
            rows, following = await read_page(view, start, end)
            stored, start = start, following
            item_count += len(rows)
            size_bytes += sum(codec.decode(row.value).size_bytes for row in rows)
            await self._commit(Group(self._cursor_key, stored, start, self._copies(rows)))
            if start == DONE:
                return Copied(item_count, size_bytes)
            rest_seconds = self._pause.seconds_after(loop.time() - began)
            if rest_seconds:
                await asyncio.wait([closed], timeout=rest_seconds)
            if closed.done():
                return None

    async def _commit(self, group: Group) -> None:
        durable = await commit_past_stalls(self._store, [group])
        await durable

    def _copies(self, rows: list[Row]) -> list[tuple[bytes, bytes]]:
        prefix, source_bytes = self._target, len(self._source)
        return [(prefix + row.key[source_bytes:], row.value) for row in rows]
