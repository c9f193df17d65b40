"""Tables move until all nodes execute about as many requests, and then stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from dynactor.api.nodes import balance
from dynactor.api.nodes.balance import IDLE_WEIGHT, Move, Unevenness, Unit
from dynactor.api.nodes.request_rates import RequestRates, faded

MANY = 1_000

nodes_of_units = st.lists(st.lists(st.floats(1, 10_000), max_size=12), min_size=2, max_size=6).map(
    lambda nodes: {
        node: [Unit((f"{node} {number}",), weight) for number, weight in enumerate(weights)]
        for node, weights in enumerate(nodes)
    }
)


def weights_of(units: Mapping[int, Sequence[Unit]]) -> dict[int, float]:
    return {node: sum(unit.weight for unit in of_node) for node, of_node in units.items()}


def moved(units: Mapping[int, Sequence[Unit]], move: Move) -> dict[int, list[Unit]]:
    """The units after a move."""
    after = {node: list(of_node) for node, of_node in units.items()}
    for unit in units[move.source]:
        if set(unit.names) <= set(move.names):
            after[move.source].remove(unit)
            after[move.target].append(unit)
    return after


@given(nodes_of_units)
@settings(deadline=None)
def test_each_move_makes_the_heavier_node_clearly_lighter_and_moves_come_to_an_end(
    units: dict[int, list[Unit]],
) -> None:
    for _ in range(MANY):
        before = weights_of(units)
        move = balance.next_move(units, before, MANY)
        if move is None:
            return
        units = moved(units, move)
        after = weights_of(units)
        assert max(after[move.source], after[move.target]) <= 0.9 * before[move.source] + 1e-6
        assert max(after.values()) <= max(before.values())
    raise AssertionError("moves go on")


@given(nodes_of_units, st.integers(1, 5))
@settings(deadline=None)
def test_a_node_gives_tables_to_lighter_nodes_only(units: dict[int, list[Unit]], most: int) -> None:
    before = weights_of(units)
    moves = balance.given(units[0], 0, before, most)
    assert len(moves) <= most
    for move in moves:
        units = moved(units, move)
    after = weights_of(units)
    assert max(after[0], *(after[move.target] for move in moves)) <= before[0] if moves else True
    if len(moves) < most:
        # Each remaining unit would make the other node heavier than this one is.
        lightest = min(after.values())
        assert all(after[0] - lightest <= unit.weight + 1e-6 for unit in units[0])


def test_tables_without_requests_are_spread_by_their_number() -> None:
    units = [Unit((name,), IDLE_WEIGHT) for name in "abcdef"]
    moves = balance.given(units, 0, {0: 6.0, 1: 0.0, 2: 0.0}, 50)
    assert [move.target for move in moves] == [1, 2, 1, 2]


def test_two_busy_tables_get_different_nodes() -> None:
    units = {1: [Unit(("busy",), 100.0), Unit(("also",), 90.0)], 2: [Unit(("idle",), 1.0)]}
    move = balance.next_move(units, weights_of(units), 50)
    assert move == Move(("also",), 1, 2)


def test_the_only_busy_table_stays_and_other_nodes_are_still_evened_out() -> None:
    few, many = [Unit(("i",), 10.0)], [Unit((name,), 10.0) for name in "abcdefgh"]
    units = {1: [Unit(("busy",), 100.0)], 2: many, 3: few}
    move = balance.next_move(units, weights_of(units), 50)
    assert move is not None
    assert (move.source, move.target, len(move.names)) == (2, 3, 3)


def test_a_slight_difference_moves_nothing() -> None:
    units = {1: [Unit((name,), 1.0) for name in "abcdefghij"], 2: [Unit(("k",), 8.0)]}
    assert balance.next_move(units, weights_of(units), 50) is None
    assert balance.unevenness([10.0, 8.0]) is Unevenness.NONE
    assert balance.unevenness([10.0, 6.0]) is Unevenness.SLIGHT
    assert balance.unevenness([10.0, 3.0]) is Unevenness.GREAT


def test_tables_that_are_used_together_move_together() -> None:
    units = {1: [Unit(("a", "b"), 2.0), Unit(("c", "d"), 2.0)], 2: []}
    move = balance.next_move(units, weights_of(units), 50)
    assert move is not None
    assert move.names in (("a", "b"), ("c", "d"))


class Seconds:
    """A clock that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_rates_follow_the_requests_of_some_seconds() -> None:
    clock = Seconds()
    rates = RequestRates(clock)
    assert rates.read() == {}
    for second in range(1, 61):
        clock.now = second
        rates.count(["busy"] * 50 + ["calm"] * (second % 2))
        shown = rates.read()
    assert 49 < shown["busy"] < 51
    assert 0.3 < shown["calm"] < 0.7
    clock.now += 10
    assert 15 < rates.read()["busy"] < 20
    clock.now += 600
    assert rates.read() == {}


def test_the_rates_of_a_table_at_its_former_and_its_present_home_add_up() -> None:
    clock = Seconds()
    former, present = RequestRates(clock), RequestRates(clock)
    former.read(), present.read()
    reported: dict[str, float] = {}
    for second in range(1, 61):
        clock.now = second
        (former if second <= 40 else present).count(["busy"] * 50)
        # A former home does not answer any more.
        reported = former.read() if second <= 40 else faded(reported, 1)
        total = reported.get("busy", 0.0) + present.read().get("busy", 0.0)
        if second > 38:
            assert 48 < total < 51
