"""Findings about a table's partition key and its throughput."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from dynactor.api.admin_api.insights_messages import BusyKey
from dynactor.api.advice.facts import AdviceFacts
from dynactor.api.advice.text import figure, key_text, percent, size, span
from dynactor.api.advice.traffic import CONFLICTS, Access, KeyLoad
from dynactor.model.advice.key_choice import query_cost, skew, suffixes_for_writes
from dynactor.model.advice.key_traffic import KEPT_KEYS, MINUTE_SECONDS, Kind
from dynactor.model.advice.throttling_forecast import (
    Expected,
    KeyShare,
    MinuteLoad,
    Operation,
    expected,
)
from dynactor.model.capacity import write_units
from dynactor.model.definitions.table import Throughput
from dynactor.model.keys import key as keys
from dynactor.model.limits import KIB, PARTITION_READ_UNITS, PARTITION_WRITE_UNITS
from dynactor.model.throttling.partition_count import partition_count
from dynactor.model.values import item as items

# "problem": requests are or would be refused, or a limit is near; "hint": an improvement.
Level: TypeAlias = Literal["problem", "hint", "fact"]

# Share of a limit above which a finding is reported.
NEAR: Final = 0.5
_SIMULATED_KEYS: Final = 16
_SHOWN_KEYS: Final = 3
# An item with a larger share of its partition key's units has most of them.
_MOST: Final = 0.5
_NEXT_TO_NOTHING: Final = 0.001
_NOTABLE: Final = 1.05
_FEW_KEYS: Final = 10
# Fewer conflicts are not reported: clients retry them.
_LEAST_CONFLICTS: Final = 10
# In a smaller table or sample, few values of the key say nothing about the load to come.
_ENOUGH_ITEMS: Final = 1_000
_ENOUGH_SAMPLED: Final = 100
_ITEMS_PER_KEY: Final = 20


class Finding(Struct, frozen=True):
    """A finding about the table, with its rules and the advice."""

    level: Level
    rules: tuple[str, ...]
    text: str
    advice: str = ""
    figures: dict[str, Any] = {}


class Load(Protocol):
    """The options for a planned load and for other provisioned units."""

    @property
    def write_units(self) -> int | None: ...  # noqa: D102 - the option's text says it
    @property
    def read_units(self) -> int | None: ...  # noqa: D102
    @property
    def writes_per_second(self) -> float | None: ...  # noqa: D102
    @property
    def item_size_bytes(self) -> int | None: ...  # noqa: D102


class _LoadSide(NamedTuple):
    """Reads or writes, with the name of their throttled requests and the limit of a partition."""

    kind: Access
    throttled: Kind
    operation: Operation
    ceiling: int


_SIDES: Final = (
    _LoadSide("writes", "throttled_writes", "write", PARTITION_WRITE_UNITS),
    _LoadSide("reads", "throttled_reads", "read", PARTITION_READ_UNITS),
)


def key_findings(facts: AdviceFacts, load: Load) -> Iterator[Finding]:
    """Find uneven keys, hot keys and conflicts; compute the suffixes for a planned load."""
    if not facts.traffic.minutes:
        yield Finding("fact", (), "No reads or writes were counted in the last hour")
    for side in _SIDES:
        yield from _skew(facts, side)
        yield from _hot_keys(facts, side)
    if load.writes_per_second is not None:
        yield _suffixes(facts, load, load.writes_per_second)
    yield from _conflicts(facts)
    yield from _cardinality(facts)


def _conflicts(facts: AdviceFacts) -> Iterator[Finding]:
    total = facts.traffic.total(*CONFLICTS)
    if total < _LEAST_CONFLICTS:
        return
    counted = facts.traffic.counted(dict.fromkeys(CONFLICTS, 1.0))
    hottest = facts.traffic.top(CONFLICTS, _SHOWN_KEYS, items=bool(facts.key_schema.sort))
    shown = ", ".join(f"{key_text(load.key)} {percent(load.weight / counted)}" for load in hottest)
    yield Finding(
        "hint",
        (),
        f"{figure(total)} requests of the last hour conflicted with a transaction on their item: "
        f"{shown}",
        "Leave items out of transactions if they need not change together with the others, or "
        "split an item that many requests change, such as a counter, into several items",
        {
            "conflicts": total,
            "items": [{"key": load.key, "conflicts": load.weight} for load in hottest],
        },
    )


def _skew(facts: AdviceFacts, side: _LoadSide) -> Iterator[Finding]:
    asked = facts.asked(side.kind)
    total = facts.traffic.weighted_total(asked)
    top = facts.traffic.top(asked, KEPT_KEYS)
    counted = facts.traffic.counted(asked)
    found = skew((load.weight for load in top), counted) if counted else None
    if found is None:
        return
    is_uneven = found.effective_count < _FEW_KEYS
    yield Finding(
        "hint" if is_uneven and facts.traffic.busiest_second(asked) > side.ceiling else "fact",
        ("S76", "S140"),
        f"{side.kind.capitalize()}: the busiest partition key has "
        f"{percent(found.hottest_share)} of {figure(total)} units, the ten busiest have "
        f"{percent(found.top_ten_share)}. The load is as uneven as if only "
        f"{figure(found.effective_count)} keys shared it equally",
        figures={
            "operation": side.operation,
            "units": total,
            "hottest_share": found.hottest_share,
            "top_ten_share": found.top_ten_share,
            "effective_keys": found.effective_count,
        },
    )


def _hot_keys(facts: AdviceFacts, side: _LoadSide) -> Iterator[Finding]:
    for load in facts.traffic.top(facts.asked(side.kind), _SHOWN_KEYS):
        if load.busiest_second < side.ceiling * NEAR:
            continue
        is_hot = load.busiest_second > side.ceiling
        suffixes = max(1, -int(-load.busiest_second // side.ceiling))
        text = (
            f"{'Hot key' if is_hot else 'Warm key'} {key_text(load.key)}: about "
            f"{figure(load.busiest_second)} {side.operation} units in its busiest second; the "
            f"limit of one partition key value is {side.ceiling:,}"
        )
        yield Finding(
            "problem" if is_hot else "hint",
            ("S139", "S144", "S145", "A9", "S149") if is_hot else ("S139",),
            text + _what_divides(facts, side, load),
            _spreading(facts.held_by(load.key), suffixes) if is_hot else "",
            {
                "operation": side.operation,
                "key": load.key,
                "units": load.weight,
                "busiest_second": load.busiest_second,
                "ceiling": side.ceiling,
                "suffixes": suffixes,
            },
        )


def index_key_loads(facts: AdviceFacts) -> Iterator[Finding]:
    """Find hot keys of global indexes, which throttle writes to the table (S110)."""
    for name, traffic in facts.index_traffic.items():
        for side in _SIDES:
            for load in traffic.top(facts.asked(side.kind), _SHOWN_KEYS):
                if load.busiest_second < side.ceiling * NEAR:
                    continue
                is_hot = load.busiest_second > side.ceiling
                suffixes = max(1, -int(-load.busiest_second // side.ceiling))
                throttled = (
                    "; above it, writes to the table are throttled"
                    if side.operation == "write"
                    else ""
                )
                yield Finding(
                    "problem" if is_hot else "hint",
                    ("S139", "S110", "S152") if is_hot else ("S139",),
                    f"{'Hot key' if is_hot else 'Warm key'} {key_text(load.key)} of index {name}: "
                    f"about {figure(load.busiest_second)} {side.operation} units in its busiest "
                    f"second; the limit of one key value is {side.ceiling:,}{throttled}",
                    f"Add a number from 1 to {suffixes} to the values of the index's key: reading "
                    f"one value then takes {suffixes} queries"
                    if is_hot
                    else "",
                    {
                        "index": name,
                        "operation": side.operation,
                        "key": load.key,
                        "busiest_second": load.busiest_second,
                        "ceiling": side.ceiling,
                        "suffixes": suffixes,
                    },
                )


def _what_divides(facts: AdviceFacts, side: _LoadSide, load: KeyLoad) -> str:
    """Whether DynamoDB can split the partition of a hot key."""
    if not facts.key_schema.sort:
        return ". The key has one item, which can't be split over partitions"
    if facts.description.get("LocalSecondaryIndexes"):
        return ". The table has local indexes: its item collections are never split (S74)"
    for item in facts.traffic.top(facts.asked(side.kind), _SHOWN_KEYS, items=True):
        if load.key.items() <= item.key.items() and item.weight > load.weight * _MOST:
            return (
                f". Most of these units are for one item, {key_text(item.key)}, which can't be "
                "split over partitions"
            )
    return ", unless DynamoDB splits the key's items over partitions, by sort key"


def _spreading(held: BusyKey | None, suffixes: int) -> str:
    if suffixes == 1:
        return ""
    return (
        f"Add one of {suffixes} suffixes or more to the key, -1 to -{suffixes}: more suffixes are "
        f"hard to add later (S149). {_cost(held, suffixes)}"
    )


def _cost(held: BusyKey | None, suffixes: int) -> str:
    """The cost of suffixes for reads of all items of a key."""
    text = f"Reading all items of the key then takes {suffixes} queries instead of one"
    if held is None or not held.size_bytes:
        return f"{text} (S148, S150)"
    one, divided = query_cost(held.size_bytes), query_cost(held.size_bytes, suffixes)
    size_text = size(held.size_bytes) if held.is_whole else f"the first {size(held.size_bytes)}"
    units = (
        f"{figure(divided.read_units)} read units instead of {figure(one.read_units)}"
        if divided.read_units > one.read_units * _NOTABLE
        else f"about as many read units, {figure(divided.read_units)}"
    )
    return f"{text}, and {units} for {size_text} (S148, S150)"


def _suffixes(facts: AdviceFacts, load: Load, writes_per_second: float) -> Finding:
    """The number of suffixes for a planned load, by A9's formula."""
    item_bytes = load.item_size_bytes or facts.average_item_bytes or KIB
    suffixes = suffixes_for_writes(writes_per_second, item_bytes)
    hottest = facts.traffic.top(["writes"], 1)
    held = facts.held_by(hottest[0].key) if hottest else None
    units = write_units(item_bytes)
    return Finding(
        "fact",
        ("S145", "A9", "S149"),
        f"{figure(writes_per_second)} writes a second of {figure(item_bytes)} bytes to one "
        f"partition key need {_suffix_count(suffixes)}: {figure(writes_per_second)} times {units} "
        f"{'unit' if units == 1 else 'units'}, divided by {PARTITION_WRITE_UNITS:,}",
        _cost(held, suffixes) if suffixes > 1 else "",
        {
            "writes_per_second": writes_per_second,
            "item_size_bytes": item_bytes,
            "suffixes": suffixes,
        },
    )


def _suffix_count(suffixes: int) -> str:
    return "no suffix" if suffixes == 1 else f"{suffixes} suffixes"


def _cardinality(facts: AdviceFacts) -> Iterator[Finding]:
    """Find a partition key with few values, which makes hot partitions (S141, S157)."""
    name = facts.key_schema.partition[0].name
    count = len(facts.sample)
    distinct = len({items.encode({name: item[name]}) for item in facts.sample})
    if facts.description["ItemCount"] < _ENOUGH_ITEMS or count < _ENOUGH_SAMPLED:
        return
    if distinct * _ITEMS_PER_KEY < count and distinct < KEPT_KEYS:
        yield Finding(
            "hint",
            ("S141", "S157"),
            f"{count:,} items of the sample have {distinct} values of the partition key {name}",
            "Choose an attribute with more values, or combine several attributes (S142)",
            {"sampled_items": count, "partition_keys": distinct},
        )


# -- throughput -----------------------------------------------------------------------------


def throttling_findings(facts: AdviceFacts, load: Load) -> Iterator[Finding]:
    """Report throttling so far, and the throttling to expect of the recorded load."""
    yield from _refused(facts)
    has_units = load.write_units is not None or load.read_units is not None
    for side in _SIDES:
        if facts.traffic.total(side.kind, side.throttled):
            units = _configured_units(facts, load, side)
            # For an on-demand table, --write-units alone gives no limit of reads.
            if units is not None or not has_units:
                yield _expected(facts, load, side, units)


_CAUSES: Final = {
    "ProvisionedThroughputExceeded": "above the provisioned units",
    "KeyRangeThroughputExceeded": "above the limit of one partition, by a hot key or uneven keys",
    "AccountLimitExceeded": "above an account's quota for one table",
    "MaxOnDemandThroughputExceeded": "above the table's maximum on-demand throughput",
}


def _refused(facts: AdviceFacts) -> Iterator[Finding]:
    for throttle in sorted(facts.use.throttles, key=lambda each: -each.count):
        did = "DynamoDB would have throttled" if throttle.observed else "The server throttled"
        cause = next((text for end, text in _CAUSES.items() if throttle.reason.endswith(end)), "")
        where = f" at index {throttle.index}" if throttle.index else ""
        yield Finding(
            "problem",
            ("S140",),
            f"{did} {throttle.count:,} requests{where} since the server started, by "
            f"{throttle.reason}: {cause}",
            figures={
                "reason": throttle.reason,
                "index": throttle.index or None,
                "count": throttle.count,
                "observed": throttle.observed,
            },
        )


def _expected(facts: AdviceFacts, load: Load, side: _LoadSide, units: int | None) -> Finding:
    partitions = facts.use.partitions[""]
    if load.write_units is not None or load.read_units is not None:
        given = Throughput(
            int(_configured_units(facts, load, _SIDES[1]) or 0),
            int(_configured_units(facts, load, _SIDES[0]) or 0),
        )
        partitions = partition_count("PROVISIONED", given)
    found = expected(_minutes(facts, side), side.operation, units, partitions)
    share = found.refused / found.offered if found.offered else 0.0
    busiest = facts.traffic.busiest_second(facts.asked(side.kind))
    limits = f"With {units:,} {side.operation} units" if units is not None else "On demand"
    on_partitions = f"{partitions} {'partition' if partitions == 1 else 'partitions'}"
    text = f"{limits} on {on_partitions}, "
    text += "none" if share < _NEXT_TO_NOTHING else percent(share)
    text += (
        f" of the last hour's {figure(found.offered)} {side.operation} units would be throttled; "
        f"the busiest second had {figure(busiest)}"
    )
    return Finding(
        "fact" if share < _NEXT_TO_NOTHING else "problem",
        ("S138", "S139", "S140", "S161"),
        text,
        "" if share < _NEXT_TO_NOTHING else _causes(found, side),
        {
            "operation": side.operation,
            "units_per_second": units,
            "partitions": partitions,
            "offered_units": found.offered,
            "throttled_share": share,
            "over_rate_units": found.over_rate,
            "uneven_units": found.uneven,
            "ceiling_units": found.ceiling,
            "growth_units": found.growth,
            "busiest_second": busiest,
        },
    )


def _causes(found: Expected, side: _LoadSide) -> str:
    """The causes of throttling: the three of S140, and the one of on-demand tables."""
    units_by_cause = {
        "the request rate is above the units": found.over_rate,
        "the keys are uneven, and other partitions leave too few units": found.uneven,
        f"a hot key is above a partition's limit of {side.ceiling:,}": found.ceiling,
        "the load of an on-demand table grew to more than twice its previous peak": found.growth,
    }
    listed = "; ".join(
        f"{percent(units / found.offered)} because {cause}"
        for cause, units in units_by_cause.items()
        if units
    )
    return listed[0].upper() + listed[1:]


def _configured_units(facts: AdviceFacts, load: Load, side: _LoadSide) -> int | None:
    """The provisioned units of the option, or else of the table; None for on-demand."""
    given = load.write_units if side.operation == "write" else load.read_units
    if given is not None:
        return given
    throughput = facts.description["ProvisionedThroughput"]
    name = "WriteCapacityUnits" if side.operation == "write" else "ReadCapacityUnits"
    return int(throughput[name]) if facts.is_provisioned else None


def _minutes(facts: AdviceFacts, side: _LoadSide) -> Iterator[MinuteLoad]:
    """The recorded load by minute and key, in requested units (``AdviceFacts.asked``)."""
    schema = facts.key_schema
    for minute in facts.traffic.minutes:
        weights: dict[bytes, float] = {}
        seconds = [0.0] * MINUTE_SECONDS
        for kind, factor in facts.asked(side.kind).items():
            if kind not in minute.partitions:
                continue
            for at, units in enumerate(minute.seconds[kind]):
                seconds[at] += units * factor
            # In a sample, the counted keys represent only a part of all requests.
            scale = factor * sum(minute.seconds[kind]) / minute.partitions[kind].total
            for each in minute.partitions[kind].keys:
                key = keys.encode_partition(schema, each.key)
                weights[key] = weights.get(key, 0.0) + each.weight * scale
        total = sum(seconds)
        if not total:
            continue
        busiest = sorted(weights.items(), key=lambda each: -each[1])[:_SIMULATED_KEYS]
        shares = [KeyShare(key, weight / total) for key, weight in busiest]
        yield MinuteLoad(minute.start, seconds, shares)


# -- collections ----------------------------------------------------------------------------

_WARNED_SHARE: Final = 0.8


def collection_findings(facts: AdviceFacts) -> Iterator[Finding]:
    """Find item collections near their size limit, in a table with local indexes."""
    limit_bytes = facts.use.item_collection_limit_bytes
    collections = facts.use.collections
    if not facts.description.get("LocalSecondaryIndexes") or not collections:
        return
    warned = [each for each in collections if each.size_bytes >= limit_bytes * _WARNED_SHARE]
    for each in warned or collections[:1]:
        text = (
            f"{'Item collection' if warned else 'The largest item collection'} "
            f"{key_text(each.key)} has {size(each.size_bytes)} of {size(limit_bytes)}"
        )
        growth = _growth(facts.use.now, each.first, each.first_bytes, each.size_bytes)
        if growth:
            left = max(0.0, limit_bytes - each.size_bytes) / growth
            text += (
                f"; it grows by {size(growth * _DAY)} a day and is full in {span(left)}"
                if left < _FAR
                else f"; it grows by {size(growth * _DAY)} a day"
            )
        yield Finding(
            "problem" if warned else "fact",
            ("S73", "S66", "S72", "S75") if warned else ("S73",),
            text,
            "A full collection accepts no new items, and its items can't grow: archive old items "
            "(S72), or use a global index instead of the local indexes (S75)"
            if warned
            else "",
            {
                "key": each.key,
                "size_bytes": each.size_bytes,
                "limit_bytes": limit_bytes,
                "growth_bytes_per_second": growth,
            },
        )


_DAY: Final = 24 * 60 * 60
_FAR: Final = 5 * 365 * _DAY
# Growth over a shorter time does not predict the growth per day.
_WATCHED_SECONDS: Final = 60


def _growth(
    now: float, first: float | None, first_bytes: int | None, size_bytes: int
) -> float | None:
    """Growth of a collection in bytes per second; None if its first size is too recent."""
    if first is None or first_bytes is None or now - first < _WATCHED_SECONDS:
        return None
    return max(0.0, (size_bytes - first_bytes) / (now - first))
