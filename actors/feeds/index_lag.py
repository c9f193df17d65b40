"""A delay of global indexes, for tests; without it, indexes follow within milliseconds."""

from __future__ import annotations

import re
from random import Random
from typing import Final

from msgspec import Struct

from dynactor.model.configuration_error import ConfigurationError

_AWAITED: Final = "awaited"
# An index follows within milliseconds, unless the disk is full.
_AWAITED_SECONDS: Final = 5.0
_SECONDS: Final = r"([0-9]+(?:\.[0-9]+)?)"
_FIXED: Final = re.compile(rf"fixed:{_SECONDS}\Z")
_RANDOM: Final = re.compile(rf"random:{_SECONDS}-{_SECONDS}:([0-9]+)\Z")


class IndexLag(Struct, frozen=True):
    """The delay of changes before an index gets them.

    From ``shortest_seconds`` to ``longest_seconds``, drawn from ``seed``: the same seed gives the
    same delays. Changes that arrive during a delay share the next delay, so an index is behind by
    two delays at most.
    """

    shortest_seconds: float = 0.0
    longest_seconds: float = 0.0
    seed: int = 0
    # Maximum time that a read of the index waits for acknowledged writes.
    reads_wait_seconds: float = 0.0

    @property
    def is_delayed(self) -> bool:
        """Whether there is a delay."""
        return self.longest_seconds > 0

    def waits(self) -> Random:
        """The source of the delays of one index."""
        return Random(self.seed)  # noqa: S311 - for tests, not for secrets

    def draw(self, waits: Random) -> float:
        """The next delay, in seconds."""
        return waits.uniform(self.shortest_seconds, self.longest_seconds)

    def __str__(self) -> str:
        """The lag in the form of the option."""
        if self.reads_wait_seconds:
            return _AWAITED
        if not self.is_delayed:
            return "none"
        if self.shortest_seconds == self.longest_seconds:
            return f"fixed:{self.shortest_seconds:g}"
        return f"random:{self.shortest_seconds:g}-{self.longest_seconds:g}:{self.seed}"


NO_LAG = IndexLag()


def parse_index_lag(text: str) -> IndexLag:
    """Parse ``--gsi-lag``; raises ``ConfigurationError``."""
    if text == _AWAITED:
        return IndexLag(reads_wait_seconds=_AWAITED_SECONDS)
    return _parsed("--gsi-lag", text, f"none, {_AWAITED}")


def parse_transaction_delay(text: str) -> IndexLag:
    """Parse ``--transaction-delay``; raises ``ConfigurationError``."""
    return _parsed("--transaction-delay", text, "none")


def _parsed(option: str, text: str, words: str) -> IndexLag:
    if text == "none":
        return NO_LAG
    fixed = _FIXED.match(text)
    if fixed is not None:
        return IndexLag(float(fixed[1]), float(fixed[1]))
    drawn = _RANDOM.match(text)
    if drawn is None:
        raise ConfigurationError(
            f"{option} {text} is not understood: give {words}, fixed:SECONDS or "
            "random:FROM-TO:SEED, for example random:0-0.2:7"
        )
    return IndexLag(float(drawn[1]), float(drawn[2]), int(drawn[3]))
