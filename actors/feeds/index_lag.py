"""A delay of global indexes, for tests; without it, indexes follow within milliseconds."""

from __future__ import annotations

from random import Random

from msgspec import Struct


class IndexLag(Struct, frozen=True):
    """The delay of changes before an index gets them.

    From ``shortest_seconds`` to ``longest_seconds``, drawn from ``seed``: the same seed gives the
    same delays. Changes that arrive during a delay share the next delay, so an index is behind by
    two delays at most.
    """

    shortest_seconds: float = 0.0
    longest_seconds: float = 0.0
    seed: int = 0

    def waits(self) -> Random:
        """The source of the delays of one index."""
        return Random(self.seed)  # noqa: S311 - for tests, not for secrets

    def draw(self, waits: Random) -> float:
        """The next delay, in seconds."""
        return waits.uniform(self.shortest_seconds, self.longest_seconds)


NO_LAG = IndexLag()
