"""The use of a table's keys, on the admin listener: ``GET /insights?table=T&index=I``.

The answer has the counts of each minute of the last hour, from Contributor Insights or from the
sample for advice. ``dynactor advise`` also reads ``GET /insights/use?table=T``, with
``&attribute=A`` for the values of A in the items written last, and
``GET /insights/sample?table=T&count=N``. These requests consume no units and count for no key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aiohttp import web

from dynactor.actors.database.database import Database
from dynactor.actors.limits.consumed_units import Consumed
from dynactor.actors.limits.key_counts import Window
from dynactor.actors.phases.contributor_insights import ContributorInsightsSwitch
from dynactor.actors.table.item_sample import (
    collection_start,
    items_at,
    largest_collections,
    sample_items,
)
from dynactor.actors.table.table import Table
from dynactor.api.admin.answers import fault, json_answer, other_method, raw_answer
from dynactor.api.admin_api.insights_messages import (
    INSIGHTS_PATH,
    SAMPLE_PATH,
    USE_PATH,
    BusyKey,
    CollectionSize,
    Counted,
    InsightsAnswer,
    KeyWeight,
    Minute,
    SampleAnswer,
    ThrottleCount,
    Units,
    UseAnswer,
)
from dynactor.model.advice.heavy_hitters import KeySummary, heaviest
from dynactor.model.advice.key_traffic import Kind
from dynactor.model.definitions.table import TABLE_INDEX_ID
from dynactor.model.errors import ResourceNotFoundException, ThrottlingReason
from dynactor.model.keys.key import KeySchema
from dynactor.model.keys.key_decoding import key_values, partition_values
from dynactor.model.limits import MIB
from dynactor.model.tables import contributor_insights
from dynactor.model.values.item import Item
from dynactor.storage.store import StoreError

if TYPE_CHECKING:
    from dynactor.api.nodes.node import Node

_LARGEST: Final = 20
# For this number of busiest keys, the size of all items is added up, to a limit.
_BUSIEST: Final = 3
_COUNTED_BYTES: Final = 8 * MIB
_MOST_SAMPLED: Final = 10_000


async def answer(
    database: Database, request: web.BaseRequest, node: Node | None = None
) -> web.Response:
    """Answer a request below ``/insights``; ``node`` is the leader of a cluster, if any."""
    if request.path not in (INSIGHTS_PATH, USE_PATH, SAMPLE_PATH):
        paths = f"{INSIGHTS_PATH}, {USE_PATH} and {SAMPLE_PATH}"
        return fault(HTTPStatus.NOT_FOUND, f"There are {paths}")
    if request.method not in ("GET", "HEAD"):
        return other_method(request.path, "GET, HEAD")
    name = request.query.get("table")
    if not name:
        return fault(HTTPStatus.BAD_REQUEST, "Name the table: ?table=NAME")
    if node is not None and name in database.tables_elsewhere:
        home_answer = await node.ask_for_insights(name, request.path_qs)
        if home_answer is not None:
            return raw_answer(home_answer.status, home_answer.body)
        if name in database.tables_elsewhere:
            return fault(HTTPStatus.SERVICE_UNAVAILABLE, f"The home of {name} does not answer")
    return await found(database, request.path, request.query)


async def found(database: Database, path: str, parameters: Mapping[str, str]) -> web.Response:
    """Answer a request for one of the paths, at the home of the table."""
    try:
        table = _table(database, parameters.get("table", ""))
        if path == USE_PATH:
            use = await use_answer(database, table, parameters.get("attribute"))
            return json_answer(HTTPStatus.OK, use)
        if path == SAMPLE_PATH:
            sample = await sample_answer(database, table, parameters.get("count"))
            return json_answer(HTTPStatus.OK, sample)
        return json_answer(HTTPStatus.OK, insights_answer(database, table, parameters.get("index")))
    except ResourceNotFoundException as error:
        return fault(HTTPStatus.NOT_FOUND, str(error))
    except ValueError as error:
        return fault(HTTPStatus.BAD_REQUEST, str(error))
    except StoreError as error:
        return fault(HTTPStatus.INTERNAL_SERVER_ERROR, f"The store failed: {error}")


def _table(database: Database, name: str) -> Table:
    for table in database.tables:
        if table.definition.name == name:
            return table
    raise ResourceNotFoundException(f"There is no table {name}")


def insights_answer(database: Database, table: Table, index_name: str | None) -> InsightsAnswer:
    """The counts of a table, or of its global index of that name."""
    definition = table.definition
    insights = contributor_insights.resource_insights(definition, index_name)
    schema, index_id = definition.key_schema, TABLE_INDEX_ID
    if index_name is not None:
        index = definition.global_index(index_name)
        assert index is not None
        schema, index_id = index.definition.key_schema, index.definition.index_id
    traffic = table.throttle.traffic
    now = database.clock.now_epoch_seconds()
    return InsightsAnswer(
        definition.name,
        index_name,
        database.part(ContributorInsightsSwitch).status(insights),
        insights.mode if insights else None,
        traffic.recording(index_id) if traffic else "none",
        traffic.since_epoch_seconds if traffic else now,
        now,
        [_minute(schema, window) for window in traffic.windows(index_id)] if traffic else [],
    )


def _minute(schema: KeySchema, window: Window) -> Minute:
    def counted(summary: KeySummary, *, whole: bool) -> Counted:
        values = key_values if whole else partition_values
        keys = [KeyWeight(values(schema, key), weight) for key, weight in summary.keys]
        return Counted(summary.total, summary.error, summary.unlisted, keys)

    return Minute(
        window.start_epoch_seconds,
        {kind: seconds.tolist() for kind, seconds in window.seconds.items()},
        {kind: counted(each, whole=False) for kind, each in window.partitions.items()},
        {kind: counted(each, whole=True) for kind, each in window.items.items()},
    )


async def sample_answer(database: Database, table: Table, count: str | None) -> SampleAnswer:
    """A sample of a number of items; raises ``ValueError`` if the number is not valid."""
    if count is None or not count.isdecimal() or not 0 < int(count) <= _MOST_SAMPLED:
        raise ValueError(f"Give the number of items: &count=N, up to {_MOST_SAMPLED:,}")
    item_count = (await database.describe(table.definition.name)).item_count
    return SampleAnswer(await sample_items(table, item_count, int(count)))


async def use_answer(database: Database, table: Table, attribute: str | None) -> UseAnswer:
    """The use of a table, with the values of an attribute in the items written last."""
    definition, throttle, traffic = table.definition, table.throttle, table.throttle.traffic
    ids = {"": TABLE_INDEX_ID} | {index.name: index.index_id for index in definition.indexes}
    partitions = {"": len(table.record.partitions)}
    for index in definition.global_indexes:
        numbers = table.record.index_partitions.get(index.definition.index_id, ())
        partitions[index.definition.name] = len(numbers)
    now = database.clock.now_epoch_seconds()
    return UseAnswer(
        definition.name,
        traffic.since_epoch_seconds if traffic else now,
        now,
        throttle.mode,
        database.settings.item_collection_limit_bytes,
        partitions,
        {"": _units(throttle.consumed)}
        | {name: _units(consumed) for name, consumed in throttle.consumed_by_index.items()},
        [
            *_throttles(throttle.throttle_events, observed=False),
            *_throttles(throttle.observed_events, observed=True),
        ],
        {name: traffic.use(index_id) for name, index_id in ids.items()} if traffic else {},
        await _collections(table) if definition.local_indexes else [],
        await _busy_keys(table),
        [] if attribute is None else await _written(table, attribute),
    )


async def _busy_keys(table: Table) -> list[BusyKey]:
    traffic = table.throttle.traffic
    if traffic is None:
        return []
    windows = traffic.windows()
    kinds: tuple[Kind, ...] = ("writes", "reads")
    busiest = {
        heavy.key: None
        for kind in kinds
        for heavy in heaviest(
            (window.partitions[kind] for window in windows if kind in window.partitions), _BUSIEST
        )
    }
    found = []
    for key in busiest:
        size_bytes, is_whole = await collection_start(table, key, _COUNTED_BYTES)
        found.append(
            BusyKey(partition_values(table.definition.key_schema, key), size_bytes, is_whole)
        )
    return found


async def _written(table: Table, attribute: str) -> list[Item]:
    traffic = table.throttle.traffic
    written = await items_at(table, traffic.recent_writes if traffic else [])
    return [{attribute: item[attribute]} if attribute in item else {} for item in written]


def _units(consumed: Consumed) -> Units:
    return Units(consumed.read_units, consumed.write_units)


def _throttles(events: Counter[ThrottlingReason], *, observed: bool) -> list[ThrottleCount]:
    return [
        ThrottleCount(reason.reason, reason.resource.partition("/index/")[2], count, observed)
        for reason, count in events.items()
    ]


async def _collections(table: Table) -> list[CollectionSize]:
    traffic, schema = table.throttle.traffic, table.definition.key_schema
    found = []
    for size_bytes, partition_key in await largest_collections(table, _LARGEST):
        growth = traffic.growth(partition_key) if traffic else None
        found.append(
            CollectionSize(
                partition_values(schema, partition_key),
                size_bytes,
                growth.first_epoch_seconds if growth else None,
                growth.first_bytes if growth else None,
            )
        )
    return found
