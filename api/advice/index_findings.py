"""Findings about existing indexes, and about an index that may be added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from dynactor.api.advice.facts import AdviceFacts, resource_key_schema
from dynactor.api.advice.key_findings import NEAR, Finding, Load, index_key_loads
from dynactor.api.advice.text import figure, percent, size, span, value_text
from dynactor.model.advice.index_distribution import Distribution, distribution, hot_value
from dynactor.model.advice.key_traffic import IndexUse
from dynactor.model.capacity import write_units
from dynactor.model.keys.key import KeySchema
from dynactor.model.limits import KIB, PARTITION_WRITE_UNITS
from dynactor.model.values import attribute_value
from dynactor.model.values.item import Item

# The ratio of write units to read units above which an index counts as rarely read.
_RARELY_READ: Final = 20
# The share of an index's reads from which reads with fetches from the table count as frequent.
_FREQUENT: Final = 0.1
# An index has too many attributes if reads need at most this share of them.
_MOST: Final = 0.8
_SHOWN_VALUES: Final = 5
_SHOWN_NAMES: Final = 8
# The share of the table's read units above which scans are reported.
_MUCH_SCANNED: Final = 0.5
# An index that had no reads for a shorter time is not reported as unused.
_LONG_SECONDS: Final = 60 * 60
# With fewer requests, or counted for a shorter time, nothing is concluded about a table's use.
_LEAST_REQUESTS: Final = 100
_LEAST_SECONDS: Final = 10 * 60


class _Index(Struct, frozen=True):
    name: str
    is_global: bool
    description: dict[str, Any]
    schema: KeySchema
    table_schema: KeySchema
    use: IndexUse
    write_units: float

    @property
    def projection(self) -> str:
        """ALL, INCLUDE or KEYS_ONLY."""
        return str(self.description["Projection"]["ProjectionType"])

    @property
    def reads(self) -> float:
        """Number of queries and scans of the index."""
        return self.use.queries + self.use.scans

    @property
    def keys(self) -> frozenset[str]:
        """The names of the key attributes, which each entry has."""
        attributes = self.schema.attributes + self.table_schema.attributes
        return frozenset(attribute.name for attribute in attributes)

    @property
    def partition_names(self) -> frozenset[str]:
        """The attributes of the index's partition key; a Query needs all of them."""
        return frozenset(attribute.name for attribute in self.schema.partition)

    def holds(self, name: str) -> bool:
        """Whether entries hold an attribute."""
        held = self.description["Projection"].get("NonKeyAttributes", ())
        return self.projection == "ALL" or name in self.keys or name in held


def index_findings(facts: AdviceFacts) -> Iterator[Finding]:
    """Find indexes that are unused, have unneeded attributes, or lack needed attributes."""
    is_early = facts.recorded_seconds < _LEAST_SECONDS
    if not is_early:
        yield from _scans(facts)
    yield from index_key_loads(facts)
    unread: list[str] = []
    for index in _indexes(facts):
        yield from _fewer_units(facts, index)
        if not index.reads:
            if facts.recorded_seconds < _LONG_SECONDS:
                unread.append(index.name)
            elif index.write_units or index.description["ItemCount"]:
                yield _unused(facts, index)
            continue
        if is_early or index.reads < _LEAST_REQUESTS:
            continue
        yield from _fetches(facts, index)
        yield from _over_projected(facts, index)
    if unread:
        yield Finding(
            "fact",
            ("S24",),
            f"{_listed(unread)}: not read in {span(facts.recorded_seconds)}. Only after "
            f"{span(_LONG_SECONDS)} without reads, an index is reported as unused",
            figures={"indexes": unread, "seconds": facts.recorded_seconds},
        )


def _indexes(facts: AdviceFacts) -> Iterator[_Index]:
    for member, is_global in (("LocalSecondaryIndexes", False), ("GlobalSecondaryIndexes", True)):
        for description in facts.description.get(member, ()):
            name = description["IndexName"]
            use = facts.use.uses.get(name, IndexUse())
            yield _Index(
                name,
                is_global,
                description,
                resource_key_schema(facts.description, description),
                facts.key_schema,
                use,
                facts.use.consumed[name].write if is_global else use.write_units,
            )


def _scans(facts: AdviceFacts) -> Iterator[Finding]:
    """Scans that consume most of the table's read units (S3)."""
    use = facts.use.uses.get("", IndexUse())
    total = facts.use.consumed[""].read
    if not total or use.scans < _LEAST_REQUESTS or use.scan_units < total * _MUCH_SCANNED:
        return
    yield Finding(
        "hint",
        ("S3",),
        f"Scans consume {percent(min(1.0, use.scan_units / total))} of the table's read units: "
        f"{figure(use.scans)} pages in {span(facts.recorded_seconds)}",
        _instead_of_scans(facts, use),
        {
            "scans": use.scans,
            "scan_read_units": use.scan_units,
            "scanned_for": use.scanned_for,
            "index": _serving_index(facts, use),
        },
    )


def _serving_index(facts: AdviceFacts, use: IndexUse) -> str | None:
    """The global index whose partition key most scans filter by; None if there is none."""
    served = {
        index.name: min(use.scanned_for[name] for name in index.partition_names)
        for index in _indexes(facts)
        if index.is_global and index.partition_names <= use.scanned_for.keys()
    }
    return max(served, key=lambda name: served[name], default=None)


def _instead_of_scans(facts: AdviceFacts, use: IndexUse) -> str:
    """The key for a Query instead: the table's key, an index, or an index that may be added."""
    own = {attribute.name for attribute in facts.key_schema.partition}
    if own <= use.scanned_for.keys():
        return f"The scans filter by {_listed(sorted(own))}, the table's partition key: query it"
    index = _serving_index(facts, use)
    if index is not None:
        return f"Query index {index} instead: the scans filter by its partition key"
    if not use.scanned_for:
        return "Add an index on the attribute that the scans look for, and query it"
    name = max(use.scanned_for, key=lambda name: use.scanned_for[name])
    return (
        f"The scans filter by {name}. Add a global index with this partition key, and query it; "
        f"--index-key {name} estimates its load"
    )


def _fewer_units(facts: AdviceFacts, index: _Index) -> Iterator[Finding]:
    """A global index with fewer write units than its table (S103)."""
    if not index.is_global or not facts.is_provisioned:
        return
    table_units, index_units = (
        described["ProvisionedThroughput"]["WriteCapacityUnits"]
        for described in (facts.description, index.description)
    )
    if index_units < table_units:
        yield Finding(
            "hint",
            ("S103", "S102"),
            f"Index {index.name} has {index_units:,} write units, and its table {table_units:,}: a "
            "write to the table is throttled if the index has no units left",
            "Give the index as many units as the table, unless few writes change the index",
            {"index": index.name, "write_units": index_units, "table_write_units": table_units},
        )


def _unused(facts: AdviceFacts, index: _Index) -> Finding:
    kind = "Global" if index.is_global else "Local"
    advice = (
        "Delete the index if no client needs it"
        if index.is_global
        else "A local index can be deleted only with its table. In a new table, leave it out, or "
        "project KEYS_ONLY to make it small"
    )
    return Finding(
        "hint",
        ("S24", "S57"),
        f"{kind} index {index.name} was not read in {span(facts.recorded_seconds)}; it consumed "
        f"{figure(index.write_units)} write units, and its size is "
        f"{size(index.description['IndexSizeBytes'])}",
        advice,
        {
            "index": index.name,
            "write_units": index.write_units,
            "size_bytes": index.description["IndexSizeBytes"],
            "seconds": facts.recorded_seconds,
        },
    )


def _fetches(facts: AdviceFacts, index: _Index) -> Iterator[Finding]:
    """Reads of a local index that also fetch items from the table (S21, S22, S37)."""
    use = index.use
    if not use.fetches:
        return
    share = use.fetches / index.reads
    missing = sorted(name for name in use.asked_names if not index.holds(name))
    if use.asked_all:
        missing = ["all attributes", *missing]
    stored = _stored_bytes(facts.sample, missing)
    is_frequent = share >= _FREQUENT
    text = (
        f"{percent(share)} of {figure(index.reads)} reads of index {index.name} fetch attributes "
        f"from the table ({_listed(missing)}): {figure(use.fetch_units)} read units"
    )
    storing = f", {size(stored)} more per entry" if stored else ""
    yield Finding(
        "hint" if is_frequent else "fact",
        ("S21", "S22", "S37") if not use.asked_all else ("S23", "S37"),
        text,
        f"Project these attributes{storing}, in a new table: a local index can't be changed"
        if is_frequent
        else "These reads are rare: projecting the attributes may cost more than the fetches",
        {
            "index": index.name,
            "fetching_share": share,
            "fetch_read_units": use.fetch_units,
            "missing": missing,
        },
    )


def _over_projected(facts: AdviceFacts, index: _Index) -> Iterator[Finding]:
    """An index with attributes that no query needs (S21), or with hardly any reads (S24)."""
    use = index.use
    if index.projection == "KEYS_ONLY":
        return
    held = _held_names(facts.sample, index)
    asked = sorted(name for name in use.asked_names if name not in index.keys)
    unasked = sorted(held - set(asked))
    is_too_much = not use.asked_all and bool(unasked) and len(asked) <= len(held) * _MOST
    if index.write_units > _RARELY_READ * use.read_units and not is_too_much:
        yield Finding(
            "hint",
            ("S24",),
            f"Index {index.name} consumed {figure(index.write_units)} write units and "
            f"{figure(use.read_units)} read units: it is rarely read",
            f"Project KEYS_ONLY instead of {index.projection}: the entries are then small",
            {
                "index": index.name,
                "write_units": index.write_units,
                "read_units": use.read_units,
            },
        )
    if not is_too_much:
        return
    before, after = (
        _entry_units(facts.sample, index, held),
        _entry_units(facts.sample, index, set(asked)),
    )
    saved = f": a write then consumes {figure(after)} instead of {figure(before)} write units"
    yield Finding(
        "hint",
        ("S21", "S57"),
        f"Index {index.name} projects {index.projection}, but its {figure(index.reads)} reads "
        f"requested only {_listed(asked) if asked else 'keys'}: no read requested "
        f"{_listed(unasked)}",
        f"Project {'INCLUDE ' + _listed(asked) if asked else 'KEYS_ONLY'}"
        + (saved if after < before else ""),
        {"index": index.name, "asked": asked, "not_asked": unasked},
    )


def _held_names(sample: Sequence[Item], index: _Index) -> set[str]:
    """The names of attributes that entries have besides keys, according to the sample."""
    if index.projection == "INCLUDE":
        return set(index.description["Projection"]["NonKeyAttributes"]) - index.keys
    return {name for item in sample for name in item} - index.keys


def _entry_units(sample: Sequence[Item], index: _Index, names: set[str]) -> float:
    """The mean write units of an entry with these attributes besides its keys."""
    wanted = names | index.keys
    entries = [write_units(sum(_size_bytes(name, item) for name in wanted)) for item in sample]
    return sum(entries) / len(entries) if entries else 0.0


def _stored_bytes(sample: Sequence[Item], names: Sequence[str]) -> float:
    total = sum(_size_bytes(name, item) for item in sample for name in names)
    return total / len(sample) if sample else 0.0


def _size_bytes(name: str, item: Item) -> int:
    value = item.get(name)
    return 0 if value is None else len(name.encode()) + attribute_value.size_bytes(value)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN_NAMES])
    more = len(names) - _SHOWN_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


# -- an index that may be added -------------------------------------------------------------


def index_key_findings(facts: AdviceFacts, load: Load, name: str) -> Iterator[Finding]:
    """The expected load of a new global index with this partition key (S152, S171)."""
    item_distribution = distribution(facts.sample, name)
    write_distribution = distribution(facts.use.written, name)
    told = write_distribution if write_distribution.values else item_distribution
    if not told.values:
        yield Finding(
            "fact",
            ("S85", "S115"),
            f"None of {item_distribution.counted:,} items of the sample has a value of {name} "
            f"that can be a key: an index on {name} would be empty",
        )
        return
    for found, what in (
        (item_distribution, "items of the sample"),
        (write_distribution, "last writes"),
    ):
        if found.values:
            yield _distributed(found, what, name)
    entry_bytes = load.item_size_bytes or facts.average_item_bytes or KIB
    units = write_units(entry_bytes)
    writes = load.writes_per_second
    if writes is None and facts.traffic.total("writes"):
        writes = facts.traffic.busiest_second(facts.asked("writes")) / units
    yield _hottest(told, name, entry_bytes, writes)


def _distributed(found: Distribution, what: str, name: str) -> Finding:
    values = ", ".join(
        f"{value_text(each.value)} {percent(each.share)}" for each in found.values[:_SHOWN_VALUES]
    )
    more = found.distinct - len(found.values[:_SHOWN_VALUES])
    without = (
        f"; {percent(found.without)} have no such value, and would not be in the index"
        if found.without
        else ""
    )
    return Finding(
        "fact",
        ("S141", "S170"),
        f"{name} of {found.counted:,} {what}: {values}"
        + (f", and {more:,} more values" if more else "")
        + without,
        figures={
            "attribute": name,
            "counted": found.counted,
            "of": what,
            "distinct": found.distinct,
            "values": [{"value": each.value, "share": each.share} for each in found.values],
            "without": found.without,
        },
    )


def _hottest(
    told: Distribution, name: str, entry_bytes: int, writes_per_second: float | None
) -> Finding:
    hottest = told.values[0]
    hot = hot_value(hottest.share, entry_bytes, writes_per_second)
    units = write_units(entry_bytes)
    text = (
        f"{percent(hottest.share)} of the writes to an index on {name} would have the key "
        f"{value_text(hottest.value)}. One key value accepts {PARTITION_WRITE_UNITS:,} write units "
        f"a second: more than {figure(hot.most_writes)} writes a second of {figure(units)} "
        f"{'unit' if units == 1 else 'units'} to the table would be throttled"
    )
    rules: tuple[str, ...] = ("S139", "S110", "S168")
    figures: dict[str, Any] = {
        "attribute": name,
        "value": hottest.value,
        "share": hottest.share,
        "key_ceiling": PARTITION_WRITE_UNITS,
        "most_writes_per_second": hot.most_writes,
        "writes_per_second": writes_per_second,
        "write_units": hot.write_units,
        "suffixes": hot.suffixes,
    }
    if hot.write_units is None or hot.suffixes is None:
        return Finding("fact", rules, text, "Give --writes-per-second to compare", figures)
    text += (
        f", with IndexWriteKeyRangeThroughputExceeded. At {figure(writes_per_second or 0)} writes "
        f"a second this value needs {figure(hot.write_units)} units a second, and twice as many "
        f"if the writes change {name}"
    )
    if hot.write_units <= PARTITION_WRITE_UNITS:
        is_near = hot.write_units > PARTITION_WRITE_UNITS * NEAR
        return Finding("hint" if is_near else "fact", rules, text, "", figures)
    return Finding(
        "problem",
        (*rules, "S152", "S153"),
        text,
        f"Add an attribute with a number from 1 to {hot.suffixes} followed by {name}, and make it "
        f"the index's key: reading one value then takes {hot.suffixes} queries",
        figures,
    )
