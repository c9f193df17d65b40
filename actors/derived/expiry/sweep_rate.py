"""How fast expired items are deleted: one bound for the whole server, shared by turns."""

from __future__ import annotations

import asyncio
from typing import Final

# What a loop that was busy left undone is made up for, as long as it is no more than this.
_MOST_BEHIND_SECONDS: Final = 0.1


class SweepRate:
    """Deals out deletions, first come first served, so that each partition gets its turn.

    Invariant: over any time at most ``deletes_per_second`` of it are dealt out, and those of
    100 ms besides.
    """

    def __init__(self, deletes_per_second: float) -> None:
        self._seconds_each = 1 / deletes_per_second
        self._free_at_seconds = 0.0

    def take(self, count: int) -> float:
        """So many deletions are to be made; how many seconds to wait before."""
        now = asyncio.get_running_loop().time()
        at_seconds = max(self._free_at_seconds, now - _MOST_BEHIND_SECONDS)
        self._free_at_seconds = at_seconds + count * self._seconds_each
        return max(0.0, at_seconds - now)
