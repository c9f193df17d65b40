"""Metrics of tables and indexes, named after CloudWatch's metrics of DynamoDB.

Each scrape reads them from the database. Counts start at zero with the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dynactor.actors.database.database import Database
from dynactor.actors.database.virtual_clock import ClockState
from dynactor.actors.derived.expiry.time_to_live import TimeToLiveActors, subscriber_id
from dynactor.actors.indexes.global_index import GlobalIndexActors
from dynactor.actors.phases.destination_phases import DestinationPhases
from dynactor.actors.phases.splits import Splitter
from dynactor.actors.table.table import Table
from dynactor.api.admin.metrics.mailboxes import Mailboxes
from dynactor.api.admin.metrics.table_limit import limited
from dynactor.model.errors import ThrottlingReason

_INDEX = ("table", "index")
_DESTINATION = ("table", "topic")
# A partition's mailbox was full. DynamoDB has no name for this reason.
_TOO_MANY_WAIT = "TooManyWritesWait"
# Number of tables with a label of their own.
MOST_TABLES: Final = 500
# A table takes about 25 µs of the event loop.
TABLES_A_TURN: Final = 20


class IndexState(Struct, frozen=True):
    """The figures of one global index; None for a figure that does not apply."""

    labels: tuple[str, str]
    percentage_progress: float | None = None
    backfill_write_units: int | None = None
    backfill_throttle_events: int = 0
    lag_records: int = 0
    lag_seconds: float | None = None


class _CapacityState(Struct, frozen=True):
    """Consumed units of a table or an index, and refusals by reason."""

    # The name of the index is empty for the table itself.
    labels: tuple[str, str]
    consumed_read_capacity_units: float
    consumed_write_capacity_units: float
    read_throttle_events: Mapping[str, int]
    write_throttle_events: Mapping[str, int]
    observed_throttle_events: Mapping[str, int]
    # None for an index.
    transaction_conflicts: int | None


class _ExpiryState(Struct, frozen=True):
    """Time to live of one table; the lag is None if time to live is off."""

    name: str
    deleted_items: int
    lag_seconds: float | None


class DestinationState(Struct, frozen=True):
    """The figures of one topic of a table."""

    labels: tuple[str, str]
    state: str
    lag_records: int = 0
    lag_bytes: int = 0
    lag_seconds: float = 0.0
    published_records: int = 0
    published_bytes: int = 0
    errors: int = 0
    omitted_images: int = 0


class _PartitionState(Struct, frozen=True):
    """Number of partitions of a table or an index."""

    labels: tuple[str, str]
    partitions: int


class TableFigures(Struct, frozen=True):
    """The figures of all tables in a scrape."""

    names: Sequence[str]
    indexes: Sequence[IndexState]
    destinations: Sequence[DestinationState]
    capacity: Sequence[_CapacityState]
    expiry: Sequence[_ExpiryState]
    partitions: Sequence[_PartitionState]
    splits: Mapping[str, int]
    clock: ClockState | None
    mailboxes: Mailboxes


async def table_figures(database: Database, tables: Sequence[Table] | None = None) -> TableFigures:
    """Read the figures of tables, at most ``TABLES_A_TURN`` in one turn of the event loop.

    None stands for all tables. Raises ``StoreError``.
    """
    names: list[str] = []
    indexes: list[IndexState] = []
    destinations: list[DestinationState] = []
    capacity: list[_CapacityState] = []
    expiry: list[_ExpiryState] = []
    partitions: list[_PartitionState] = []
    mailboxes = Mailboxes()
    mailboxes.add_database(database)
    for number, table in enumerate(list(database.tables if tables is None else tables), 1):
        names.append(table.definition.name)
        indexes += await _index_states(database, table)
        destinations += await _destination_states(database, table)
        capacity += _capacity_states(table)
        expiry.append(_expiry_state(table))
        partitions += _partition_states(table)
        mailboxes.add_table(table)
        if number % TABLES_A_TURN == 0:
            await asyncio.sleep(0)
    # Give other tasks a turn, because there may be many regions with few tables each.
    await asyncio.sleep(0)
    return TableFigures(
        names=names,
        indexes=indexes,
        destinations=destinations,
        capacity=capacity,
        expiry=expiry,
        partitions=partitions,
        splits={str(reason): count for reason, count in database.part(Splitter).splits.items()},
        clock=None if database.clock_control is None else database.clock_control.state,
        mailboxes=mailboxes,
    )


class TableCollector(Collector):
    """Collects the figures of tables."""

    def __init__(
        self,
        figures: TableFigures,
        throttled_requests: Mapping[tuple[str, str], int],
        most_tables: int = MOST_TABLES,
    ) -> None:
        self._figures = figures
        self._throttled_requests = throttled_requests
        self._most_tables = most_tables

    def collect(self) -> Iterator[Metric]:
        """Yield each metric, named as in CloudWatch if CloudWatch has it."""
        shown = frozenset(self._figures.names[: self._most_tables])
        yield from limited(self._all(), shown)

    def _all(self) -> Iterator[Metric]:
        yield from self._figures.mailboxes.metrics()
        yield from self._partitions()
        yield from self._consumed()
        yield from self._throttling()
        yield from self._conflicts()
        yield from self._building()
        yield from self._lag()
        yield from self._time_to_live()
        yield from self._publishing()
        if self._figures.clock is not None:
            yield from virtual_clock(self._figures.clock)

    def _partitions(self) -> Iterator[Metric]:
        partitions = GaugeMetricFamily(
            "dynactor_partitions", "Partitions of a table or global index.", labels=_INDEX
        )
        for state in self._figures.partitions:
            partitions.add_metric(state.labels, state.partitions)
        yield partitions
        splits = CounterMetricFamily(
            "dynactor_partition_splits",
            "Partitions that were split since the server started, by the reason.",
            labels=("reason",),
        )
        for reason, count in self._figures.splits.items():
            splits.add_metric((reason,), count)
        yield splits

    def _throttling(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "dynactor_throttled_requests",
            "ThrottledRequests: requests answered by a throttling error.",
            labels=("table", "operation"),
        )
        for labels, count in sorted(self._throttled_requests.items()):
            requests.add_metric(labels, count)
        yield requests
        told = {
            "read_throttle_events": "ReadThrottleEvents: throttled reads, by the limit; each read "
            "of a batch is counted.",
            "write_throttle_events": "WriteThrottleEvents: throttled writes, by the limit; each "
            "write of a batch is counted. A write over several limits is counted for each limit.",
            "observed_throttle_events": "Requests that DynamoDB would have throttled, of tables "
            "with throttling observe.",
        }
        for name, text in told.items():
            events = CounterMetricFamily(f"dynactor_{name}", text, labels=(*_INDEX, "reason"))
            for state in self._figures.capacity:
                for reason, count in getattr(state, name).items():
                    events.add_metric((*state.labels, reason), count)
            yield events

    def _conflicts(self) -> Iterator[Metric]:
        conflicts = CounterMetricFamily(
            "dynactor_transaction_conflict",
            "TransactionConflict: requests refused because a transaction had locked their item.",
            labels=("table",),
        )
        for state in self._figures.capacity:
            if state.transaction_conflicts is not None:
                conflicts.add_metric(state.labels[:1], state.transaction_conflicts)
        yield conflicts

    def _consumed(self) -> Iterator[Metric]:
        texts = {
            "consumed_read_capacity_units": "ConsumedReadCapacityUnits: units of reads. An empty "
            "index label is the table with its local indexes.",
            "consumed_write_capacity_units": "ConsumedWriteCapacityUnits: units of writes, without "
            "those of a backfill. An empty index label is the table with its local indexes.",
        }
        for name, text in texts.items():
            units = CounterMetricFamily(f"dynactor_{name}", text, labels=_INDEX)
            for state in self._figures.capacity:
                units.add_metric(state.labels, getattr(state, name))
            yield units

    def _building(self) -> Iterator[Metric]:
        progress = GaugeMetricFamily(
            "dynactor_online_index_percentage_progress",
            "OnlineIndexPercentageProgress: percentage of its table that the backfill of a new "
            "index has read.",
            labels=_INDEX,
        )
        units = CounterMetricFamily(
            "dynactor_online_index_consumed_write_capacity_units",
            "OnlineIndexConsumedWriteCapacity: write units that the backfill of an index consumed.",
            labels=_INDEX,
        )
        throttled = CounterMetricFamily(
            "dynactor_online_index_throttle_events",
            "OnlineIndexThrottleEvents: number of times that the backfill of an index waited for "
            "the index's write units, or for a full mailbox of one of its partitions.",
            labels=_INDEX,
        )
        for index in self._figures.indexes:
            if index.percentage_progress is not None:
                progress.add_metric(index.labels, index.percentage_progress)
            if index.backfill_write_units is not None:
                units.add_metric(index.labels, index.backfill_write_units)
                throttled.add_metric(index.labels, index.backfill_throttle_events)
        yield from (progress, units, throttled)

    def _lag(self) -> Iterator[Metric]:
        records = GaugeMetricFamily(
            "dynactor_index_lag_records",
            "Number of the table's changes that are not in the index yet.",
            labels=_INDEX,
        )
        seconds = GaugeMetricFamily(
            "dynactor_index_lag_seconds",
            "Age of the table's oldest change that is not in the index yet.",
            labels=_INDEX,
        )
        for index in self._figures.indexes:
            if index.lag_seconds is not None:
                records.add_metric(index.labels, index.lag_records)
                seconds.add_metric(index.labels, index.lag_seconds)
        yield from (records, seconds)

    def _time_to_live(self) -> Iterator[Metric]:
        deleted = CounterMetricFamily(
            "dynactor_time_to_live_deleted_item_count",
            "TimeToLiveDeletedItemCount: number of items that time to live has deleted.",
            labels=("table",),
        )
        lag = GaugeMetricFamily(
            "dynactor_time_to_live_lag_seconds",
            "Time since the expiry of the items that are deleted next.",
            labels=("table",),
        )
        for table in self._figures.expiry:
            if table.lag_seconds is not None or table.deleted_items:
                deleted.add_metric((table.name,), table.deleted_items)
            if table.lag_seconds is not None:
                lag.add_metric((table.name,), table.lag_seconds)
        yield from (deleted, lag)

    def _publishing(self) -> Iterator[Metric]:
        state = GaugeMetricFamily(
            "dynactor_destination_state",
            "1 for the current state of a destination: PUBLISHING, or why it does not publish.",
            labels=(*_DESTINATION, "state"),
        )
        for destination in self._figures.destinations:
            state.add_metric((*destination.labels, destination.state), 1)
        yield state
        gauges = {
            "lag_records": "Number of the table's changes that are not published yet.",
            "lag_bytes": "Bytes of the change records that are kept for a topic.",
            "lag_seconds": "Age of the oldest change that is not published yet.",
        }
        counts = {
            "published_records": "Changes published to a topic since the server started.",
            "published_bytes": "Bytes of the keys and values published to a topic.",
            "errors": "Number of times that publishing failed and started again.",
            "omitted_images": "Records published without images because they were too large.",
        }
        for name, text in (gauges | counts).items():
            family = GaugeMetricFamily if name in gauges else CounterMetricFamily
            metric = family(f"dynactor_destination_{name}", text, labels=_DESTINATION)
            for destination in self._figures.destinations:
                metric.add_metric(destination.labels, getattr(destination, name))
            yield metric


def _capacity_states(table: Table) -> Iterator[_CapacityState]:
    throttle = table.throttle
    consumed = {"": throttle.consumed, **throttle.consumed_by_index}
    refused = _events_by_index(throttle.throttle_events)
    observed = _events_by_index(throttle.observed_events)
    refused.setdefault("", {})[_TOO_MANY_WAIT] = table.write_throttle_events
    for index, units in consumed.items():
        events = refused.get(index, {})
        yield _CapacityState(
            (table.definition.name, index),
            units.read_units,
            units.write_units,
            {reason: count for reason, count in events.items() if "Read" in reason},
            {reason: count for reason, count in events.items() if "Read" not in reason},
            observed.get(index, {}),
            None if index else throttle.transaction_conflicts,
        )


def _events_by_index(events: Mapping[ThrottlingReason, int]) -> dict[str, dict[str, int]]:
    """Counts by index name and reason; the table's own name is empty."""
    found: dict[str, dict[str, int]] = {}
    for reason, count in events.items():
        index = reason.resource.partition("/index/")[2]
        found.setdefault(index, {})[reason.reason] = count
    return found


def _expiry_state(table: Table) -> _ExpiryState:
    following = table.followers.following(subscriber_id(table))
    return _ExpiryState(
        table.definition.name,
        table.expired_items,
        following.lag_seconds if isinstance(following, TimeToLiveActors) else None,
    )


def _partition_states(table: Table) -> Iterator[_PartitionState]:
    record = table.record
    yield _PartitionState((record.definition.name, ""), len(record.partitions))
    for index in record.definition.global_indexes:
        ranges = record.index_partitions.get(index.definition.index_id, ())
        yield _PartitionState((record.definition.name, index.definition.name), len(ranges))


def virtual_clock(state: ClockState) -> Iterator[Metric]:
    """Metrics of the virtual clock."""
    yield GaugeMetricFamily(
        "dynactor_virtual_clock_epoch_seconds",
        "The time of the virtual clock.",
        value=state.now_epoch_seconds,
    )
    yield GaugeMetricFamily(
        "dynactor_virtual_clock_speed",
        "Seconds of the virtual clock in a real second; 0 while it stands still.",
        value=state.speed,
    )


async def _destination_states(database: Database, table: Table) -> list[DestinationState]:
    states = []
    for destination in table.definition.destinations:
        labels = (table.definition.name, destination.topic)
        progress = await database.part(DestinationPhases).progress(table, destination)
        if progress is None:
            states.append(DestinationState(labels, destination.status))
            continue
        states.append(
            DestinationState(
                labels,
                progress.state,
                progress.lag_records,
                progress.lag_bytes,
                _age_seconds(database, progress.oldest_unpublished_us),
                progress.published_records,
                progress.published_bytes,
                progress.errors,
                progress.omitted_images,
            )
        )
    return states


async def _index_states(database: Database, table: Table) -> list[IndexState]:
    states = []
    for index in table.definition.global_indexes:
        labels = (table.definition.name, index.definition.name)
        actors = table.followers.indexes.get(index.definition.index_id)
        if actors is not None:
            states.append(await _active_state(labels, actors, database))
        elif index.backfilling is False:
            states.append(IndexState(labels, percentage_progress=0.0))
    return states


async def _active_state(
    labels: tuple[str, str], actors: GlobalIndexActors, database: Database
) -> IndexState:
    progress = actors.progress
    lag_seconds: float | None = None
    # During a backfill the index has no followers yet: it has progress rather than lag.
    if actors.is_followed:
        lag_seconds = _age_seconds(database, await actors.oldest_unapplied_us())
    return IndexState(
        labels,
        percentage_progress=100 * progress.fraction_done if progress else None,
        backfill_write_units=progress.write_units if progress else None,
        backfill_throttle_events=actors.backfill_throttle_events
        + (progress.throttle_events if progress else 0),
        lag_records=actors.lag_records,
        lag_seconds=lag_seconds,
    )


def _age_seconds(database: Database, time_us: int | None) -> float:
    """Seconds since a time; 0 for None."""
    if time_us is None:
        return 0.0
    return max(0.0, database.clock.now_epoch_seconds() - time_us / 1e6)
