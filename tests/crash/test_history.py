"""The history checker accepts the histories of a correct store, and finds planted faults."""

from __future__ import annotations

import random

import pytest

from tests.support.histories.history import (
    Delete,
    Done,
    Expected,
    Found,
    History,
    Item,
    Outcome,
    Put,
    Read,
    Refused,
    Request,
    State,
    Update,
    apply,
    check,
    holds,
    index_violations,
)


def item(token: str, **more: dict[str, str]) -> Item:
    return {"pk": {"S": "p"}, "token": {"S": token}, **more}


def sequence(history: History, *steps: tuple[Request, Outcome | None]) -> None:
    """Add requests of one client, one after another. None is a missing answer."""
    for request, outcome in steps:
        operation = history.invoke("a", "k", request)
        if outcome is not None:
            history.answer(operation, outcome)


def violated(history: History, **projections: object) -> bool:
    return bool(check(history, projections))  # type: ignore[arg-type]


def test_sequential_writes_are_explained() -> None:
    history = History()
    sequence(
        history,
        (Put(item("1")), Done()),
        (
            Update({}, {"token": {"S": "2"}}, counts=("n",)),
            Done("ALL_NEW", item("2", n={"N": "1"})),
        ),
        (
            Update({}, {"token": {"S": "3"}}, removes=("n",), condition=Expected("2")),
            Done("ALL_OLD", item("2", n={"N": "1"})),
        ),
        (Put(item("4"), Expected("2")), Refused(shown=True, item=item("3"))),
        (Delete(Expected("3")), Done("ALL_OLD", item("3"))),
        (Delete(Expected("3")), Refused()),
        (Update(item("old"), {"token": {"S": "5"}}, condition=Expected(None)), Done()),
    )
    history.observe({"k": item("5")})

    assert check(history) == []


def test_a_lost_acknowledged_write_is_found() -> None:
    history = History()
    sequence(history, (Put(item("1")), Done()), (Put(item("2")), Done()))
    history.observe({"k": item("1")})

    assert violated(history)


def test_an_item_that_is_missing_after_the_restart_is_found() -> None:
    history = History()
    sequence(history, (Put(item("1")), Done()))
    history.observe({})

    assert violated(history)


def test_an_unwritten_item_is_found() -> None:
    history = History()
    history.observe({"k": item("1")})

    assert violated(history)


@pytest.mark.parametrize("seen", [None, "1", "2"])
def test_an_unanswered_write_may_have_happened_or_not(seen: str | None) -> None:
    history = History()
    history.initial["k"] = item("1") if seen else None
    sequence(history, (Put(item("2"), Expected("1")), None))
    history.observe({"k": item(seen)} if seen else {})

    assert check(history) == []


def test_half_of_an_unanswered_write_is_found() -> None:
    history = History()
    history.initial["k"] = item("1", n={"N": "1"})
    sequence(history, (Put(item("2", n={"N": "2"})), None))
    history.observe({"k": item("2", n={"N": "1"})})

    assert violated(history)


def test_a_write_that_was_read_and_then_undone_is_found() -> None:
    history = History()
    sequence(history, (Put(item("1")), None), (Read(), Found(item("1"))))
    history.observe({})

    assert violated(history)


def test_a_lost_write_that_a_refusal_showed_is_found() -> None:
    history = History()
    sequence(
        history,
        (Put(item("1")), None),
        (Put(item("2"), Expected(None)), Refused()),
    )
    history.observe({})

    assert violated(history)


def test_an_unanswered_write_with_a_false_condition_must_have_no_effect() -> None:
    history = History()
    history.initial["k"] = item("1")
    sequence(history, (Put(item("2"), Expected("0")), None))
    history.observe({"k": item("2")})

    assert violated(history)


def test_two_successful_writes_on_condition_of_one_token_are_found() -> None:
    history = History()
    history.initial["k"] = item("1")
    one = history.invoke("a", "k", Put(item("2"), Expected("1")))
    two = history.invoke("b", "k", Put(item("3"), Expected("1")))
    history.answer(one, Done())
    history.answer(two, Done())

    assert violated(history)


def test_a_stale_read_is_found_and_a_concurrent_one_is_not() -> None:
    history = History()
    history.initial["k"] = item("1")
    write = history.invoke("a", "k", Put(item("2")))
    concurrent = history.invoke("b", "k", Read())
    history.answer(write, Done())
    history.answer(concurrent, Found(item("1")))
    assert check(history) == []

    history.answer(history.invoke("b", "k", Read()), Found(item("1")))
    assert violated(history)


def test_reads_that_go_back_in_time_are_found() -> None:
    history = History()
    write = history.invoke("a", "k", Put(item("1")))
    sequence(history, (Read(), Found(item("1"))), (Read(), Found(None)))
    history.answer(write, Done())

    assert violated(history)


def test_a_wrong_old_image_is_found() -> None:
    history = History()
    history.initial["k"] = item("1")
    sequence(history, (Put(item("2")), Done("ALL_OLD", None)))

    assert violated(history)


def test_a_count_that_was_applied_twice_is_found() -> None:
    history = History()
    history.initial["k"] = item("1")
    sequence(history, (Update({}, {"token": {"S": "2"}}, counts=("n",)), Done()))
    history.observe({"k": item("2", n={"N": "2"})})

    assert violated(history)


def test_a_delete_may_have_run_after_a_concurrent_put() -> None:
    history = History()
    delete = history.invoke("a", "k", Delete())
    put = history.invoke("b", "k", Put(item("1")))
    history.answer(delete, Done())
    history.answer(put, Done())
    history.observe({})

    assert check(history) == []


def ranked(whole: Item) -> State:
    return {"rank": whole["rank"]} if "rank" in whole else None


def test_a_read_through_an_index_shows_the_projected_attributes() -> None:
    history = History()
    sequence(
        history,
        (Put(item("1")), Done()),
        (Read("ranked"), Found(None)),
        (Put(item("2", rank={"N": "7"})), Done()),
        (Read("ranked"), Found({"rank": {"N": "7"}})),
    )
    assert not violated(history, ranked=ranked)

    sequence(history, (Read("ranked"), Found(None)))
    assert violated(history, ranked=ranked)


def test_an_index_that_differs_from_its_rebuild_is_found() -> None:
    items = [item("1", rank={"N": "7"}), item("2"), item("3", rank={"N": "9"})]
    rows = [{"rank": {"N": "9"}}, {"rank": {"N": "7"}}]

    assert index_violations("i", items, rows, ranked) == []
    assert index_violations("i", items, rows[:1], ranked) == ['i: missing {"rank":{"N":"7"}}']
    assert index_violations("i", items, [*rows, rows[0]], ranked) == [
        'i: not in the table {"rank":{"N":"9"}}'
    ]


def ran_on_one_store(seed: int) -> tuple[History, State]:
    """A random history of five clients whose operations each take effect at one moment."""
    draw = random.Random(seed)
    history = History()
    state: State = None
    pending: dict[str, tuple[object, Outcome | None]] = {}
    for step in range(300):
        client = draw.choice("abcde")
        if client not in pending:
            expected = state["token"]["S"] if state else None
            condition = Expected(draw.choice([expected, expected, "stale", None]))
            choices: list[Request] = [
                Put(item(f"t{step}"), condition),
                Update(item("x"), {"token": {"S": f"t{step}"}}, counts=("n",)),
                Delete(condition),
                Read(),
            ]
            request = draw.choice(choices)
            pending[client] = (history.invoke(client, "k", request), None)
        operation, outcome = pending[client]
        assert hasattr(operation, "request")
        if outcome is not None:
            del pending[client]
            history.answer(operation, outcome)  # type: ignore[arg-type]
        elif isinstance(operation.request, Read):
            pending[client] = (operation, Found(state))
        elif not holds(operation.request.condition, state):
            pending[client] = (operation, Refused(shown=True, item=state))
        else:
            before, state = state, apply(operation.request, state)
            pending[client] = (operation, Done("ALL_OLD", before))
    return history, state


@pytest.mark.parametrize("seed", range(20))
def test_the_history_of_a_correct_store_is_explained_and_one_with_another_final_state_is_not(
    seed: int,
) -> None:
    history, state = ran_on_one_store(seed)
    history.observe({"k": state} if state else {})
    assert check(history) == []

    history, _ = ran_on_one_store(seed)
    history.observe({"k": item("never")})
    assert violated(history)
