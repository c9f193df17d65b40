"""Choices of the item for a request, by its number among ``count`` keys.

The zipfian choice is YCSB's (Gray et al., "Quickly generating billion-record synthetic databases",
1994): the probabilities of the first two items are exact, the others are approximate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Final, Protocol

THETA: Final = 0.99
_HOT_KEYS: Final = 0.2
_HOT_REQUESTS: Final = 0.8
# The first terms of the sum are added one by one; an integral approximates the other terms.
_ADDED_TERMS: Final = 10_000
_MIX: Final = 0x9E3779B97F4A7C15
_64_BITS: Final = (1 << 64) - 1

SPECIFICATIONS: Final = (
    "uniform, zipfian[:THETA], latest[:THETA], hot-set[:SHARE OF KEYS:SHARE OF REQUESTS] or "
    "sequential"
)


class UnknownChoice(ValueError):
    """The specification is not a choice of keys; the message lists the choices."""


class KeyChoice(Protocol):
    """Draws places below ``count``, which may grow between calls."""

    def draw(self, count: int) -> int:
        """A place, ``0 <= place < count``."""
        ...


class Uniform:
    """Every key with the same probability."""

    def __init__(self, random: Random) -> None:
        self._random = random.random

    def draw(self, count: int) -> int:
        """See KeyChoice."""
        return int(self._random() * count)


class Zipfian:
    """The key of rank n has a probability proportional to 1 / n ** theta; ranks are scattered."""

    def __init__(self, random: Random, theta: float = THETA) -> None:
        self._ranks = _Ranks(random, theta)

    def draw(self, count: int) -> int:
        """See KeyChoice."""
        return scattered(self._ranks.draw(count)) % count


class Latest:
    """Zipfian by age: the newest key is drawn most often."""

    def __init__(self, random: Random, theta: float = THETA) -> None:
        self._ranks = _Ranks(random, theta)

    def draw(self, count: int) -> int:
        """See KeyChoice."""
        return count - 1 - self._ranks.draw(count)


class HotSet:
    """A share of the keys, the first ones, gets a larger share of the requests."""

    def __init__(self, random: Random, keys: float = _HOT_KEYS, hot: float = _HOT_REQUESTS) -> None:
        self._random = random.random
        self._keys = keys
        self._requests = hot

    def draw(self, count: int) -> int:
        """See KeyChoice."""
        hot = max(1, min(count, round(count * self._keys)))
        if hot == count or self._random() < self._requests:
            return int(self._random() * hot)
        return hot + int(self._random() * (count - hot))


class Sequential:
    """All keys in order, repeatedly, from a random start."""

    def __init__(self, random: Random) -> None:
        self._start = random.random()
        self._drawn = 0

    def draw(self, count: int) -> int:
        """See KeyChoice."""
        place = (int(self._start * count) + self._drawn) % count
        self._drawn += 1
        return place


def key_choice(specification: str, random: Random) -> KeyChoice:
    """The choice for a specification, drawing from ``random``.

    Raises:
        UnknownChoice: the specification is invalid.
    """
    name, *texts = specification.split(":")
    made = _CHOICES.get(name)
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        made = None
    if made is None or len(numbers) not in made[0] or not all(map(made[1], numbers)):
        raise UnknownChoice(f"{specification!r} is not a key choice: give {SPECIFICATIONS}")
    return made[2](random, *numbers)


def scattered(number: int) -> int:
    """A permutation of the numbers below 2 ** 64 without any visible order (splitmix64)."""
    mixed = (number + 1) * _MIX & _64_BITS
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _64_BITS
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _64_BITS
    return mixed ^ mixed >> 31


class _Ranks:
    """Draws ranks from 0, the most frequent one."""

    def __init__(self, random: Random, theta: float) -> None:
        self._random = random.random
        self._theta = theta
        self._count = 0
        self._sum = self._eta = 0.0
        self._alpha = 1 / (1 - theta)
        self._second = 1 + 0.5**theta

    def draw(self, count: int) -> int:
        if count != self._count:
            self._set(count)
        share = self._random()
        weight = share * self._sum
        if weight < 1 or count == 1:
            return 0
        if weight < self._second:
            return 1
        return min(count - 1, int(count * (self._eta * share - self._eta + 1) ** self._alpha))

    def _set(self, count: int) -> None:
        self._count = count
        self._sum = generalized_harmonic(count, self._theta)
        # With two keys, the formula that uses eta never applies.
        self._eta = (
            (1 - (2 / count) ** (1 - self._theta)) / (1 - self._second / self._sum)
            if count > 2
            else 0.0
        )


_head_sums: dict[float, float] = {}


def generalized_harmonic(count: int, theta: float) -> float:
    """The sum of 1 / n ** theta for n up to ``count``; long sums by Euler-Maclaurin."""
    if count <= _ADDED_TERMS:
        return math.fsum(n**-theta for n in range(1, count + 1))
    if theta not in _head_sums:
        _head_sums[theta] = generalized_harmonic(_ADDED_TERMS, theta)
    first, last = float(_ADDED_TERMS), float(count)
    power = 1 - theta
    # mypy considers that a power of floats may be complex.
    tail: float = (last**power - first**power) / power + (last**-theta - first**-theta) / 2
    return _head_sums[theta] + tail


def _is_theta(number: float) -> bool:
    return 0 < number < 1


def _is_share(number: float) -> bool:
    return 0 < number <= 1


_Made = tuple[tuple[int, ...], Callable[[float], bool], Callable[..., KeyChoice]]
_CHOICES: Final[dict[str, _Made]] = {
    "uniform": ((0,), _is_share, Uniform),
    "zipfian": ((0, 1), _is_theta, Zipfian),
    "latest": ((0, 1), _is_theta, Latest),
    "hot-set": ((0, 2), _is_share, HotSet),
    "sequential": ((0,), _is_share, Sequential),
}
