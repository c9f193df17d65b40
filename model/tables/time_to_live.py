"""Rules for a table's time to live.

Source: Developer Guide, "Using time to live (TTL) in DynamoDB", rules S116-S131. Messages are
DynamoDB Local's, and those that users of AWS report.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dynactor.model.definitions.table import TimeToLive, TimeToLiveStatus
from dynactor.model.errors import ValidationException


class TimeToLiveChange(Struct, frozen=True):
    """A TimeToLiveSpecification."""

    enabled: bool
    attribute_name: str


# The status that clients see instead of a transition without a duration.
_PASSING: Final[dict[TimeToLiveStatus, TimeToLiveStatus]] = {
    "ENABLING": "ENABLED",
    "DISABLING": "DISABLED",
}


def shown_status(status: TimeToLiveStatus, transition_seconds: float) -> TimeToLiveStatus:
    """The status that clients see.

    ENABLING and DISABLING are shown only if a duration is configured for them. On AWS, clients that
    ask right after UpdateTimeToLive see ENABLED (observed in 2026).
    """
    return status if transition_seconds else _PASSING.get(status, status)


def changed(
    current: TimeToLive | None,
    change: TimeToLiveChange,
    now_epoch_seconds: float,
    interval_seconds: float,
    transition_seconds: float = 0.0,
) -> TimeToLive:
    """A table's time to live after a change, in the status ENABLING or DISABLING.

    Raises ``ValidationException`` if nothing changes, a change is too recent, or names differ.
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
        shown_status(current.status, transition_seconds) in _PASSING
        or now_epoch_seconds - current.changed_epoch_seconds < interval_seconds
    ):
        raise ValidationException(
            "Time to live has been modified multiple times within a fixed interval"
        )
    return TimeToLive(
        change.attribute_name, "ENABLING" if change.enabled else "DISABLING", now_epoch_seconds
    )
