"""Decides which tables move, so that all nodes execute about as many requests.

The weight of a table is its requests per second, and a little more, because a table without
requests has work, too. The weight of a node is that of its tables. Tables that are used together
move together, as a unit. These functions are pure.

Each move makes the heaviest of its two nodes lighter, so moves come to an end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

# The weight of a table without requests, in requests per second.
IDLE_WEIGHT: Final = 1.0
# Differences of nodes, as shares of the mean weight. Slight differences come and go.
_SLIGHT: Final = 0.3
_GREAT: Final = 1.0
# The share of the heaviest node's weight that a move must save.
_LEAST_GAIN: Final = 0.1


class Unit(NamedTuple):
    """Tables that have one home."""

    names: tuple[str, ...]
    weight: float


class Move(NamedTuple):
    """Tables that a node gives to another one."""

    names: tuple[str, ...]
    source: int
    target: int


class Unevenness(Enum):
    """How much the weights of nodes differ."""

    NONE = "none"
    SLIGHT = "slight"
    GREAT = "great"


def total_rate(names: Iterable[str], rates: Mapping[str, float]) -> float:
    """The weight of some tables; ``rates`` are requests per second, by table."""
    return sum(rates.get(name, 0.0) + IDLE_WEIGHT for name in names)


def unevenness(weights: Iterable[float]) -> Unevenness:
    """How much the weights of nodes differ."""
    known = list(weights)
    mean = sum(known) / len(known)
    difference = max(known) - min(known)
    if difference <= _SLIGHT * mean:
        return Unevenness.NONE
    return Unevenness.SLIGHT if difference < _GREAT * mean else Unevenness.GREAT


def given(
    units: Iterable[Unit], source: int, weights: Mapping[int, float], most: int
) -> list[Move]:
    """The units that a node gives to lighter nodes, ``most`` tables at once.

    ``weights`` are those of all nodes, also of the source.
    """
    after = dict(weights)
    moves = []
    count = 0
    for unit in sorted(units, key=lambda unit: (-unit.weight, unit.names)):
        target = _lightest(after)
        if count + len(unit.names) > most or after[source] - after[target] <= unit.weight:
            continue
        moves.append(Move(unit.names, source, target))
        count += len(unit.names)
        after[source] -= unit.weight
        after[target] += unit.weight
    return moves


def next_move(
    units: Mapping[int, Sequence[Unit]], weights: Mapping[int, float], most: int
) -> Move | None:
    """The move that evens out the weights best, of ``most`` tables; None if none is worthwhile.

    ``units`` are those of the nodes that may give some.
    """
    mean = sum(weights.values()) / len(weights)
    target = _lightest(weights)
    # A node with one busy table can give nothing, so look at the next one.
    for source in sorted(units, key=lambda node: (-weights[node], node)):
        difference = weights[source] - weights[target]
        if difference <= _SLIGHT * mean:
            break
        chosen = _chosen(units[source], difference, most)
        moved = sum(unit.weight for unit in chosen)
        if min(moved, difference - moved) >= _LEAST_GAIN * weights[source]:
            names = tuple(name for unit in chosen for name in unit.names)
            return Move(names, source, target)
    return None


def _chosen(units: Sequence[Unit], difference: float, most: int) -> list[Unit]:
    """The units whose move makes two nodes most equal.

    These are several units with up to half of the difference together, or one with more.
    """
    chosen: list[Unit] = []
    moved, count = 0.0, 0
    for unit in sorted(units, key=lambda unit: (-unit.weight, unit.names)):
        if moved + unit.weight <= difference / 2 and count + len(unit.names) <= most:
            chosen.append(unit)
            moved += unit.weight
            count += len(unit.names)
    single = min(
        (unit for unit in units if len(unit.names) <= most),
        key=lambda unit: (abs(difference / 2 - unit.weight), unit.names),
        default=None,
    )
    if single is not None and abs(difference / 2 - single.weight) < difference / 2 - moved:
        return [single]
    return chosen


def _lightest(weights: Mapping[int, float]) -> int:
    return min(weights, key=lambda node: (weights[node], node))
