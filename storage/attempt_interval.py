"""Bounds how often expensive work is retried on the event loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Final

# Maximum share of time for attempts. The remaining time is for other tasks of the event loop.
_SHARE: Final = 1 / 5
_SHORTEST_PAUSE_SECONDS: Final = 0.01
_LONGEST_PAUSE_SECONDS: Final = 1.0


class AttemptInterval:
    """Attempts use at most a fifth of the time, unless one takes longer than 0.25 seconds."""

    def __init__(self) -> None:
        self._next_at = 0.0

    @property
    def is_due(self) -> bool:
        """Whether the next attempt may start."""
        return monotonic() >= self._next_at

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Time one attempt, which lasts as long as the context."""
        began = monotonic()
        try:
            yield
        finally:
            ended = monotonic()
            pause_seconds = (ended - began) * (1 / _SHARE - 1)
            pause_seconds = max(_SHORTEST_PAUSE_SECONDS, pause_seconds)
            self._next_at = ended + min(pause_seconds, _LONGEST_PAUSE_SECONDS)
