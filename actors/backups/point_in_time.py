"""Point-in-time recovery: a table can be restored to any time of its window.

While it is enabled, each write of the table adds a change record with the item before the change.
``log_trimming`` keeps the logs until their changes are older than the window. The state at a time
is the present items, with the old images of those that changed since. The logs are written for
streams and indexes anyway. For reads of past states, each write also lists its change by key
(``streams/changes_by_key``). Nothing can fall behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import floor

from msgspec import structs

from dynactor.actors.backups.backup_copies import PastState
from dynactor.actors.catalog import definition_commit
from dynactor.actors.catalog.definition_commit import CommittedDefinition
from dynactor.actors.parts.part import Part, Parts
from dynactor.actors.runtime.clock import Clock
from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import PointInTimeRecovery
from dynactor.model.errors import (
    ContinuousBackupsUnavailableException,
    InvalidRestoreTimeException,
    PointInTimeRecoveryUnavailableException,
    TableNotFoundException,
)
from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.storage.catalog import TableRecord
from dynactor.storage.store import View
from dynactor.streams import log_bounds

# Times on the wire are rounded to milliseconds.
_ROUNDING_SECONDS = 0.001
# A client names the beginning of the window a moment after it has asked for the window.
_PAST_SECONDS = 5.0


class UpdateRecovery(Message[None], frozen=True):
    """Enable or disable point-in-time recovery, or change its period; None disables it.

    Raises ``TableNotFoundException``, or ``ContinuousBackupsUnavailableException`` while the table
    is being created.
    """

    table_name: str
    period_days: int | None


class RecoverySwitch(Part):
    """Switches point-in-time recovery of tables, and finds their past states."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self.handlers = {UpdateRecovery: self._update}

    async def _update(self, message: UpdateRecovery) -> None:
        """Enable or disable the recovery, durably. A shorter window never becomes longer again."""
        table = self._table(message.table_name)
        definition = table.definition
        if definition.status == "CREATING":
            raise ContinuousBackupsUnavailableException(
                f"Backups are being enabled for the table: {definition.name}. Please retry later"
            )
        recovery = definition.point_in_time_recovery
        if message.period_days is None:
            if recovery is not None:
                disabled = structs.replace(definition, point_in_time_recovery=None)
                await definition_commit.redefine(self._owner, table, disabled)
        elif recovery is None:
            await self._enable(table, message.period_days)
        elif recovery.period_days != message.period_days:
            now = self._clock.now_epoch_seconds()
            changed = structs.replace(
                recovery,
                period_days=message.period_days,
                since_epoch_seconds=recovery.earliest_epoch_seconds(now),
            )
            await definition_commit.store(
                self._owner, table, structs.replace(definition, point_in_time_recovery=changed)
            )
        await self._parts.resume(table)

    async def _enable(self, table: Table, period_days: int) -> None:
        def storing(record: TableRecord, counters: Mapping[int, int]) -> CommittedDefinition:
            # All changes up to these counters were made before now, and all others are recorded.
            recovery = PointInTimeRecovery(
                self._clock.now_epoch_seconds(), dict(counters), period_days, lists_changes=True
            )
            definition = structs.replace(record.definition, point_in_time_recovery=recovery)
            return CommittedDefinition(structs.replace(record, definition=definition))

        await definition_commit.redefine(self._owner, table, table.definition, storing)

    def check_enabled(self, source: str) -> PointInTimeRecovery:
        """The window of a table.

        Raises ``TableNotFoundException``, or ``PointInTimeRecoveryUnavailableException`` if
        recovery is not enabled.
        """
        recovery = self._table(source).definition.point_in_time_recovery
        if recovery is None:
            raise PointInTimeRecoveryUnavailableException(
                f"Point in time recovery is not enabled for table '{source}'"
            )
        return recovery

    async def past_state(
        self, source: str, epoch_seconds: float, *, is_before: bool = False
    ) -> PastState:
        """The state of a table at a time, or just before this time.

        Raises ``TableNotFoundException``, ``PointInTimeRecoveryUnavailableException``,
        ``InvalidRestoreTimeException`` outside of the window, or ``StoreError`` if a log can't be
        read.
        """
        recovery = self.check_enabled(source)
        check_in_window(recovery, epoch_seconds, self._clock)
        epoch_us = round(epoch_seconds * MICROSECONDS_PER_SECOND) - is_before
        view, record = self._store.durable(), self._table(source).record
        return PastState(epoch_us, await positions_at(view, record, recovery, epoch_us))

    def _table(self, name: str) -> Table:
        table = self._tables.get(name)
        if table is None or table.definition.status == "DELETING":
            raise TableNotFoundException(f"Table not found: {name}")
        return table


def check_in_window(recovery: PointInTimeRecovery, epoch_seconds: float, clock: Clock) -> None:
    """Refuse a time outside of the window; raises ``InvalidRestoreTimeException``."""
    now = clock.now_epoch_seconds()
    # DescribeContinuousBackups shows whole seconds. A time just before the recovery was enabled has
    # the state of that moment.
    earliest = floor(recovery.earliest_epoch_seconds(now - _PAST_SECONDS))
    if not earliest <= epoch_seconds < now + _ROUNDING_SECONDS:
        raise InvalidRestoreTimeException(
            "An invalid restore time was specified. RestoreDateTime must be between "
            "EarliestRestorableDateTime and LatestRestorableDateTime."
        )


async def positions_at(
    view: View, record: TableRecord, recovery: PointInTimeRecovery, epoch_us: int
) -> dict[int, int]:
    """The counters of the last changes at a time, by partition number; raises ``StoreError``."""
    positions = {}
    for log in await log_bounds.reaches(view, record, epoch_us):
        number = log.partition_number
        found = await log_bounds.position_at(view, log, epoch_us + 1)
        # Changes before the recovery was enabled may not be in the log.
        positions[number] = max(found, recovery.positions.get(number, 0))
    return positions
