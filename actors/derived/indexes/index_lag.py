"""A lag for global indexes that a tester may set: real ones follow within milliseconds."""

from __future__ import annotations

from random import Random

from msgspec import Struct


class IndexLag(Struct, frozen=True):
    """How long changes wait before an index gets them.

    From ``shortest_seconds`` to ``longest_seconds``, drawn from ``seed``: the same seed gives
    the same waits. What comes while others wait has a wait of its own behind them, all of it one:
    an index is behind by two waits at most, however many changes there are.
    """

    shortest_seconds: float = 0.0
    longest_seconds: float = 0.0
    seed: int = 0

    def waits(self) -> Random:
        """The source of the waits of one index."""
        return Random(self.seed)  # noqa: S311 - a tester's dial, no secret

    def draw(self, waits: Random) -> float:
        """The next wait, in seconds."""
        return waits.uniform(self.shortest_seconds, self.longest_seconds)


NO_LAG = IndexLag()
