"""A token bucket: so many units a second, and what was not used is kept for a while.

A bucket admits a request while its balance is positive, whatever the request's size; the units
may then take the balance below zero, by that one request at most, and what comes in afterwards
pays the debt first. DynamoDB does not document how it treats a request larger than what is left.
But what a read costs is known only when it is done, and there is no error for an item that costs
more than a bucket can ever hold (400 KB, with 1 WCU): it can be written. Reads that run at the
same time may each take their own size below zero.

Source: Developer Guide, "Burst and adaptive capacity": up to 300 seconds of unused units.
"""

from __future__ import annotations

from dynactor.model.limits import BURST_SECONDS


class TokenBucket:
    """The bucket. Filled when somebody looks; time never goes back.

    Invariant: the balance is never above ``most_units``, ``BURST_SECONDS`` of the rate.
    """

    __slots__ = ("_filled_at", "balance_units", "most_units", "units_per_second")

    def __init__(
        self, units_per_second: float, now_seconds: float, *, saved_seconds: float = BURST_SECONDS
    ) -> None:
        """Make a bucket with so many seconds of unused units."""
        self.units_per_second = units_per_second
        self.balance_units = units_per_second * saved_seconds
        self.most_units = units_per_second * BURST_SECONDS
        self._filled_at = now_seconds

    def fill(self, now_seconds: float) -> float:
        """Add what has come in since the last time; returns the balance."""
        if now_seconds == self._filled_at:
            return self.balance_units
        balance = self.balance_units + (now_seconds - self._filled_at) * self.units_per_second
        self._filled_at = now_seconds
        self.balance_units = balance = min(balance, self.most_units)
        return balance

    def take(self, units: float, now_seconds: float) -> float:
        """Take units, whether they are there or not; returns the balance.

        What has come in is added first: of a full bucket it would make the units good again.
        """
        self.balance_units = balance = self.fill(now_seconds) - units
        return balance

    def give_back(self, units: float, now_seconds: float) -> None:
        """Give units back that were taken, as far as there is room."""
        self.take(-units, now_seconds)
        self.balance_units = min(self.balance_units, self.most_units)

    def wait_seconds(self, now_seconds: float) -> float:
        """How long until the balance is positive, 0 if it is, if nobody else takes."""
        balance = self.fill(now_seconds)
        return 0.0 if balance > 0 else -balance / self.units_per_second

    def change_rate(self, units_per_second: float, now_seconds: float) -> None:
        """Go on at another rate; the balance stays, as far as it is not above the new bound."""
        self.fill(now_seconds)
        self.units_per_second = units_per_second
        self.most_units = units_per_second * BURST_SECONDS
        self.balance_units = min(self.balance_units, self.most_units)
