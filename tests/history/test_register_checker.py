"""The linearizability checker finds an order if and only if brute force does, but faster."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations
from random import Random

from tests.support.histories.history import (
    TOKEN,
    Anything,
    Delete,
    Done,
    Expected,
    Found,
    History,
    Item,
    Operation,
    Outcome,
    Put,
    Read,
    Refused,
    Request,
    State,
    Unanswered,
    Update,
    _step,
    apply,
    check,
    holds,
)

KEY: Item = {"pk": {"S": "p"}}


def item(token: str) -> Item:
    return {**KEY, TOKEN: {"S": token}}


def token_of(state: State) -> str | None:
    return state[TOKEN]["S"] if state is not None else None


def drawn_request(draw: Random, state: State, token: str) -> Request:
    expected = draw.choice([Anything(), Anything(), Expected(token_of(state)), Expected("t0")])
    choices: list[Request] = [
        Put(item(token), expected),
        Update(KEY, {TOKEN: {"S": token}}, counts=("n",), condition=expected),
        Delete(expected),
        Read(),
        Read(),
    ]
    return draw.choice(choices)


def answered(draw: Random, request: Request, state: State) -> tuple[Outcome, State]:
    """The answer of a correct store in this state, and the store's next state."""
    if isinstance(request, Read):
        return Found(state), state
    if not holds(request.condition, state):
        return Refused(shown=True, item=state), state
    after = apply(request, state)
    images = draw.choice(["NONE", "ALL_OLD", "ALL_OLD", "ALL_OLD", "ALL_NEW"])
    returned = {"NONE": None, "ALL_OLD": state, "ALL_NEW": after}[images]
    return Done(images, returned), after  # type: ignore[arg-type]


def on_one_store(draw: Random, count: int, clients: int, tokens: int, lost: float) -> History:
    """Operations that each take effect at one moment; some of their answers are lost."""
    history = History()
    state: State = None
    begun: dict[int, Operation] = {}
    done: dict[int, Outcome] = {}
    asked = 0
    while asked < count or begun:
        client = draw.randrange(clients)
        if client not in begun:
            if asked < count:
                request = drawn_request(draw, state, f"t{asked % tokens}")
                begun[client] = history.invoke(f"{client}", "k", request)
                asked += 1
        elif client not in done:
            done[client], state = answered(draw, begun[client].request, state)
        else:
            operation, outcome = begun.pop(client), done.pop(client)
            history.answer(operation, Unanswered() if draw.random() < lost else outcome)
    return history


def spoilt(draw: Random, history: History) -> None:
    """Replace one answer by the answer of another operation."""
    operations = history.operations["k"]
    shown = [each.outcome.item for each in operations if isinstance(each.outcome, Found)]
    reads = [each for each in operations if isinstance(each.outcome, Found)]
    if reads:
        draw.choice(reads).outcome = Found(draw.choice([*shown, None, item("t1")]))


def has_order(operations: list[Operation]) -> bool:
    """Whether an order explains all answers, by brute force."""
    left_out = [each for each in operations if isinstance(each.outcome, Unanswered)]
    return any(
        explains(order)
        for count in range(len(left_out) + 1)
        for never in combinations(left_out, count)
        for order in permutations(
            [each for each in operations if not any(each is one for one in never)]
        )
    )


def explains(order: tuple[Operation, ...]) -> bool:
    state: State = None
    latest_request = 0
    for operation in order:
        latest_request = max(latest_request, operation.invoked)
        if operation.answered < latest_request:
            return False
        explained, state = _step(operation, state, {})
        if not explained:
            return False
    return True


def small_histories(count: int) -> Iterator[History]:
    for seed in range(count):
        draw = Random(seed)
        history = on_one_store(draw, count=6, clients=3, tokens=draw.choice((2, 6)), lost=0.15)
        if draw.random() < 0.6:
            spoilt(draw, history)
        yield history


def test_the_search_finds_an_order_exactly_if_brute_force_does() -> None:
    found = {True: 0, False: 0}
    for history in small_histories(600):
        expected = has_order(history.operations["k"])
        assert (check(history) == []) == expected, history.operations
        found[expected] += 1
    assert min(found.values()) > 50


def test_a_long_history_of_many_clients_on_one_item_is_checked_fast() -> None:
    history = on_one_store(Random(1), count=2_000, clients=32, tokens=2_000, lost=0.005)

    assert check(history) == []


def test_a_late_read_of_an_old_value_is_found_in_a_history_of_many_clients() -> None:
    history = on_one_store(Random(1), count=400, clients=32, tokens=400, lost=0.005)
    reads = [
        each
        for each in history.operations["k"]
        if isinstance(each.outcome, Found) and each.outcome.item is not None
    ]
    reads[-1].outcome = reads[len(reads) // 2].outcome

    assert len(check(history)) == 1
