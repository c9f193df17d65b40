"""Findings about existing indexes, and about an index that may be added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from dynactor.api.commands.advise.facts import Facts, schema_of
from dynactor.api.commands.advise.key_findings import NEAR, Finding, Load, index_key_loads
from dynactor.api.commands.advise.text import figure, percent, size, span, value_text
from dynactor.model.advice.index_distribution import Distribution, distribution, hot_value
from dynactor.model.advice.key_traffic import IndexUse
from dynactor.model.capacity.capacity import write_units
from dynactor.model.keys.key import KeySchema
from dynactor.model.limits import KIB, PARTITION_WRITE_UNITS
from dynactor.model.values import attribute_value
from dynactor.model.values.item import Item

# The number of writes per read from which an index counts as rarely read.
_RARELY_READ: Final = 20
# The share from which queries of most attributes, or with fetches, count as frequent.
_FREQUENT: Final = 0.1
_MOST: Final = 0.8
_SHOWN_VALUES: Final = 5
_SHOWN_NAMES: Final = 8
_MUCH_SCANNED: Final = 0.5
# An index without reads for a shorter time may still be needed.
_LONG_SECONDS: Final = 60 * 60
# Fewer requests, or a shorter time, don't show the use of a table.
_LEAST_REQUESTS: Final = 100
_LEAST_SECONDS: Final = 10 * 60


class _Index(Struct, frozen=True):
    """An index, its use and its costs."""

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
        """Number of queries and scans."""
        return self.use.queries + self.use.scans

    @property
    def keys(self) -> frozenset[str]:
        """The attributes that each entry holds."""
        attributes = self.schema.attributes + self.table_schema.attributes
        return frozenset(attribute.name for attribute in attributes)

    @property
    def partition_names(self) -> frozenset[str]:
        """The attributes of its partition key; a Query needs all of them."""
        return frozenset(attribute.name for attribute in self.schema.partition)

    def holds(self, name: str) -> bool:
        """Whether entries hold an attribute."""
        held = self.description["Projection"].get("NonKeyAttributes", ())
        return self.projection == "ALL" or name in self.keys or name in held


def index_findings(facts: Facts) -> Iterator[Finding]:
    """Finds indexes that are unused, have unneeded attributes, or lack needed ones."""
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
            f"{_listed(unread)}: not read in {span(facts.recorded_seconds)}, which is too short to "
            f"tell whether anybody needs it; that takes {span(_LONG_SECONDS)}",
            figures={"indexes": unread, "seconds": facts.recorded_seconds},
        )


def _indexes(facts: Facts) -> Iterator[_Index]:
    for member, is_global in (("LocalSecondaryIndexes", False), ("GlobalSecondaryIndexes", True)):
        for description in facts.description.get(member, ()):
            name = description["IndexName"]
            use = facts.use.uses.get(name, IndexUse())
            yield _Index(
                name,
                is_global,
                description,
                schema_of(facts.description, description),
                facts.key_schema,
                use,
                facts.use.consumed[name].write if is_global else use.write_units,
            )


def _scans(facts: Facts) -> Iterator[Finding]:
    """Scans that consume most of the table's read units (S3)."""
    use = facts.use.uses.get("", IndexUse())
    total = facts.use.consumed[""].read
    if not total or use.scans < _LEAST_REQUESTS or use.scan_units < total * _MUCH_SCANNED:
        return
    yield Finding(
        "hint",
        ("S3",),
        f"Scans take {percent(min(1.0, use.scan_units / total))} of the table's read units: "
        f"{figure(use.scans)} pages in {span(facts.recorded_seconds)}",
        _instead_of_scans(facts, use),
        {
            "scans": use.scans,
            "scan_read_units": use.scan_units,
            "scanned_for": use.scanned_for,
            "index": _serving_index(facts, use),
        },
    )


def _serving_index(facts: Facts, use: IndexUse) -> str | None:
    """The global index whose partition key most scans filter by; None if none."""
    served = {
        index.name: min(use.scanned_for[name] for name in index.partition_names)
        for index in _indexes(facts)
        if index.is_global and index.partition_names <= use.scanned_for.keys()
    }
    return max(served, key=lambda name: served[name], default=None)


def _instead_of_scans(facts: Facts, use: IndexUse) -> str:
    """The key for a Query instead: the table's key, an index, or an index that may be added."""
    own = {attribute.name for attribute in facts.key_schema.partition}
    if own <= use.scanned_for.keys():
        return f"They look for {_listed(sorted(own))}, the table's partition key: query it"
    index = _serving_index(facts, use)
    if index is not None:
        return f"Query index {index}: its partition key is what they look for"
    if not use.scanned_for:
        return "An index whose key is what they look for makes a Query of them"
    name = max(use.scanned_for, key=lambda name: use.scanned_for[name])
    return (
        f"A global index with the partition key {name}, which they look for, makes a Query of "
        f"them: --index-key {name} tells how it would fare"
    )


def _fewer_units(facts: Facts, index: _Index) -> Iterator[Finding]:
    """A global index with fewer write units than its table (S103)."""
    if not index.is_global or not facts.is_provisioned:
        return
    of_table, of_index = (
        described["ProvisionedThroughput"]["WriteCapacityUnits"]
        for described in (facts.description, index.description)
    )
    if of_index < of_table:
        yield Finding(
            "hint",
            ("S103", "S102"),
            f"Index {index.name} has {of_index:,} write units, its table {of_table:,}: writes that "
            "the index has no units for are throttled",
            "Give it as many as the table, unless few writes touch it",
            {"index": index.name, "write_units": of_index, "table_write_units": of_table},
        )


def _unused(facts: Facts, index: _Index) -> Finding:
    kind = "Global" if index.is_global else "Local"
    advice = (
        "Delete it if nobody needs it"
        if index.is_global
        else "It goes only with its table; where it must stay, KEYS_ONLY makes it small"
    )
    return Finding(
        "hint",
        ("S24", "S57"),
        f"{kind} index {index.name} was not read in {span(facts.recorded_seconds)}; it took "
        f"{figure(index.write_units)} write units and holds "
        f"{size(index.description['IndexSizeBytes'])}",
        advice,
        {
            "index": index.name,
            "write_units": index.write_units,
            "size_bytes": index.description["IndexSizeBytes"],
            "seconds": facts.recorded_seconds,
        },
    )


def _fetches(facts: Facts, index: _Index) -> Iterator[Finding]:
    """Queries of a local index that fetch whole items too (S21, S22, S37)."""
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
        f"{percent(share)} of {figure(index.reads)} reads of index {index.name} fetch from the "
        f"table what the index lacks ({_listed(missing)}): {figure(use.fetch_units)} read units"
    )
    storing = f", {size(stored)} more for an entry" if stored else ""
    yield Finding(
        "hint" if is_frequent else "fact",
        ("S21", "S22", "S37") if not use.asked_all else ("S23", "S37"),
        text,
        f"Project them{storing}, in a table made anew: a local index can't be changed"
        if is_frequent
        else "That is rare: storing them may not pay",
        {
            "index": index.name,
            "fetching_share": share,
            "fetch_read_units": use.fetch_units,
            "missing": missing,
        },
    )


def _over_projected(facts: Facts, index: _Index) -> Iterator[Finding]:
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
            f"Index {index.name} took {figure(index.write_units)} write units and "
            f"{figure(use.read_units)} read units: written much, read rarely",
            f"KEYS_ONLY instead of {index.projection} makes its entries small",
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
    saved = f"; an entry then takes {figure(after)} instead of {figure(before)} write units"
    yield Finding(
        "hint",
        ("S21", "S57"),
        f"Index {index.name} projects {index.projection}, and {figure(index.reads)} reads asked "
        f"for {_listed(asked) if asked else 'its keys'} alone: nobody asked for "
        f"{_listed(unasked)}",
        f"Project {'INCLUDE ' + _listed(asked) if asked else 'KEYS_ONLY'}"
        + (saved if after < before else ""),
        {"index": index.name, "asked": asked, "not_asked": unasked},
    )


def _held_names(sample: Sequence[Item], index: _Index) -> set[str]:
    """The attributes of entries besides keys, according to the sample."""
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


def index_key_findings(facts: Facts, load: Load, name: str) -> Iterator[Finding]:
    """The expected load of a new global index with this partition key (S152, S171)."""
    of_items = distribution(facts.sample, name)
    of_writes = distribution(facts.use.written, name)
    told = of_writes if of_writes.values else of_items
    if not told.values:
        yield Finding(
            "fact",
            ("S85", "S115"),
            f"None of {of_items.counted:,} items of the sample has {name} as a possible key: an "
            "index on it would be empty",
        )
        return
    for found, what in ((of_items, "items of the sample"), (of_writes, "last writes")):
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
    without = f"; {percent(found.without)} have none, and would not be in the index" * bool(
        found.without
    )
    return Finding(
        "fact",
        ("S141", "S170"),
        f"{name} of {found.counted:,} {what}: {values}"
        + (f", and {more:,} values more" if more else "")
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
        f"An index on {name} holds {percent(hottest.share)} of its writes under "
        f"{value_text(hottest.value)}. One key value takes {PARTITION_WRITE_UNITS:,} write units "
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
        f"a second it takes {figure(hot.write_units)}, and twice that where writes change {name}"
    )
    if hot.write_units <= PARTITION_WRITE_UNITS:
        is_near = hot.write_units > PARTITION_WRITE_UNITS * NEAR
        return Finding("hint" if is_near else "fact", rules, text, "", figures)
    return Finding(
        "problem",
        (*rules, "S152", "S153"),
        text,
        f"Put a number from 1 to {hot.suffixes} before {name} in an attribute of its own, and make "
        f"that the index's key: who looks for one value then makes {hot.suffixes} queries",
        figures,
    )
