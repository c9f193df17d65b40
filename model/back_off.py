"""Pauses between attempts, each twice as long as the one before. Pure: the caller waits."""

from __future__ import annotations


class BackOff:
    """The next pause, which grows up to the longest one."""

    def __init__(self, first_seconds: float, longest_seconds: float) -> None:
        self._first_seconds = self._next_seconds = first_seconds
        self._longest_seconds = longest_seconds

    def pause_seconds(self, least_seconds: float = 0.0) -> float:
        """The pause before the next attempt, and at least this long."""
        seconds = max(self._next_seconds, least_seconds)
        self._next_seconds = min(2 * self._next_seconds, self._longest_seconds)
        return seconds

    def reset(self) -> None:
        """Begin again with the first pause, after a successful attempt."""
        self._next_seconds = self._first_seconds
