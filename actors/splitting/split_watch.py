"""Finds partitions that are too large or too busy, and tables with too few partitions.

The watch reads the counts of partitions and limits, decides where to divide, and sends a message to
the database's actor. If the actor refuses, the next check finds the partition again. Finding the
middle of a large partition takes long, so partitions are measured one at a time, the largest of all
tables first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

import structlog

from dynactor.actors.limits.position_sample import PositionSample
from dynactor.actors.runtime.clock import Clock
from dynactor.actors.runtime.supervisor import Supervisor
from dynactor.actors.splitting.messages import GrowTable, SplitPartition, is_settled
from dynactor.actors.splitting.size_measure import measure
from dynactor.actors.splitting.split_settings import SplitSettings
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import TABLE_INDEX_ID
from dynactor.model.key_conditions import split_point
from dynactor.model.limits import (
    INDEX_ENTRY_OVERHEAD_BYTES,
    PARTITION_READ_UNITS,
    PARTITION_WRITE_UNITS,
)
from dynactor.storage import key_layout
from dynactor.storage.catalog import PartitionHead
from dynactor.storage.partition_map import PartitionMap
from dynactor.storage.store import Store, StoreError

# Share of a partition's maximum units above which it may soon need more units.
_HOT_SHARE: Final = 0.8
# Number of measurements of a partition's units within ``heat_seconds``.
_LOOKS: Final = 6
# A partition that could not be divided is measured again after it has grown by this share.
_GROWN_SHARE: Final = 0.25

_log = structlog.get_logger("actors")


class _Large(NamedTuple):
    """A partition that exceeded the limit when it was checked."""

    size_bytes: int
    table: Table
    index_id: int
    number: int


class _Use:
    """The recent units of one partition, of reads or of writes.

    Throttling limits the units, so a high average means that consumption was high all the time.
    """

    def __init__(self) -> None:
        # The time of each check, and the units consumed until then since the limits were created.
        self._taken: deque[tuple[float, float]] = deque(maxlen=_LOOKS + 2)

    def look(self, taken_units: float, now_seconds: float, heat_seconds: float) -> float:
        """The mean units per second of the last ``heat_seconds``; 0 until that time has passed."""
        taken = self._taken
        if not taken or now_seconds - taken[-1][0] >= heat_seconds / _LOOKS:
            taken.append((now_seconds, taken_units))
        while len(taken) > 1 and now_seconds - taken[1][0] >= heat_seconds:
            taken.popleft()
        began, before_units = taken[0]
        seconds = now_seconds - began
        return (taken_units - before_units) / seconds if seconds >= heat_seconds else 0.0


class SplitWatch:
    """Checks the tables, and sends messages to the database's actor with ``tell``."""

    def __init__(
        self,
        settings: SplitSettings,
        store: Store,
        clock: Clock,
        supervisor: Supervisor,
        *,
        tables: Callable[[], Sequence[Table]],
        growing: Callable[[Table], Sequence[int]],
        tell: Callable[[SplitPartition | GrowTable], None],
    ) -> None:
        """``growing`` returns the table and indexes with too few partitions for their units."""
        self._settings = settings
        self._store = store
        self._clock = clock
        self._supervisor = supervisor
        self._tables = tables
        self._growing = growing
        self._tell = tell
        # Average use, by partition and kind of request.
        self._uses: dict[tuple[int, str], _Use] = {}
        # By partition that could not be divided: the size from which it is measured again.
        self._measured: dict[int, float] = {}
        self._is_measuring = False

    async def check(self) -> float:
        """Check all tables; returns the seconds until the next check."""
        seen: dict[tuple[int, str], _Use] = {}
        large: list[_Large] = []
        for table in self._tables():
            if not is_settled(table.definition):
                continue
            for index_id in (TABLE_INDEX_ID, *table.record.index_partitions):
                large += self._too_large(table, index_id)
                self._check_heat(table, index_id, seen)
            if self._growing(table):
                self._tell(GrowTable(table.definition.table_id, table.definition.name))
        self._uses = seen
        if large and not self._is_measuring:
            self._is_measuring = True
            self._supervisor.run_in_background(self._measure, large)
        return self._settings.check_seconds

    # -- size -------------------------------------------------------------------------------

    def _too_large(self, table: Table, index_id: int) -> Iterator[_Large]:
        limit_bytes = self._settings.size_limit_bytes
        for partition in table.record.ranges(index_id):
            number = partition.number
            head = table.head(number, index_id)
            if head is None:
                continue
            size_bytes = sum(head.sizes_bytes.values())
            if size_bytes > max(limit_bytes, self._measured.get(number, 0)):
                yield _Large(size_bytes, table, index_id, number)

    async def _measure(self, large: list[_Large]) -> None:
        # Measure all large partitions before the next check, so that no table delays the others.
        large.sort(key=attrgetter("size_bytes"), reverse=True)
        try:
            for each in large:
                await self._measure_one(each)
        finally:
            self._is_measuring = False

    async def _measure_one(self, large: _Large) -> None:
        table, index_id, number = large.table, large.index_id, large.number
        head = table.head(number, index_id)
        # The partition may have been split or deleted while others were measured.
        if (
            head is None
            or not is_settled(table.definition)
            or number not in {each.number for each in table.record.ranges(index_id)}
        ):
            return
        try:
            await self._split_by_size(table, index_id, number, head)
        except StoreError as error:
            _log.warning("partition_not_measured", partition=number, error=str(error))
            self._measured[number] = sum(head.sizes_bytes.values()) * (1 + _GROWN_SHARE)

    async def _split_by_size(
        self, table: Table, index_id: int, number: int, head: PartitionHead
    ) -> None:
        key_range = PartitionMap(table.record.ranges(index_id)).partition_range(number)
        own_bytes = head.sizes_bytes.get(index_id, 0)
        profile = await measure(
            self._store,
            key_layout.row_prefix(table.definition.table_id, index_id),
            key_range,
            own_bytes,
            INDEX_ENTRY_OVERHEAD_BYTES if index_id else 0,
        )
        # The sizes in the head of a child are estimates, and include local index entries, which
        # were not measured. So correct the head's total by the measured share.
        head_bytes = sum(head.sizes_bytes.values())
        true_bytes = profile.total_bytes * head_bytes / own_bytes if own_bytes > 0 else 0.0
        limit_bytes = self._settings.size_limit_bytes
        point = None
        if true_bytes > limit_bytes:
            point = profile.halves(divides_collections=_divides_collections(table, index_id))
        if point is None:
            grown_bytes = max(limit_bytes - true_bytes, _GROWN_SHARE * head_bytes)
            self._measured[number] = head_bytes + grown_bytes
            return
        self._measured.pop(number, None)
        self._tell(
            SplitPartition(table.definition.name, number, point.at, point.share, index_id, "size")
        )

    # -- heat -------------------------------------------------------------------------------

    def _check_heat(self, table: Table, index_id: int, seen: dict[tuple[int, str], _Use]) -> None:
        limits = table.throttle.limits(index_id)
        if limits is None or table.throttle.mode == "off":
            return
        now = self._clock.now_epoch_seconds()
        kinds = (
            ("read", limits.reads, PARTITION_READ_UNITS, table.throttle.read_positions),
            ("write", limits.writes, PARTITION_WRITE_UNITS, table.throttle.write_positions),
        )
        for kind, units, ceiling, sample in kinds:
            for number, reading in units.readings(now).items():
                use = seen[number, kind] = self._uses.get((number, kind)) or _Use()
                mean = use.look(reading.taken_units, now, self._settings.heat_seconds)
                if mean >= _HOT_SHARE * ceiling:
                    self._split_by_heat(table, index_id, number, sample)

    def _split_by_heat(
        self, table: Table, index_id: int, number: int, sample: PositionSample
    ) -> None:
        key_range = PartitionMap(table.record.ranges(index_id)).partition_range(number)
        # For an index, the sample has only the index key, which may lie before the range.
        positions = [max(each, key_range.start) for each in sample.positions(number)]
        point = split_point.by_heat(
            positions, divides_collections=_divides_collections(table, index_id)
        )
        if point is None or not _within(point.at, key_range.start, key_range.end):
            return
        share = split_point.share_before(key_range, point.at)
        sample.forget(number)
        self._tell(SplitPartition(table.definition.name, number, point.at, share, index_id, "heat"))


def _within(at: bytes, start: bytes, end: bytes | None) -> bool:
    return start < at and (end is None or at < end)


def _divides_collections(table: Table, index_id: int) -> bool:
    """Whether an item collection may be divided between partitions (S74)."""
    return index_id != TABLE_INDEX_ID or not table.definition.local_indexes
