"""The keys of a table and of its indexes that requests use or that are throttled, by minute.

With Contributor Insights every request is counted. Otherwise a sample is counted, for advice on
keys: all requests up to a number in each minute, then one in 32, at random, with that weight.
Counts are kept in memory only, are bounded, and cover the last hour. They are updated on the event
loop, between two awaits.

A read or write of an item counts for its partition key and for its whole key, a Query for its
partition key, with the units that it consumed. A throttled request counts as one. A Scan counts for
no key.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from random import Random
from typing import Final

from msgspec import Struct

from dynactor.actors.limits.key_counts import KeyTraffic, Sampler, Window
from dynactor.actors.runtime.clock import Clock
from dynactor.model.advice.key_traffic import (
    IndexUse,
    Recording,
)
from dynactor.model.capacity import Receipt
from dynactor.model.definitions.index import entry_position
from dynactor.model.definitions.table import TABLE_INDEX_ID, TableDefinition
from dynactor.model.errors import ThrottlingReason
from dynactor.model.key_conditions.key_condition import equal_names
from dynactor.model.reads.page import PageRules
from dynactor.model.writes.change import Change, entry_writes

_RECENT_WRITES: Final = 1_000
_NAMES: Final = 100
_COLLECTIONS: Final = 64


class Growth(Struct):
    """The size of an item collection at its first write, with the time, and at its last write."""

    first_epoch_seconds: float
    first_bytes: int
    last_bytes: int


class TableTraffic:
    """The key counts of a table and its global indexes, and other inputs of advice.

    Invariant: the table and each of its global indexes have counts, by id.
    """

    __slots__ = (
        "_clock",
        "_collections",
        "_draws",
        "_growths",
        "_ids",
        "_local_ids",
        "_otherwise",
        "_read_traffic",
        "_reads",
        "_recent",
        "_recent_writes",
        "_resource_ids",
        "_smallest_bytes",
        "_table",
        "_throttled_reads",
        "_traffic",
        "_use_samplers",
        "_uses",
        "since_epoch_seconds",
    )

    def __init__(self, definition: TableDefinition, clock: Clock, *, samples: bool) -> None:
        """``samples``: count a sample of the requests that Contributor Insights does not count."""
        self.since_epoch_seconds = clock.now_epoch_seconds()
        self._clock = clock
        self._otherwise: Recording = "some" if samples else "none"
        self._draws = Random(definition.table_id)  # noqa: S311 - which requests are counted
        self._traffic: dict[int, KeyTraffic] = {}
        # Counts by the index that is read; reads of a local index count for the table.
        self._read_traffic: dict[int, KeyTraffic] = {}
        # The ids of global indexes, by name.
        self._ids: dict[str, int] = {}
        # Cached ids by reason, because the same few reasons occur again and again.
        self._resource_ids: dict[ThrottlingReason, int] = {}
        self._local_ids = {index.name: index.index_id for index in definition.local_indexes}
        self._uses: dict[int, IndexUse] = {}
        self._use_samplers: dict[int, Sampler] = {}
        self._recent_writes: deque[bytes] = deque(maxlen=_RECENT_WRITES)
        self._collections: dict[bytes, Growth] = {}
        self._smallest_bytes = 0
        self._growths = Sampler(self._draws, "some")
        self._recent = Sampler(self._draws, "some")
        self.follow(definition)
        self._table = self._traffic[TABLE_INDEX_ID]
        self._reads = self._table.reads
        self._throttled_reads = self._table.throttled_reads

    def follow(self, definition: TableDefinition) -> None:
        """Continue with a changed record of the table."""
        resources = [(TABLE_INDEX_ID, definition.key_schema, definition.contributor_insights)]
        resources += [
            (index.definition.index_id, index.definition.key_schema, index.contributor_insights)
            for index in definition.global_indexes
        ]
        known = self._traffic
        self._traffic = {
            index_id: known.get(index_id) or KeyTraffic(schema, self._clock, self._draws)
            for index_id, schema, _ in resources
        }
        for index_id, _, insights in resources:
            self._traffic[index_id].set(insights, self._otherwise)
        table = self._traffic[TABLE_INDEX_ID]
        self._read_traffic = self._traffic | {
            index.index_id: table for index in definition.local_indexes
        }
        for gone in self._uses.keys() - self._read_traffic.keys():
            del self._uses[gone], self._use_samplers[gone]
        self._resource_ids.clear()
        self._ids = {
            index.definition.name: index.definition.index_id for index in definition.global_indexes
        }

    # -- counting ---------------------------------------------------------------------------

    def read(self, position: bytes, units: float) -> None:
        """Count a read of an item, found or not."""
        sampler = self._reads
        # Most reads are skipped, so this case needs no further call.
        if sampler.skip:
            sampler.skip -= 1
            sampler.passed_units += units
            return
        self._table.count(sampler, position, units)

    def read_page(
        self, index_id: int, start: bytes, receipt: Receipt, rules: PageRules, entries: int
    ) -> None:
        """Count a page of a Query from a position, or of a Scan if the position is empty.

        ``index_id`` may be a local index's: its reads count for the table.
        """
        traffic = self._read_traffic.get(index_id)
        if traffic is None:
            # The index was deleted during the read.
            return
        units = receipt.read_units
        for index in receipt.indexes:
            units += index.read_units
        if start:
            traffic.count_page(traffic.reads, start, units)
        use = self._uses.get(index_id) or self._use(index_id)
        weight = self._use_samplers[index_id].weigh()
        if not weight:
            return
        use.queries += weight if start else 0
        use.scans += 0 if start else weight
        use.read_units += units * weight
        use.scan_units += 0.0 if start else units * weight
        use.entries += entries * weight
        if rules.fetch:
            use.fetches += weight
            use.fetch_units += receipt.read_units * weight
        _count_names(use, rules, weight)
        if not start and rules.filter is not None:
            for name in equal_names(rules.filter):
                _add(use.scanned_for, name, units * weight)

    def write(self, position: bytes, change: Change) -> None:
        """Count a write of the item at a position, also one whose condition was false."""
        receipt = change.receipt
        units = receipt.write_units
        uses = self._uses
        for index in receipt.indexes:
            if index.kind == "LocalSecondaryIndexes":
                units += index.write_units
                index_id = self._local_ids[index.name]
                use = uses.get(index_id) or self._use(index_id)
                use.write_units += index.write_units
        # Only one in many writes is sampled: see ``read``.
        sampler = self._table.writes
        if sampler.skip:
            sampler.skip -= 1
            sampler.passed_units += units
        else:
            self._table.count(sampler, position, units)
        recent = self._recent
        if recent.skip:
            recent.skip -= 1
        elif change.old is not change.new and recent.weigh():
            self._recent_writes.append(position)
        for one in change.global_changes or ():
            traffic = self._traffic.get(one.definition.index_id)
            if traffic is None:
                continue
            for entry, entry_units in entry_writes(one):
                # The index key is computed only if the write is counted.
                weight = traffic.writes.weigh(entry_units)
                if weight:
                    entry_key = entry_position(one.definition, entry.item, b"")
                    traffic.count_weighed(traffic.writes, entry_key, entry_units, weight)

    def refuse_write(
        self, position: bytes, change: Change | None, reasons: Sequence[ThrottlingReason]
    ) -> None:
        """Count a throttled write of an item; ``change`` is None if it was refused undecided."""
        for index_id in self._resources(reasons):
            traffic = self._traffic[index_id]
            sampler = traffic.throttled_writes
            # If limits are only observed, throttled writes are as frequent as writes.
            if sampler.skip:
                sampler.skip -= 1
                sampler.passed_units += 1.0
                continue
            if index_id == TABLE_INDEX_ID:
                traffic.count(sampler, position, 1.0)
                continue
            for one in (change.global_changes if change else None) or ():
                if one.definition.index_id == index_id:
                    entry, _ = entry_writes(one)[-1]
                    entry_key = entry_position(one.definition, entry.item, b"")
                    traffic.count(sampler, entry_key, 1.0)

    def refuse_read(self, position: bytes) -> None:
        """Count a throttled read of an item."""
        sampler = self._throttled_reads
        # See ``read``: if limits are only observed, throttled reads are as frequent as reads.
        if sampler.skip:
            sampler.skip -= 1
            sampler.passed_units += 1.0
            return
        self._table.count(sampler, position, 1.0)

    def conflict(self, position: bytes) -> None:
        """Count a request for an item that met a transaction's lock."""
        self._table.count(self._table.conflicts, position, 1.0)

    def refuse_page(self, index_id: int, start: bytes) -> None:
        """Count a throttled Query that reads from a position."""
        traffic = self._read_traffic.get(index_id)
        if traffic is not None and start:
            traffic.count_page(traffic.throttled_reads, start, 1.0)

    def grow(self, partition_key: bytes, size_bytes: int) -> None:
        """Note the size of an item collection of a table with local indexes."""
        if not self._growths.weigh():
            return
        known = self._collections.get(partition_key)
        if known is not None:
            known.last_bytes = size_bytes
            return
        if len(self._collections) >= _COLLECTIONS:
            if size_bytes <= self._smallest_bytes:
                return
            del self._collections[min(self._collections, key=self._last_bytes)]
        now = self._clock.now_epoch_seconds()
        self._collections[partition_key] = Growth(now, size_bytes, size_bytes)
        if len(self._collections) == _COLLECTIONS:
            self._smallest_bytes = min(map(self._last_bytes, self._collections))

    # -- reading the counts -----------------------------------------------------------------

    def windows(self, index_id: int = TABLE_INDEX_ID) -> list[Window]:
        """The last hour of the table or of a global index; see ``KeyTraffic.windows``."""
        return self._traffic[index_id].windows()

    def recording(self, index_id: int = TABLE_INDEX_ID) -> Recording:
        """Whether all, some or no requests are counted."""
        return self._traffic[index_id].reads.recording

    def use(self, index_id: int) -> IndexUse:
        """The usage of an index, or the table, since it was first counted."""
        return self._uses.get(index_id) or IndexUse()

    @property
    def recent_writes(self) -> list[bytes]:
        """The positions of the items written last, if the writes were counted."""
        return list(self._recent_writes)

    def growth(self, partition_key: bytes) -> Growth | None:
        """The growth of an item collection, if it is one of the largest written ones."""
        return self._collections.get(partition_key)

    # -- parts ------------------------------------------------------------------------------

    def _use(self, index_id: int) -> IndexUse:
        use = self._uses.get(index_id)
        if use is None:
            use = self._uses[index_id] = IndexUse()
            self._use_samplers[index_id] = Sampler(self._draws, "some")
        return use

    def _resources(self, reasons: Sequence[ThrottlingReason]) -> Sequence[int]:
        """The ids of the table and indexes whose limits refused something."""
        if len(reasons) == 1:
            return (self._resource(reasons[0]),)
        return sorted(set(map(self._resource, reasons)))

    def _resource(self, reason: ThrottlingReason) -> int:
        """The id of the table or index that has this limit."""
        index_id = self._resource_ids.get(reason)
        if index_id is None:
            index_name = reason.resource.partition("/index/")[2]
            index_id = self._resource_ids[reason] = self._ids.get(index_name, TABLE_INDEX_ID)
        return index_id

    def _last_bytes(self, partition_key: bytes) -> int:
        return self._collections[partition_key].last_bytes


def _count_names(use: IndexUse, rules: PageRules, weight: int) -> None:
    """Count the attributes that a page projects, and those that its filter reads."""
    if rules.projector is None and not rules.count_only:
        use.asked_all += weight
        return
    names: set[str] = set() if rules.projector is None else set(rules.projector.names)
    if rules.filter is not None:
        names |= rules.filter.attributes
    # Sorted, because the order of a set differs from run to run, and the number is limited.
    for name in sorted(names):
        _add(use.asked_names, name, weight)


def _add(counts: dict[str, float], name: str, weight: float) -> None:
    """Count an attribute, up to a maximum number of attributes."""
    if name in counts or len(counts) < _NAMES:
        counts[name] = counts.get(name, 0.0) + weight
