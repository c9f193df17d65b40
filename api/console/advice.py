"""Advice on a table, as ``dynactor advise`` gives it, and the forecast of an index.

The facts come from the tables directly. The computation runs in a thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, get_args

import anyio.to_thread
from msgspec import Struct

from dynactor.actors.database.database import Database
from dynactor.actors.table.item_sample import sample_items
from dynactor.actors.table.table import Table
from dynactor.api.admin.insights_routes import insights_answer, use_answer
from dynactor.api.admin_api.access_messages import AccessAnswer
from dynactor.api.advice.facts import AdviceFacts, mean_item_bytes, requested_units
from dynactor.api.advice.report import Asked, all_findings, report
from dynactor.api.advice.traffic import Traffic
from dynactor.api.answers.table_description import table_description
from dynactor.model.advice.index_forecast import IndexForecast, IndexLoad, forecast, load
from dynactor.model.capacity import write_units
from dynactor.model.definitions.index import IndexDefinition, Projection, ProjectionType
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.limits import KIB

_SAMPLED_ITEMS: Final = 1_000
_KEY_TYPES: Final = ("S", "N", "B")
_PROJECTIONS: Final[dict[str, ProjectionType]] = {name: name for name in get_args(ProjectionType)}


class BadIndex(ValueError):
    """The parameters of a planned index are invalid; the message says why."""


class IndexCost(Struct, frozen=True):
    """The forecast of an index. ``mean`` is the load of the last hour, ``busiest`` of its peak.

    ``entries`` and ``size_bytes`` are estimates from the sample.
    """

    item_count: int
    entries: int
    size_bytes: int
    forecast: IndexForecast
    mean: IndexLoad
    busiest: IndexLoad


async def advice(database: Database, table: Table, access: AccessAnswer) -> dict[str, Any]:
    """The findings about a table, and about the server's policies; raises ``StoreError``."""
    facts = await _facts(database, table, access)
    return await anyio.to_thread.run_sync(lambda: report(facts, all_findings(facts, Asked())))


async def index_cost(database: Database, table: Table, query: Mapping[str, str]) -> IndexCost:
    """The forecast of the index that a request describes; raises ``BadIndex`` or ``StoreError``."""
    index = planned_index(query)
    key = table.definition.key_schema
    state = await database.describe(table.definition.name)
    count = state.item_count
    sample = await sample_items(table, count, _SAMPLED_ITEMS)
    predicted = await anyio.to_thread.run_sync(partial(forecast, index, key, sample))
    traffic = Traffic(insights_answer(database, table, None))
    mean_bytes = mean_item_bytes(count, state.size_bytes)
    asked = requested_units("writes", table.throttle.mode, mean_bytes)
    # The units of one write to the table, for an item of the mean size.
    units = write_units(mean_bytes or KIB)
    seconds = max(1.0, traffic.answer.now - traffic.start_epoch_seconds)
    entries = round(count * predicted.with_entry)
    return IndexCost(
        count,
        entries,
        round(entries * predicted.entry_bytes),
        predicted,
        load(predicted, traffic.weighted_total(asked) / seconds / units),
        load(predicted, traffic.busiest_second(asked) / units),
    )


def planned_index(query: Mapping[str, str]) -> IndexDefinition:
    """The index that the parameters of a request describe; raises ``BadIndex``."""
    partition = _attribute(query, "partition")
    if partition is None:
        raise BadIndex("Name the partition key of the index: &partition=ATTRIBUTE")
    sort = _attribute(query, "sort")
    projection = _PROJECTIONS.get(query.get("projection", "ALL"))
    if projection is None:
        raise BadIndex(f"The projection is one of {', '.join(_PROJECTIONS)}")
    names = tuple(name.strip() for name in query.get("include", "").split(",") if name.strip())
    return IndexDefinition(
        1,
        "planned",
        KeySchema((partition,), () if sort is None else (sort,)),
        Projection(projection, names if projection == "INCLUDE" else ()),
    )


def _attribute(query: Mapping[str, str], part: str) -> KeyAttribute | None:
    name = query.get(part, "")
    key_type = query.get(f"{part}_type", "S")
    if key_type not in _KEY_TYPES:
        raise BadIndex(f"The type of a key is one of {', '.join(_KEY_TYPES)}")
    return KeyAttribute(name, key_type) if name else None  # type: ignore[arg-type]


async def _facts(database: Database, table: Table, access: AccessAnswer) -> AdviceFacts:
    state = await database.describe(table.definition.name)
    return AdviceFacts(
        table_description(database, state),
        await use_answer(database, table, None),
        Traffic(insights_answer(database, table, None)),
        {
            index.definition.name: Traffic(insights_answer(database, table, index.definition.name))
            for index in table.definition.global_indexes
        },
        await sample_items(table, state.item_count, _SAMPLED_ITEMS),
        access,
    )
