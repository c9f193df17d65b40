"""Quotas of a table's changes in a period: of its billing mode, its class and its encryption.

Each function takes the times of a table's latest changes, and returns them with the current one.
AWS's messages continue with the times of the last change and of the next possible one.
"""

from __future__ import annotations

from typing import Final

from dynactor.model.errors import LimitExceededException
from dynactor.model.limits import (
    DAY_SECONDS,
    ON_DEMAND_SWITCHES,
    ON_DEMAND_SWITCHES_SECONDS,
    SSE_CHANGES,
    SSE_CHANGES_SECONDS,
    TABLE_CLASS_CHANGES,
    TABLE_CLASS_CHANGES_SECONDS,
)

_SUBSCRIBER: Final = "Subscriber limit exceeded: "


def with_on_demand_switch(
    switches: tuple[float, ...], now_epoch_seconds: float
) -> tuple[float, ...]:
    """The times of a table's switches to on-demand.

    The limit prevents clients from refilling an exhausted table by switching back and forth.
    Source: "On-demand capacity mode", "Considerations when switching capacity modes". The message
    is the one that AWS sent when it allowed one switch a day, with the current limit. Raises
    ``LimitExceededException`` after too many switches in 24 hours.
    """
    return _with(
        switches,
        now_epoch_seconds,
        ON_DEMAND_SWITCHES,
        ON_DEMAND_SWITCHES_SECONDS,
        f"{_SUBSCRIBER}Update to PayPerRequest mode",
    )


def with_table_class_change(
    changes: tuple[float, ...], now_epoch_seconds: float
) -> tuple[float, ...]:
    """The times of the changes of a table's class (message: AWS, October 2026).

    Raises ``LimitExceededException`` if there were too many changes in the last 30 days.
    """
    return _with(
        changes,
        now_epoch_seconds,
        TABLE_CLASS_CHANGES,
        TABLE_CLASS_CHANGES_SECONDS,
        "Updates to TableClass",
    )


def with_sse_change(changes: tuple[float, ...], now_epoch_seconds: float) -> tuple[float, ...]:
    """The times of the changes of a table's encryption; the message is inferred.

    Raises ``LimitExceededException`` if there were too many changes in the last 24 hours.
    """
    return _with(
        changes,
        now_epoch_seconds,
        SSE_CHANGES,
        SSE_CHANGES_SECONDS,
        "Updates to SSESpecification",
    )


def _with(
    times: tuple[float, ...], now_epoch_seconds: float, most: int, seconds: int, subject: str
) -> tuple[float, ...]:
    if len(times) == most and now_epoch_seconds - times[0] < seconds:
        raise LimitExceededException(
            f"{subject} are limited to {most} times in {seconds // DAY_SECONDS} day(s)."
        )
    return (*times, now_epoch_seconds)[-most:]
