"""Quotas of a table's changes in a period: of its billing mode, its class and its encryption.

AWS's messages continue with the times of the last change and of the next possible one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

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


class ChangeQuota(NamedTuple):
    """At most ``most`` changes of one kind in a period; ``subject`` begins the message."""

    most: int
    seconds: int
    subject: str

    def with_change(self, times: tuple[float, ...], now_epoch_seconds: float) -> tuple[float, ...]:
        """The times of the latest changes with the current one.

        Raises ``LimitExceededException`` if there were too many in the last period.
        """
        if len(times) == self.most and now_epoch_seconds - times[0] < self.seconds:
            raise LimitExceededException(
                f"{self.subject} are limited to {self.most} times in "
                f"{self.seconds // DAY_SECONDS} day(s)."
            )
        return (*times, now_epoch_seconds)[-self.most :]


# The limit prevents clients from refilling an exhausted table by switching back and forth. Source:
# "On-demand capacity mode", "Considerations when switching capacity modes". The message is the one
# that AWS sent when it allowed one switch a day, with the current limit.
ON_DEMAND_SWITCH: Final = ChangeQuota(
    ON_DEMAND_SWITCHES,
    ON_DEMAND_SWITCHES_SECONDS,
    "Subscriber limit exceeded: Update to PayPerRequest mode",
)
# Source of the message: AWS, October 2026.
TABLE_CLASS_CHANGE: Final = ChangeQuota(
    TABLE_CLASS_CHANGES, TABLE_CLASS_CHANGES_SECONDS, "Updates to TableClass"
)
# The message is inferred.
SSE_CHANGE: Final = ChangeQuota(SSE_CHANGES, SSE_CHANGES_SECONDS, "Updates to SSESpecification")
