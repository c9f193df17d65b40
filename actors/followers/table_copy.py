"""The actor that copies a table's state at its positions in the logs, for a ``SnapshotSink``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TypeVar

import structlog

from dynactor.actors.followers import checkpoint
from dynactor.actors.followers.checkpoint import Checkpoint
from dynactor.actors.followers.log_positions import LogPositions, past_positions
from dynactor.actors.followers.pacing import Pacing
from dynactor.actors.followers.sink import SnapshotSink
from dynactor.actors.followers.stored_checkpoint import StoredCheckpoint, encode_position
from dynactor.actors.followers.table_snapshot import TableSnapshot
from dynactor.actors.runtime.mailbox import Envelope, Mailbox
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.pauses import SCAN_SECONDS
from dynactor.storage import key_layout
from dynactor.storage.row_pages import rows_in
from dynactor.storage.store import Damaged, Fenced, Full, Row, Store, StoreError, View

T = TypeVar("T")

_log = structlog.get_logger("actors")


async def stored_positions(view: View, subscriber: bytes) -> dict[int, Checkpoint]:
    """A subscriber's positions in a table's logs, by partition number; raises ``StoreError``."""
    rows = rows_in(view, *key_layout.subscriber_checkpoints(subscriber))
    return {
        key_layout.checkpoint_partition(row.key): checkpoint.decode(row.value) async for row in rows
    }


class TableCopy:
    """Copies the items that a table had at a subscriber's positions; calls ``ended`` at the end.

    First it copies the items that have not changed since the positions. Then it finds the others,
    as they were, in the logs. A copy that was interrupted starts over. It doesn't wait for space on
    a full disk, because its rows take space there.

    Invariant: the logs are kept from the positions on until the copy has ended.
    """

    def __init__(
        self,
        name: str,
        definition: TableDefinition,
        subscriber: bytes,
        sink: SnapshotSink,
        store: Store,
        *,
        cursor_key: bytes,
        ended: Callable[[], None],
        failed: Callable[[str], None],
        pacing: Pacing,
        state_epoch_us: int | None = None,
    ) -> None:
        """``failed`` gets the reason if the table can't be read or the copy can't be stored.

        ``cursor_key`` is the key of the head of the copy's commits. The copy rests while requests
        use the server. With ``state_epoch_us`` the positions are those of the last durable changes
        at this time, and transactions are whole.
        """
        self.name = name
        self.mailbox = Mailbox(1)
        self.in_progress: list[Envelope] = []
        self._definition = definition
        self._subscriber = subscriber
        self._sink = sink
        self._store = store
        self._ended = ended
        self._failed = failed
        self._pacing = pacing
        self._state_epoch_us = state_epoch_us
        self._checkpoint = StoredCheckpoint(store, cursor_key, name)
        self._commits = 0

    async def run(self) -> None:
        """Copy the table, unless the mailbox is closed first."""
        stopped = self.mailbox.when_closed()
        while not stopped.done():
            try:
                is_whole = await self._copy(stopped)
            except Fenced:
                raise
            except (Damaged, Full) as error:
                self._failed(str(error))
                return
            except StoreError as error:
                _log.info("table_copy_restarted", copy=self.name, reason=str(error))
                await asyncio.wait([stopped], timeout=SCAN_SECONDS)
            else:
                if is_whole:
                    self._ended()
                return

    async def _copy(self, stopped: asyncio.Future[None]) -> bool:
        """Copy the table from the beginning; False if the copy was stopped first."""
        definition, snapshot = self._definition, await self._begin()
        replaced = snapshot.replaced_rows(definition.name, definition.key_schema)
        async with aclosing(snapshot.rows()) as unchanged, aclosing(replaced):
            return await self._write_pages(
                unchanged, self._write, stopped
            ) and await self._write_pages(replaced, self._write_missing, stopped)

    async def _begin(self) -> TableSnapshot:
        """Empty the target; returns the state to copy."""
        stored = await stored_positions(self._store.latest, self._subscriber)
        if self._state_epoch_us is None:
            positions = LogPositions(stored)
        else:
            view = self._store.durable()
            positions = await past_positions(
                view, self._definition.name, stored, self._state_epoch_us
            )
        await self._checkpoint.load()
        await self._checkpoint.begin(self._next_value(), [self._sink.target])
        self._sink.start()
        return TableSnapshot(self._store, self._definition.table_id, positions)

    async def _write_pages(
        self,
        pages: AsyncGenerator[list[T], None],
        write: Callable[[list[T]], Awaitable[None]],
        stopped: asyncio.Future[None],
    ) -> bool:
        """Write pages, and rest between them; False if the copy was stopped first."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        async for page in pages:
            if page:
                await write(page)
            rest_seconds = self._pacing.seconds_after(loop.time() - began)
            if rest_seconds:
                await asyncio.wait([stopped], timeout=rest_seconds)
            if stopped.done():
                return False
            began = loop.time()
        return True

    async def _write(self, rows: Sequence[Row]) -> None:
        await self._commit(self._sink.puts(rows))

    async def _write_missing(self, rows: Sequence[Row]) -> None:
        copied = await self._store.latest.load([self._sink.key(row.key) for row in rows])
        missing = [row for row, value in zip(rows, copied, strict=True) if value is None]
        if missing:
            await self._write(missing)

    async def _commit(self, puts: Sequence[tuple[bytes, bytes]]) -> None:
        await self._checkpoint.commit_once(self._next_value(), puts)

    def _next_value(self) -> bytes:
        # Each commit has another value, which shows whether the commit was written.
        self._commits += 1
        return encode_position(self._commits)
