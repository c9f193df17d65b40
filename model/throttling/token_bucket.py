"""A token bucket: units per second. Unused units are kept for a limited time.

A bucket admits a request of any size while its balance is positive. The request may make the
balance negative, and later units pay this debt first. DynamoDB does not document how it treats a
request larger than the balance, but two facts suggest this rule. The cost of a read is known only
after the read. DynamoDB accepts an item that costs more than a bucket can ever hold (400 KB, with 1
write unit a second). Several concurrent reads can be admitted together, so their costs can add up
to a larger debt.

Source: Developer Guide, "Burst and adaptive capacity": up to 300 seconds of unused units.
"""

from __future__ import annotations

from dynactor.model.limits import BURST_SECONDS


class TokenBucket:
    """A token bucket, which is filled when it is used; time never goes back.

    Invariant: the balance is at most ``most_units``, which is ``most_seconds`` of the rate.
    """

    __slots__ = ("_filled_at", "_most_seconds", "balance_units", "most_units", "units_per_second")

    def __init__(
        self,
        units_per_second: float,
        now_seconds: float,
        *,
        saved_seconds: float = BURST_SECONDS,
        most_seconds: float = BURST_SECONDS,
    ) -> None:
        """Create a bucket with ``saved_seconds`` of unused units, which keeps ``most_seconds``."""
        self.units_per_second = units_per_second
        self.balance_units = units_per_second * saved_seconds
        self._most_seconds = most_seconds
        self.most_units = units_per_second * most_seconds
        self._filled_at = now_seconds

    def fill(self, now_seconds: float) -> float:
        """Add the units since the last call; returns the balance."""
        if now_seconds == self._filled_at:
            return self.balance_units
        balance = self.balance_units + (now_seconds - self._filled_at) * self.units_per_second
        self._filled_at = now_seconds
        self.balance_units = balance = min(balance, self.most_units)
        return balance

    def take(self, units: float, now_seconds: float) -> float:
        """Take units, even if too few are left; returns the balance.

        The bucket is filled first. If it were filled afterwards, a full bucket would regain the
        units from time that has already passed.
        """
        self.balance_units = balance = self.fill(now_seconds) - units
        return balance

    def give_back(self, units: float, now_seconds: float) -> None:
        """Return units, up to the maximum."""
        self.take(-units, now_seconds)
        self.balance_units = min(self.balance_units, self.most_units)

    def wait_seconds(self, now_seconds: float) -> float:
        """The time until the balance is positive, if no request takes units; may be 0."""
        balance = self.fill(now_seconds)
        return 0.0 if balance > 0 else -balance / self.units_per_second

    def change_rate(self, units_per_second: float, now_seconds: float) -> None:
        """Change the rate; the balance stays, up to the new maximum."""
        self.fill(now_seconds)
        self.units_per_second = units_per_second
        self.most_units = units_per_second * self._most_seconds
        self.balance_units = min(self.balance_units, self.most_units)
