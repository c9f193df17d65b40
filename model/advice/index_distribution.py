"""Predicts an index's entries, and the load of its hottest key, from a sample of items.

Source: Developer Guide, "Global secondary indexes", and the cited rules of docs/RULES.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from dynactor.model.capacity import write_units
from dynactor.model.limits import PARTITION_WRITE_UNITS
from dynactor.model.values import attribute_value
from dynactor.model.values.attribute_value import AttributeValue
from dynactor.model.values.item import Item

_KEY_TYPES: Final = ("S", "N", "B")


class ValueShare(Struct, frozen=True):
    """A value of a key, and its share of all counted values."""

    value: AttributeValue
    share: float


class Distribution(Struct, frozen=True):
    """The values of an attribute over items, most frequent first; shares are of all items.

    ``without`` is the share of items that an index on the attribute would leave out: the attribute
    is missing (S85, S115), or its value is not a valid key (S190).
    """

    counted: int
    distinct: int
    values: Sequence[ValueShare]
    without: float


def distribution(items: Iterable[Item], name: str, most_values: int = 10) -> Distribution:
    """The distribution of an attribute's values, of their most frequent type."""
    counts: Counter[tuple[str, str]] = Counter()
    counted = 0
    for item in items:
        counted += 1
        value = item.get(name)
        if value is None:
            continue
        type_name = attribute_value.data_type(value)
        if type_name in _KEY_TYPES and value[type_name]:
            counts[type_name, value[type_name]] += 1
    by_type: Counter[str] = Counter()
    for (type_name, _), count in counts.items():
        by_type[type_name] += count
    if not by_type:
        return Distribution(counted, 0, (), 1.0 if counted else 0.0)
    key_type, with_key = by_type.most_common(1)[0]
    values = [
        (value, count) for (type_name, value), count in counts.items() if type_name == key_type
    ]
    values.sort(key=lambda each: (-each[1], each[0]))
    return Distribution(
        counted,
        len(values),
        [ValueShare({key_type: value}, count / counted) for value, count in values[:most_values]],
        (counted - with_key) / counted,
    )


class HotValue(Struct, frozen=True):
    """The load of the most frequent value if it is a partition key value of an index.

    ``write_units`` is the load per second, None if the rate of writes is unknown. ``most_writes``
    is the number of writes per second to the table above which they are throttled (S139, S110).
    """

    write_units: float | None
    most_writes: float
    suffixes: int | None


def hot_value(share: float, entry_bytes: int, writes_per_second: float | None) -> HotValue:
    """The load of a value with this share of all writes; each write puts an entry of this size."""
    units = write_units(entry_bytes)
    most_writes = PARTITION_WRITE_UNITS / (share * units)
    if writes_per_second is None:
        return HotValue(None, most_writes, None)
    value_units = share * units * writes_per_second
    return HotValue(value_units, most_writes, max(1, -int(-value_units // PARTITION_WRITE_UNITS)))
