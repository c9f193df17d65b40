"""Reads of tables with point-in-time recovery as they were at a time of their windows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

import anyio

from dynactor.actors.backups.past_view import PastView
from dynactor.actors.backups.point_in_time import check_in_window, positions_at
from dynactor.actors.followers import log_positions
from dynactor.actors.followers.checkpoint import Checkpoint
from dynactor.actors.followers.log_positions import TRANSACTION_US, LogPositions, past_positions
from dynactor.actors.runtime.clock import Clock
from dynactor.actors.table.table import Table, unreadable
from dynactor.model.definitions.table import PointInTimeRecovery
from dynactor.model.errors import (
    InvalidRestoreTimeException,
    ResourceNotFoundException,
    ValidationException,
)
from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.storage.store import Store, StoreError, View

# Maximum number of reads at a time, because each may keep megabytes in memory. Others wait.
_READS: Final = 16
# Number of past states whose positions are cached, because the pages of a read have the same one.
_STATES: Final = 64


class PastReads:
    """Opens views of past states of tables. A view stores nothing and copies nothing."""

    def __init__(self, store: Store, clock: Clock, find: Callable[[str], Table | None]) -> None:
        """``find`` returns a table that can be read, by its name."""
        self._store = store
        self._clock = clock
        self._find = find
        self._turns = anyio.Semaphore(_READS)
        # By table id, the beginning of the window, and the time.
        self._states: OrderedDict[tuple[int, float, int], LogPositions] = OrderedDict()

    @asynccontextmanager
    async def at(
        self, epoch_seconds: float, tables: Sequence[Table]
    ) -> AsyncIterator[list[PastView]]:
        """Views of tables as they were at a time; changes at this time are included.

        Raises ``ValidationException`` if recovery is not enabled or the time is not in its window,
        ``ResourceNotFoundException`` if a table was deleted meanwhile, or ``InternalServerError``
        if the store can't be read.
        """
        self._check(epoch_seconds, tables)
        async with self._turns:
            try:
                yield [await self._view(table, epoch_seconds) for table in tables]
            except StoreError as error:
                raise unreadable(tables[0].definition.name, error) from error
        # The end of the window may have passed the time meanwhile; then changes are missing.
        self._check(epoch_seconds, tables)

    def _check(self, epoch_seconds: float, tables: Sequence[Table]) -> None:
        for table in tables:
            definition = table.definition
            if self._find(definition.name) is not table:
                raise ResourceNotFoundException("Requested resource not found")
            recovery = definition.point_in_time_recovery
            if recovery is None:
                raise ValidationException(
                    "A past state can't be read: point in time recovery is not enabled for table "
                    f"'{definition.name}'"
                )
            try:
                check_in_window(recovery, epoch_seconds, self._clock)
            except InvalidRestoreTimeException:
                raise ValidationException(
                    "A past state can't be read: the time must be between "
                    f"{self._earliest(recovery)} and the present"
                ) from None

    def _earliest(self, recovery: PointInTimeRecovery) -> str:
        epoch_seconds = recovery.earliest_epoch_seconds(self._clock.now_epoch_seconds())
        time = datetime.fromtimestamp(epoch_seconds, tz=UTC)
        return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    async def _view(self, table: Table, epoch_seconds: float) -> PastView:
        definition = table.definition
        recovery = definition.point_in_time_recovery
        assert recovery is not None, "the caller has checked it"
        epoch_us = round(epoch_seconds * MICROSECONDS_PER_SECOND)
        state = (definition.table_id, recovery.since_epoch_seconds, epoch_us)
        past = self._states.get(state)
        if past is None:
            past = await self._positions(definition.name, epoch_us)
            now_us = self._clock.now_epoch_seconds() * MICROSECONDS_PER_SECOND
            if now_us - epoch_us > 2 * TRANSACTION_US:
                # All changes at this time are durable, so the positions are final.
                self._states[state] = past
                if len(self._states) > _STATES:
                    self._states.popitem(last=False)
        else:
            self._states.move_to_end(state)
        return PastView(self._store, definition, past, epoch_us)

    async def _positions(self, table_name: str, epoch_us: int) -> LogPositions:
        # Writes in flight may have an earlier time.
        await (await self._store.commit([]))

        async def read(view: View) -> dict[int, Checkpoint] | None:
            record = await log_positions.table_record(view, table_name)
            recovery = None if record is None else record.definition.point_in_time_recovery
            if record is None or recovery is None:
                return None
            counters = await positions_at(view, record, recovery, epoch_us)
            # The sizes of the logs are not needed here.
            return {number: Checkpoint(last, 0) for number, last in counters.items()}

        positions = await self._store.in_snapshot(read, calls_once=False)
        if positions is None:
            raise ResourceNotFoundException("Requested resource not found")
        return await past_positions(self._store.durable(), table_name, positions, epoch_us)
