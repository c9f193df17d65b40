"""The keys that weigh most among any number of them, in bounded memory.

A key is counted while there is room. Where there is none, so much is taken from every count that
half of them go: what was taken is the most by which any key can be counted too low. This is the
summary of Misra and Gries with weights, as in Anderson et al., "A High-Performance Algorithm for
Identifying Frequent Items in Data Streams", IMC 2017. Apache DataSketches implements it too: called
from Python it is as quick as a dictionary (0.2 µs a key), and brings NumPy, 18 MB and 0.1 s.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

# An error of 0.4 % of the total at most.
DEFAULT_KEYS: Final = 512


class Heavy(Struct, frozen=True):
    """A key that weighs so much at least and at most."""

    key: bytes
    least: float
    most: float


class Summary(Struct, frozen=True):
    """The heaviest keys of what was counted, the heaviest first, and all weight together.

    A key that is listed weighs what is listed, or up to ``error`` more; any other weighs
    ``unlisted`` at most.
    """

    total: float = 0.0
    keys: tuple[tuple[bytes, float], ...] = ()
    error: float = 0.0
    unlisted: float = 0.0


NOTHING: Final = Summary()


class HeavyHitters:
    """The counts.

    Invariant: there are at most ``most_keys``, each is what its key weighs or up to ``error``
    less, and ``error`` is at most twice the total over ``most_keys``: whatever was taken from one
    count was taken from half of ``most_keys`` at the same time.
    """

    __slots__ = ("_counts", "_most_keys", "error", "total")

    def __init__(self, most_keys: int = DEFAULT_KEYS) -> None:
        assert most_keys >= 1
        self._most_keys = most_keys
        self._counts: dict[bytes, float] = {}
        self.error = 0.0
        self.total = 0.0

    def add(self, key: bytes, weight: float) -> None:
        """Count a key, with a weight above 0."""
        counts = self._counts
        counts[key] = counts.get(key, 0.0) + weight
        self.total += weight
        if len(counts) > self._most_keys:
            self._make_room()

    def summary(self, keys: int) -> Summary:
        """So many of the heaviest keys."""
        ordered = sorted(self._counts.items(), key=_by_weight)
        next_weight = ordered[keys][1] if len(ordered) > keys else 0.0
        return Summary(self.total, tuple(ordered[:keys]), self.error, next_weight + self.error)

    def _make_room(self) -> None:
        """Take the weight of the key in the middle from all: half of them have no more."""
        ordered = sorted(self._counts.values(), reverse=True)
        taken = ordered[self._most_keys // 2]
        self._counts = {
            key: weight - taken for key, weight in self._counts.items() if weight > taken
        }
        self.error += taken


def heaviest(summaries: Iterable[Summary], keys: int) -> list[Heavy]:
    """So many of the heaviest keys of all summaries together, by their certain weight."""
    parts = list(summaries)
    listed: dict[bytes, float] = {}
    # What a key may weigh where it is listed, over what it may weigh where it is not.
    excess: dict[bytes, float] = {}
    for part in parts:
        for key, weight in part.keys:
            listed[key] = listed.get(key, 0.0) + weight
            excess[key] = excess.get(key, 0.0) + weight + part.error - part.unlisted
    unlisted = sum(part.unlisted for part in parts)
    ordered = sorted(listed.items(), key=_by_weight)[:keys]
    return [Heavy(key, weight, unlisted + excess[key]) for key, weight in ordered]


def _by_weight(entry: tuple[bytes, float]) -> tuple[float, bytes]:
    """The heaviest first, and equal ones in the order of their bytes."""
    return -entry[1], entry[0]
