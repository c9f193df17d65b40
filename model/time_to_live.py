"""When an item has expired, and what may be asked of a table's time to live.

Source: Developer Guide, "Using time to live (TTL) in DynamoDB", rules S116-S131; the messages
are those of DynamoDB Local and of what users of AWS report.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from msgspec import Struct

from model.change import Change, removal
from model.errors import ValidationException
from model.item import Item
from model.limits import TIME_TO_LIVE_PAST_SECONDS
from model.stored_item import StoredItem
from model.table import TableDefinition, TimeToLive

_MICROSECONDS: Final = 1_000_000
_MICROSECOND_DIGITS: Final = 6
# A time of more digits lies behind the year 33,658, or as far in the past.
_MOST_DIGITS: Final = 12

PAST_US: Final = TIME_TO_LIVE_PAST_SECONDS * _MICROSECONDS


class TimeToLiveChange(Struct, frozen=True):
    """A TimeToLiveSpecification."""

    enabled: bool
    attribute_name: str


def is_expired(item: Item, attribute_name: str, now_epoch_seconds: float) -> bool:
    """Whether an item has expired: its time is past, but by less than five years (S118, S119).

    Numbers are compared exactly, fractions too.
    """
    text = item.get(attribute_name, {}).get("N")
    if text is None:
        return False
    oldest_epoch_seconds = now_epoch_seconds - TIME_TO_LIVE_PAST_SECONDS
    return oldest_epoch_seconds < Decimal(text) < now_epoch_seconds


def expires_at_us(item: Item, attribute_name: str) -> int | None:
    """The time of an item in microseconds since 1970, rounded up; negative before it.

    None for an item that will never expire: it has no time, or one in milliseconds, which is
    thousands of years ahead.
    """
    text: str | None = item.get(attribute_name, {}).get("N")
    if text is None:
        return None
    whole, _, fraction = text.removeprefix("-").partition(".")
    if len(whole) > _MOST_DIGITS:
        return None
    at_us = int(whole) * _MICROSECONDS
    if fraction:
        at_us += int(fraction[:_MICROSECOND_DIGITS].ljust(_MICROSECOND_DIGITS, "0"))
    if text[0] == "-":
        return -at_us
    return at_us + 1 if fraction[_MICROSECOND_DIGITS:] else at_us


def expire(
    table: TableDefinition, attribute_name: str, old: StoredItem | None, now_epoch_seconds: float
) -> Change | None:
    """The deletion of an item that has expired; None if it is to stay as it is (S127).

    It is to stay where time to live goes by that attribute no more, whatever the item says.
    """
    settings = table.time_to_live
    if old is None or settings is None or not settings.deletes:
        return None
    if settings.attribute_name != attribute_name:
        return None
    if not is_expired(old.item, attribute_name, now_epoch_seconds):
        return None
    return removal(table, old)


def changed(
    current: TimeToLive | None,
    change: TimeToLiveChange,
    now_epoch_seconds: float,
    interval_seconds: float,
) -> TimeToLive:
    """A table's time to live once it is switched on or off; ENABLING or DISABLING at first.

    Raises:
        ValidationException: it is so already, or goes by another attribute, or was changed less
            than the interval ago.
    """
    is_on = current is not None and current.deletes
    if is_on:
        assert current is not None
        if current.attribute_name != change.attribute_name:
            raise ValidationException(
                "TimeToLive is active on a different AttributeName: current AttributeName is "
                f"{current.attribute_name}"
            )
        if change.enabled:
            raise ValidationException("TimeToLive is already enabled")
    elif not change.enabled:
        raise ValidationException("TimeToLive is already disabled")
    if current is not None and (
        current.status in ("ENABLING", "DISABLING")
        or now_epoch_seconds - current.changed_epoch_seconds < interval_seconds
    ):
        raise ValidationException(
            "Time to live has been modified multiple times within a fixed interval"
        )
    return TimeToLive(
        change.attribute_name, "ENABLING" if change.enabled else "DISABLING", now_epoch_seconds
    )
