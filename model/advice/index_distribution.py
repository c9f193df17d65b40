"""What an index would hold, and what becomes of its hottest key, from a sample of items.

Source: Developer Guide, "Global secondary indexes", and the rules of docs/RULES.md that are named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from dynactor.model.capacity.capacity import write_units
from dynactor.model.limits import PARTITION_WRITE_UNITS
from dynactor.model.values import attribute_value
from dynactor.model.values.attribute_value import AttributeValue
from dynactor.model.values.item import Item

_KEY_TYPES: Final = ("S", "N", "B")


class ValueShare(Struct, frozen=True):
    """A value that a key may have, and which part of all that are counted has it."""

    value: AttributeValue
    share: float


class Distribution(Struct, frozen=True):
    """The values of an attribute over items, the most frequent first; shares are of all items.

    ``without`` is the share of items that an index on it would leave out: they have no value
    (S85, S115), or one that can't be its key (S190).
    """

    counted: int
    distinct: int
    values: Sequence[ValueShare]
    without: float


def distribution(items: Iterable[Item], name: str, most_values: int = 10) -> Distribution:
    """How the values of an attribute are distributed, those of its most frequent type."""
    counts: Counter[tuple[str, str]] = Counter()
    counted = 0
    for item in items:
        counted += 1
        value = item.get(name)
        if value is None:
            continue
        type_name = attribute_value.type_of(value)
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
    """The most frequent value as an index's partition key.

    ``write_units`` are those per second that it gets, None where the rate of writes isn't known;
    ``most_writes`` the writes per second to the table beyond which they are throttled (S139, S110).
    """

    write_units: float | None
    most_writes: float
    suffixes: int | None


def hot_value(share: float, entry_bytes: int, writes_per_second: float | None) -> HotValue:
    """What a value with that share of all writes means; each writes one entry of that size."""
    units = write_units(entry_bytes)
    most_writes = PARTITION_WRITE_UNITS / (share * units)
    if writes_per_second is None:
        return HotValue(None, most_writes, None)
    value_units = share * units * writes_per_second
    return HotValue(value_units, most_writes, max(1, -int(-value_units // PARTITION_WRITE_UNITS)))
