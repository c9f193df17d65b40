"""How whoever copies whole tables in the background keeps out of the way of requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

# While others use the server it rests behind each page, so many times as long as that took.
_REST: Final = 2.0
# Where requests leave nothing of the loop, a longer rest would be of no use to them.
_LONGEST_REST_SECONDS: Final = 0.01


class Pacing:
    """Each who copies has one of its own.

    ``consumed_units`` tells what was read and written of all tables so far.
    """

    def __init__(self, consumed_units: Callable[[], float]) -> None:
        self._consumed_now = consumed_units
        self._consumed_units = consumed_units()

    def is_needed(self) -> bool:
        """Whether anybody has read or written items since this was last asked."""
        before = self._consumed_units
        self._consumed_units = self._consumed_now()
        return self._consumed_units > before

    def seconds_after(self, took_seconds: float) -> float:
        """For how long to rest behind a page that took so long."""
        return min(_REST * took_seconds, _LONGEST_REST_SECONDS) if self.is_needed() else 0.0
