"""All tables in one answer, with the state of their indexes, streams and destinations."""

from __future__ import annotations

from time import monotonic

from msgspec import Struct

from dynactor.actors.catalog.database import Database
from dynactor.actors.table.state import IndexCounters, TableState
from dynactor.actors.table.table import Table
from dynactor.api.admin.metrics.tables import TableFigures, table_figures
from dynactor.api.answers.table_description import key_schema, stream_arn, table_arn
from dynactor.model.errors import ResourceNotFoundException


class IndexOverview(Struct, frozen=True):
    """An index: its state, its entries, and how far it is behind its table.

    ``progress`` is the percentage of a backfill, ``lag_seconds`` the age of the oldest change that
    is not in the index yet; None if there is no such thing.
    """

    name: str
    kind: str
    status: str
    keys: list[dict[str, str]]
    projection: str
    item_count: int
    size_bytes: int
    partitions: int
    read_units: float
    write_units: float
    progress: float | None
    lag_records: int
    lag_seconds: float | None


class DestinationOverview(Struct, frozen=True):
    """A Kafka topic of a table, its state, and how far it is behind."""

    topic: str
    status: str
    state: str
    lag_records: int
    lag_seconds: float


class TableOverview(Struct, frozen=True):
    """A table of the list. Units and throttled requests are counted since the server started."""

    name: str
    arn: str
    status: str
    mode: str
    provisioned_read_units: int
    provisioned_write_units: int
    item_count: int
    size_bytes: int
    partitions: int
    keys: list[dict[str, str]]
    attributes: dict[str, str]
    read_units: float
    write_units: float
    throttled: int
    would_be_throttled: int
    conflicts: int
    deletion_protection: bool
    stream_arn: str | None
    stream_view: str | None
    time_to_live: str
    time_to_live_attribute: str | None
    time_to_live_lag_seconds: float | None
    expired_items: int
    indexes: list[IndexOverview]
    destinations: list[DestinationOverview]


class Overview(Struct, frozen=True):
    """All tables; ``seconds`` is a clock for rates between two answers."""

    seconds: float
    now_epoch_seconds: float
    tables: list[TableOverview]


async def overview(database: Database) -> Overview:
    """All tables of a database.

    Raises:
        StoreError: the store can't be read.
    """
    tables = list(database.tables)
    figures = await table_figures(database, tables)
    found = []
    for table in tables:
        try:
            state = await database.describe(table.definition.name)
        except ResourceNotFoundException:
            # The table was deleted meanwhile.
            continue
        found.append(_table(database, table, state, figures))
    return Overview(monotonic(), database.clock.now_epoch_seconds(), found)


def _table(
    database: Database, table: Table, state: TableState, figures: TableFigures
) -> TableOverview:
    definition = state.definition
    name, stream, time_to_live = definition.name, definition.stream, definition.time_to_live
    is_streamed = stream is not None and stream.enabled
    throttled, would_be_throttled = _throttled(table)
    lags = {expiry.name: expiry.lag_seconds for expiry in figures.expiry}
    return TableOverview(
        name=name,
        arn=table_arn(database, name),
        status=definition.status,
        mode=definition.billing_mode,
        provisioned_read_units=definition.throughput.read_units,
        provisioned_write_units=definition.throughput.write_units,
        item_count=state.item_count,
        size_bytes=state.size_bytes,
        partitions=len(table.record.partitions),
        keys=key_schema(definition.key_schema),
        attributes={each.name: each.type for each in definition.attribute_definitions},
        read_units=table.throttle.consumed.read_units,
        write_units=table.throttle.consumed.write_units,
        throttled=throttled,
        would_be_throttled=would_be_throttled,
        conflicts=table.throttle.transaction_conflicts,
        deletion_protection=definition.deletion_protection,
        stream_arn=stream_arn(database, name, stream.label) if stream and is_streamed else None,
        stream_view=stream.view_type if stream and is_streamed else None,
        time_to_live="DISABLED" if time_to_live is None else time_to_live.status,
        time_to_live_attribute=None if time_to_live is None else time_to_live.attribute_name,
        time_to_live_lag_seconds=lags.get(name),
        expired_items=table.expired_items,
        indexes=_indexes(table, state, figures),
        destinations=[
            DestinationOverview(
                destination.topic,
                destination.status,
                *_destination_figures(figures, name, destination.topic),
            )
            for destination in definition.destinations
        ],
    )


def _throttled(table: Table) -> tuple[int, int]:
    """Refused requests, and requests that DynamoDB would have refused."""
    throttle = table.throttle
    refused = sum(throttle.throttle_events.values()) + table.write_throttle_events
    return refused, sum(throttle.observed_events.values())


def _indexes(table: Table, state: TableState, figures: TableFigures) -> list[IndexOverview]:
    definition = state.definition
    states = {each.labels: each for each in figures.indexes}
    found = []
    for local in definition.local_indexes:
        counters = state.indexes.get(local.name, IndexCounters(0, 0))
        found.append(
            IndexOverview(
                local.name,
                "LOCAL",
                "ACTIVE",
                key_schema(local.key_schema),
                local.projection.type,
                counters.item_count,
                counters.size_bytes,
                len(table.record.partitions),
                read_units=0.0,
                write_units=0.0,
                progress=None,
                lag_records=0,
                lag_seconds=None,
            )
        )
    for index in definition.global_indexes:
        name = index.definition.name
        counters = state.indexes.get(name, IndexCounters(0, 0))
        consumed = table.throttle.consumed_by_index.get(name)
        progress = states.get((definition.name, name))
        found.append(
            IndexOverview(
                name,
                "GLOBAL",
                index.status,
                key_schema(index.definition.key_schema),
                index.definition.projection.type,
                counters.item_count,
                counters.size_bytes,
                len(table.record.index_partitions.get(index.definition.index_id, ())),
                read_units=0.0 if consumed is None else consumed.read_units,
                write_units=0.0 if consumed is None else consumed.write_units,
                progress=None if progress is None else progress.percentage_progress,
                lag_records=0 if progress is None else progress.lag_records,
                lag_seconds=None if progress is None else progress.lag_seconds,
            )
        )
    return found


def _destination_figures(
    figures: TableFigures, table_name: str, topic: str
) -> tuple[str, int, float]:
    for destination in figures.destinations:
        if destination.labels == (table_name, topic):
            return destination.state, destination.lag_records, destination.lag_seconds
    return "", 0, 0.0
