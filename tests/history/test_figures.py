"""The figures of recorded histories: overlapping operations, percentiles, and the summary."""

from __future__ import annotations

from tests.support.histories.history_figures import Figures, count_overlapping, percentile, summary
from tests.support.histories.history_serial import Transaction


def under_way(invoked: int, answered: float) -> Transaction:
    return Transaction("", invoked, answered=answered)


def test_operations_with_a_common_moment_overlap() -> None:
    alone, one, other = under_way(1, 2), under_way(3, 6), under_way(4, 5)
    never_answered, late = under_way(7, float("inf")), under_way(8, 9)

    assert count_overlapping([alone]) == 0
    assert count_overlapping([alone, one, other]) == 2
    assert count_overlapping([alone, one, other, never_answered, late]) == 4


def test_a_percentile_is_one_of_the_values() -> None:
    assert percentile(range(101), 0.5) == 50
    assert percentile([7], 0.99) == 7
    assert percentile([], 0.5) == 0


def test_many_histories_are_summarized_in_two_lines() -> None:
    figures = [
        Figures(2_000, 500, 1, 3, conflicts=40, fewest_commits=5, retries=(0, 0, 4)),
        Figures(2_100, 525, 0, 0, conflicts=10, fewest_commits=7, retries=(1,)),
    ]

    first, second = summary("transactions", [each.packed() for each in figures])

    assert first == (
        "transactions: 2 histories, 4100 operations (at least 2000 each), 25% overlap on one key, "
        "1 with kill -9, 3 unknown outcomes, 0 s"
    )
    assert second == (
        "transactions: 50 conflicts; retries of an operation: p50 1, p99 4, max 4; every client "
        "committed at least 5 transactions in every history"
    )
