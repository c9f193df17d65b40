"""Expiry of items: their times, and the change that deletes an expired item.

Source: Developer Guide, "Using time to live (TTL) in DynamoDB", rules S116-S131.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

from msgspec import defstruct, json
from msgspec.structs import astuple

from dynactor.model.definitions.table import TableDefinition
from dynactor.model.keys.key import KeySchema
from dynactor.model.limits import TIME_TO_LIVE_PAST_SECONDS
from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.model.values.attribute_value import AttributeValue
from dynactor.model.values.item import Item
from dynactor.model.values.stored_item import StoredItem
from dynactor.model.writes.change import Change, removal

_MICROSECOND_DIGITS: Final = 6
# A time with more digits is after the year 33,658, or 31,000 years in the past.
_MOST_DIGITS: Final = 12

# Attribute names that msgspec accepts as member names of a decoder.
_PLAIN_NAME: Final = re.compile(r'[^"\\\x00-\x1f]*\Z')

PAST_US: Final = TIME_TO_LIVE_PAST_SECONDS * MICROSECONDS_PER_SECOND


class ExpiryReader:
    """Reads only keys and expiry times from stored items.

    The reader skips other attributes, because a sweep reads thousands of items a second.
    """

    def __init__(self, key_schema: KeySchema, attribute_name: str) -> None:
        self.attribute_name = attribute_name
        self._key_names = [attribute.name for attribute in key_schema.attributes]
        self._timed = _members_reader([attribute_name])
        # The attribute may be part of the key, so each role has a reader of its own.
        self._keyed = _members_reader(self._key_names)

    def time(self, stored: StoredItem) -> str | None:
        """The time of an item: the text of a number, or None."""
        (value,) = self._timed(stored)
        return None if value is None else value.get("N")

    def key(self, stored: StoredItem) -> Item:
        """The key of an item."""
        return dict(zip(self._key_names, self._keyed(stored), strict=True))


def _members_reader(names: Sequence[str]) -> Callable[[StoredItem], tuple[Any, ...]]:
    """Return a reader of the attributes with these names; it returns None for missing ones."""
    if not all(map(_PLAIN_NAME.match, names)):
        return lambda stored: tuple(map(stored.item.get, names))
    members = [f"member_{at}" for at in range(len(names))]
    decoder = json.Decoder(
        defstruct(
            "Members",
            [(member, AttributeValue | None, None) for member in members],
            rename=dict(zip(members, names, strict=True)),
            gc=False,
        )
    )
    return lambda stored: astuple(decoder.decode(stored.data))


def is_expired(time: str | None, now_epoch_seconds: float) -> bool:
    """Whether an item expired, less than five years ago (S118, S119), compared exactly."""
    if time is None:
        return False
    oldest_epoch_seconds = now_epoch_seconds - TIME_TO_LIVE_PAST_SECONDS
    return oldest_epoch_seconds < Decimal(time) < now_epoch_seconds


def expires_at_us(time: str | None) -> int | None:
    """An item's time in microseconds since 1970, rounded up; negative if earlier.

    None for an item that never expires: without a time, or with one in milliseconds, far ahead.
    """
    if time is None:
        return None
    whole, _, fraction = time.removeprefix("-").partition(".")
    if len(whole) > _MOST_DIGITS:
        return None
    at_us = int(whole) * MICROSECONDS_PER_SECOND
    if fraction:
        at_us += int(fraction[:_MICROSECOND_DIGITS].ljust(_MICROSECOND_DIGITS, "0"))
    if time[0] == "-":
        return -at_us
    return at_us + 1 if fraction[_MICROSECOND_DIGITS:] else at_us


class Expiry(NamedTuple):
    """The deletion of an expired item."""

    key: Item
    change: Change


def expire(
    table: TableDefinition,
    reader: ExpiryReader,
    old: StoredItem | None,
    now_epoch_seconds: float,
) -> Expiry | None:
    """The deletion of an item that has expired; None if the item stays (S127)."""
    if old is None:
        return None
    if not is_expired(reader.time(old), now_epoch_seconds):
        return None
    return Expiry(reader.key(old), removal(table, old))
