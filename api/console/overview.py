"""All tables in one answer, with the state of their indexes, streams and destinations."""

from __future__ import annotations

from time import monotonic
from typing import NamedTuple

from msgspec import Struct

from dynactor.actors.database.database import Database
from dynactor.actors.table.state import TableState
from dynactor.actors.table.table import Table
from dynactor.api.admin.metrics.tables import (
    DestinationState,
    IndexState,
    TableFigures,
    table_figures,
)
from dynactor.api.answers.table_description import key_schema
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import ResourceNotFoundException


class IndexOverview(Struct, frozen=True):
    """An index: its state, and how far it is behind its table.

    ``progress`` is the percentage of a backfill, ``lag_seconds`` the age of the oldest change that
    is not in the index yet; None if there is no such thing.
    """

    name: str
    status: str = "ACTIVE"
    progress: float | None = None
    lag_records: int = 0
    lag_seconds: float | None = None


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
    has_stream: bool
    has_recovery: bool
    time_to_live: str
    time_to_live_attribute: str | None
    indexes: list[IndexOverview]
    destinations: list[DestinationOverview]


class Overview(Struct, frozen=True):
    """All tables; ``seconds`` is a clock for rates between two answers."""

    seconds: float
    tables: list[TableOverview]


class _Figures(NamedTuple):
    """The figures of global indexes and destinations, by the table's name and their own."""

    indexes: dict[tuple[str, str], IndexState]
    destinations: dict[tuple[str, str], DestinationState]


async def overview(database: Database) -> Overview:
    """All tables of a database; raises ``StoreError``."""
    tables = list(database.tables)
    figures = _figures_by_labels(await table_figures(database, tables))
    found = []
    for table in tables:
        try:
            state = await database.describe(table.definition.name)
        except ResourceNotFoundException:
            # The table was deleted meanwhile.
            continue
        found.append(_table(table, state, figures))
    return Overview(monotonic(), found)


def _figures_by_labels(figures: TableFigures) -> _Figures:
    return _Figures(
        {each.labels: each for each in figures.indexes},
        {each.labels: each for each in figures.destinations},
    )


def _table(table: Table, state: TableState, figures: _Figures) -> TableOverview:
    definition = state.definition
    name, stream, time_to_live = definition.name, definition.stream, definition.time_to_live
    throttled, would_be_throttled = _throttled(table)
    return TableOverview(
        name=name,
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
        has_stream=stream is not None and stream.enabled,
        has_recovery=definition.point_in_time_recovery is not None,
        time_to_live="DISABLED" if time_to_live is None else time_to_live.status,
        time_to_live_attribute=None if time_to_live is None else time_to_live.attribute_name,
        indexes=_indexes(definition, figures),
        destinations=[
            DestinationOverview(
                destination.topic,
                destination.status,
                *_destination_figures(figures.destinations.get((name, destination.topic))),
            )
            for destination in definition.destinations
        ],
    )


def _throttled(table: Table) -> tuple[int, int]:
    """Refused requests, and requests that DynamoDB would have refused."""
    throttle = table.throttle
    refused = sum(throttle.throttle_events.values()) + table.write_throttle_events
    return refused, sum(throttle.observed_events.values())


def _indexes(definition: TableDefinition, figures: _Figures) -> list[IndexOverview]:
    found = [IndexOverview(local.name) for local in definition.local_indexes]
    for index in definition.global_indexes:
        name = index.definition.name
        progress = figures.indexes.get((definition.name, name))
        if progress is None:
            found.append(IndexOverview(name, index.status))
            continue
        found.append(
            IndexOverview(
                name,
                index.status,
                progress.percentage_progress,
                progress.lag_records,
                progress.lag_seconds,
            )
        )
    return found


def _destination_figures(figures: DestinationState | None) -> tuple[str, int, float]:
    if figures is None:
        return "", 0, 0.0
    return figures.state, figures.lag_records, figures.lag_seconds
