"""How whoever copies whole tables in the background keeps out of the way of requests."""

from __future__ import annotations

from typing import Final

from actors.tables import Tables

# While others use the server it rests behind each page, so many times as long as that took.
_REST: Final = 2.0
# Where requests leave nothing of the loop, a longer rest would be of no use to them.
_LONGEST_REST_SECONDS: Final = 0.01


class Pause:
    """Each who copies has one of its own."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._consumed_units = 0.0

    def seconds_after(self, took_seconds: float) -> float:
        """For how long to rest behind a page that took so much of the loop."""
        before = self._consumed_units
        consumed = [table.throttle.consumed for table in self._tables.values()]
        self._consumed_units = sum(each.read_units + each.write_units for each in consumed)
        if self._consumed_units == before:
            return 0.0
        return min(_REST * took_seconds, _LONGEST_REST_SECONDS)
