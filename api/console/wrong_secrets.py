"""Delays the sign-in of addresses that sent wrong secrets.

A right secret comes in after the delay. So nobody who guesses secrets locks out others.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Awaitable, Callable
from ipaddress import IPv6Address, ip_address
from typing import Final

import anyio

# Wrong secrets of one address in a minute without a delay.
MOST_TRIES: Final = 5
DELAY_SECONDS: Final = 10.0
# Delayed tries of one address at a time.
MOST_WAITING: Final = 5

_MINUTE_SECONDS: Final = 60.0
_MOST_ADDRESSES: Final = 10_000
_NETWORK_BITS: Final = 64


class WrongSecrets:
    """The times of wrong secrets, by address; the oldest last wrong secret is the first."""

    def __init__(
        self,
        now: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._now = now
        self._sleep = sleep
        self._failures: dict[str, deque[float]] = {}
        self._waiting: Counter[str] = Counter()

    async def admit(self, peer: str | None) -> bool:
        """Wait if this IP address has sent many wrong secrets; False if too many tries wait."""
        source = _source(peer)
        failures = self._failures.get(source)
        if (
            failures is None
            or len(failures) < MOST_TRIES
            or self._now() - failures[0] >= _MINUTE_SECONDS
        ):
            return True
        if self._waiting[source] >= MOST_WAITING:
            return False
        self._waiting[source] += 1
        try:
            await self._sleep(DELAY_SECONDS)
        finally:
            self._waiting[source] -= 1
            if not self._waiting[source]:
                del self._waiting[source]
        return True

    def note(self, peer: str | None) -> None:
        """Note a wrong secret of this IP address."""
        source = _source(peer)
        failures = self._failures.pop(source, None) or deque(maxlen=MOST_TRIES)
        failures.append(self._now())
        while len(self._failures) >= _MOST_ADDRESSES:
            del self._failures[next(iter(self._failures))]
        self._failures[source] = failures


def _source(peer: str | None) -> str:
    """The text that stands for an address. A host chooses the last half of an IPv6 address."""
    address = ip_address((peer or "::").partition("%")[0])
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(int(address) >> _NETWORK_BITS)
