"""The rate of deletions of expired items: one limit for all sweepers of the server."""

from __future__ import annotations

import asyncio
from typing import Final

# Deletions that a busy event loop has delayed may catch up, for at most this time.
_MOST_BEHIND_SECONDS: Final = 0.1


class SweepRate:
    """Grants deletions in the order of the requests, so that each partition gets its turn.

    Invariant: in any period it grants at most ``deletes_per_second`` times the period plus 100 ms.
    """

    def __init__(self, deletes_per_second: float) -> None:
        self._seconds_each = 1 / deletes_per_second
        self._free_at_seconds = 0.0

    def take(self, count: int) -> float:
        """Grant this number of deletions; return the seconds to wait before them."""
        now = asyncio.get_running_loop().time()
        at_seconds = max(self._free_at_seconds, now - _MOST_BEHIND_SECONDS)
        self._free_at_seconds = at_seconds + count * self._seconds_each
        return max(0.0, at_seconds - now)
