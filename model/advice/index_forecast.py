"""Predicts the entries of a global index that does not exist, from a sample of its table's items.

Source: Developer Guide, "Global secondary indexes", and the cited rules of docs/RULES.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from dynactor.model.capacity import write_units
from dynactor.model.definitions.index import (
    IndexDefinition,
    KeyViolation,
    global_entry,
    key_violation,
)
from dynactor.model.keys.key import KeySchema
from dynactor.model.limits import INDEX_ENTRY_OVERHEAD_BYTES, PARTITION_WRITE_UNITS
from dynactor.model.values import item as items
from dynactor.model.values.item import Item

_MOST_VIOLATIONS: Final = 20
_MOST_KEYS: Final = 8


class EntryShare(Struct, frozen=True):
    """A partition key of the index, and its share of the entries."""

    key: Item
    share: float


class InvalidIndexKey(Struct, frozen=True):
    """An item that the index leaves out because of an invalid key value (S190)."""

    key: Item
    attribute: str
    reason: KeyViolation


class IndexForecast(Struct, frozen=True):
    """The entries of the sampled items; shares are of the sampled items.

    ``entry_bytes`` is the mean size of an entry with its overhead, ``entry_units`` the mean write
    units of an entry. ``keys`` are the most frequent partition keys.
    """

    sampled: int
    with_entry: float
    violating: float
    entry_bytes: float
    entry_units: float
    distinct_keys: int
    keys: list[EntryShare]
    violations: list[InvalidIndexKey]


class IndexLoad(Struct, frozen=True):
    """The write units per second of an index, and of its most frequent key."""

    write_units: float
    hottest_units: float
    hottest_limit: float = float(PARTITION_WRITE_UNITS)


def forecast(index: IndexDefinition, table_key: KeySchema, sample: Iterable[Item]) -> IndexForecast:
    """The forecast for an index of a table with this key."""
    sampled = entries = size_bytes = units = violating = 0
    counts: Counter[str] = Counter()
    examples: dict[str, Item] = {}
    violations: list[InvalidIndexKey] = []
    schema = index.key_schema
    for item in sample:
        sampled += 1
        entry = global_entry(index, table_key, item)
        if entry is None:
            found = _violation(index, table_key, item)
            if found is not None:
                violating += 1
                violations.append(found)
            continue
        entries += 1
        entry_bytes = items.size_bytes(entry)
        size_bytes += entry_bytes + INDEX_ENTRY_OVERHEAD_BYTES
        units += write_units(entry_bytes)
        key = {attribute.name: item[attribute.name] for attribute in schema.partition}
        text = repr(key)
        counts[text] += 1
        examples[text] = key
    return IndexForecast(
        sampled,
        entries / sampled if sampled else 0.0,
        violating / sampled if sampled else 0.0,
        size_bytes / entries if entries else 0.0,
        units / entries if entries else 0.0,
        len(counts),
        [EntryShare(examples[text], n / entries) for text, n in counts.most_common(_MOST_KEYS)],
        violations[:_MOST_VIOLATIONS],
    )


def load(predicted: IndexForecast, writes_per_second: float) -> IndexLoad:
    """The load of the index if every write of the table changes the entry of its item (S152)."""
    units = writes_per_second * predicted.with_entry * predicted.entry_units
    share = predicted.keys[0].share if predicted.keys else 0.0
    return IndexLoad(units, units * share)


def _violation(index: IndexDefinition, table_key: KeySchema, item: Item) -> InvalidIndexKey | None:
    """The first invalid key value of an item; None if it only lacks a key attribute."""
    schema = index.key_schema
    for attribute in schema.attributes:
        value = item.get(attribute.name)
        reason = None if value is None else key_violation(schema, attribute, value)
        if reason is not None:
            key = {name: item[name] for name in table_key.names if name in item}
            return InvalidIndexKey(key, attribute.name, reason)
    return None
