"""The pace of background copies of whole tables: they yield to requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

# While the server is in use, a copy pauses after each page, for this multiple of the page's time.
_REST: Final = 2.0
# If requests use the whole event loop, a longer pause does not help them.
_LONGEST_REST_SECONDS: Final = 0.01


class Pacing:
    """The pace of one copy.

    ``consumed_units`` returns the units consumed by all tables so far.
    """

    def __init__(self, consumed_units: Callable[[], float]) -> None:
        self._consumed_now = consumed_units
        self._consumed_units = consumed_units()

    def is_needed(self) -> bool:
        """Whether items were read or written since the last call."""
        before = self._consumed_units
        self._consumed_units = self._consumed_now()
        return self._consumed_units > before

    def seconds_after(self, took_seconds: float) -> float:
        """The pause after a page that took this time."""
        return min(_REST * took_seconds, _LONGEST_REST_SECONDS) if self.is_needed() else 0.0
