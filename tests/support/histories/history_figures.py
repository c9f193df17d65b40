"""The figures of one history, and the summary of many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec
from msgspec import Struct


class TimedOperation(Protocol):
    """An operation with the times of its request and its answer."""

    invoked: int
    answered: float


class Figures(Struct, frozen=True):
    """The figures of one history. A retry is a request that is sent again after a conflict."""

    operations: int
    # The number of operations on the hot item that overlapped another one.
    overlapping: int
    kills: int
    unknown: int
    conflicts: int = 0
    # The lowest number of committed transactions of a client.
    fewest_commits: int = 0
    retries: tuple[int, ...] = ()
    seconds: float = 0.0

    def packed(self) -> str:
        """The figures as JSON, for passing them between processes."""
        return msgspec.json.encode(self).decode()


def count_overlapping(operations: Sequence[TimedOperation]) -> int:
    """The number of operations that overlap another one."""
    moments = sorted(
        (moment, begins, position)
        for position, operation in enumerate(operations)
        for moment, begins in ((operation.invoked, True), (operation.answered, False))
    )
    under_way: set[int] = set()
    overlapping: set[int] = set()
    for _, begins, position in moments:
        if begins:
            under_way.add(position)
            if len(under_way) > 1:
                overlapping |= under_way
        else:
            under_way.discard(position)
    return len(overlapping)


def percentile(values: Sequence[int], share: float) -> int:
    """The smallest value that ``share`` of the values do not exceed; 0 without values."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0


def summary(kind: str, packed: Sequence[str]) -> Iterator[str]:
    """Many histories of a kind, in a few lines."""
    all_figures = [msgspec.json.decode(text, type=Figures) for text in packed]
    operations = sum(each.operations for each in all_figures)
    overlapping = sum(each.overlapping for each in all_figures)
    killed = sum(each.kills > 0 for each in all_figures)
    yield (
        f"{kind}: {len(all_figures)} histories, {operations} operations "
        f"(at least {min(each.operations for each in all_figures)} each), "
        f"{overlapping / operations:.0%} overlap on one key, "
        f"{killed} with kill -9, {sum(each.unknown for each in all_figures)} unknown outcomes, "
        f"{sum(each.seconds for each in all_figures):.0f} s"
    )
    retries = [count for each in all_figures for count in each.retries]
    if retries:
        yield (
            f"{kind}: {sum(each.conflicts for each in all_figures)} conflicts; retries of an "
            f"operation: p50 {percentile(retries, 0.5)}, p99 {percentile(retries, 0.99)}, "
            f"max {max(retries)}; every client committed at least "
            f"{min(each.fewest_commits for each in all_figures)} transactions in every history"
        )
