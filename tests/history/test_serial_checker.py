"""The serializability checker itself: what one store can have said, and what it can't."""

from __future__ import annotations

from random import Random

import pytest

from tests.support.history_serial import (
    SerialHistory,
    Transaction,
    Value,
    Write,
    check,
)


def history_of(*keys: str) -> SerialHistory:
    return SerialHistory(dict.fromkeys(keys, Value()))


def value(*names: str, number: int = 0) -> Value:
    return Value(names, number)


def append(*keys: str) -> dict[str, Write]:
    return dict.fromkeys(keys, Write())


def kinds(history: SerialHistory, **last: Value) -> list[str]:
    """What is found once everything was read at the end."""
    history.done(history.invoke("last"), last)
    return [anomaly.kind for anomaly in check(history)]


def do(history: SerialHistory, name: str, *keys: str, **reads: Value) -> Transaction:
    """A transaction from request to answer."""
    transaction = history.invoke(name, append(*keys))
    history.done(transaction, reads)
    return transaction


def test_transactions_one_after_the_other_are_explained() -> None:
    history = SerialHistory({"x": Value(number=10), "y": Value()})
    pay = history.invoke("pay", {"x": Write(add=-4, least=4), "y": Write(add=4)})
    history.done(pay)
    look = history.invoke("look")
    history.done(look, {"x": value("pay", number=6), "y": value("pay", number=4)})
    put = history.invoke("put", {"x": Write(put=1)})
    history.done(put, {"x": value("pay", number=6)})

    assert kinds(history, x=value("pay", "put", number=1), y=value("pay", number=4)) == []


def test_concurrent_transactions_may_come_in_either_order() -> None:
    history = history_of("x", "y")
    one, other = history.invoke("1", append("x")), history.invoke("2", append("x"))
    look = history.invoke("look")
    history.done(one)
    history.done(other)
    history.done(look, {"x": value("2"), "y": value()})

    assert kinds(history, x=value("2", "1"), y=value()) == []


def test_an_unanswered_transaction_may_be_there_or_not() -> None:
    for last in (value(), value("1")):
        history = history_of("x", "y")
        history.invoke("1", append("x", "y"))
        assert kinds(history, x=last, y=last) == []


def test_an_unanswered_transaction_may_come_late() -> None:
    history = history_of("x")
    history.invoke("1", append("x"))
    do(history, "look", x=value())

    assert kinds(history, x=value("1")) == []


def test_half_of_an_unanswered_transaction_is_found() -> None:
    history = history_of("x", "y")
    history.invoke("1", append("x", "y"))

    assert kinds(history, x=value("1"), y=value()) == ["half there"]


def test_half_of_an_answered_transaction_is_found() -> None:
    history = history_of("x", "y")
    do(history, "1", "x", "y")

    assert kinds(history, x=value("1"), y=value()) == ["half there"]


def test_half_of_a_transaction_that_a_reader_saw_is_found() -> None:
    history = history_of("x", "y")
    write, look = history.invoke("1", append("x", "y")), history.invoke("look")
    history.done(look, {"x": value("1"), "y": value()})
    history.done(write)

    assert kinds(history, x=value("1"), y=value("1")) == ["circle"]


def test_half_of_a_transaction_that_two_reads_saw_is_found() -> None:
    history = history_of("x", "y")
    write = history.invoke("1", append("x", "y"))
    do(history, "new", x=value("1"))
    do(history, "old", y=value())
    history.done(write)

    assert kinds(history, x=value("1"), y=value("1")) == ["circle"]


def test_a_lost_write_is_found() -> None:
    history = history_of("x")
    do(history, "1", "x")

    assert kinds(history, x=value()) == ["lost"]


def test_a_write_that_was_seen_and_then_taken_back_is_found() -> None:
    history = history_of("x")
    history.invoke("1", append("x"))
    do(history, "look", x=value("1"))

    assert kinds(history, x=value()) == ["circle"]


def test_a_lost_update_is_found_where_the_names_fork() -> None:
    history = history_of("x")
    do(history, "1", "x")
    do(history, "look", x=value("1"))
    do(history, "2", "x")

    assert kinds(history, x=value("2")) == ["forked"]


def test_a_lost_update_is_found_where_two_wrote_over_one_version() -> None:
    history = history_of("x")
    one, other = history.invoke("1", append("x")), history.invoke("2", append("x"))
    history.done(one, {"x": value()})
    history.done(other, {"x": value()})

    assert kinds(history, x=value("1", "2")) == ["circle"]


def test_a_stale_read_is_found() -> None:
    history = history_of("x")
    do(history, "1", "x")
    do(history, "look", x=value())

    assert kinds(history, x=value("1")) == ["circle"]


def test_a_write_that_came_after_its_answer_is_found() -> None:
    history = history_of("x")
    do(history, "1", "x")
    do(history, "2", "x")

    assert kinds(history, x=value("2", "1")) == ["circle"]


def test_writes_in_another_order_on_each_item_are_found() -> None:
    history = history_of("x", "y")
    one, other = history.invoke("1", append("x", "y")), history.invoke("2", append("x", "y"))
    history.done(one)
    history.done(other)

    assert kinds(history, x=value("1", "2"), y=value("2", "1")) == ["circle"]


def test_write_skew_is_found() -> None:
    history = history_of("x", "y")
    one, other = history.invoke("1", append("x")), history.invoke("2", append("y"))
    history.done(one, {"x": value(), "y": value()})
    history.done(other, {"x": value(), "y": value()})

    assert kinds(history, x=value("1"), y=value("2")) == ["circle"]


def test_readers_that_see_two_writes_in_different_orders_are_found() -> None:
    history = history_of("x", "y")
    writes = [history.invoke("1", append("x")), history.invoke("2", append("y"))]
    looks = [history.invoke("first", {}), history.invoke("second", {})]
    history.done(looks[0], {"x": value("1"), "y": value()})
    history.done(looks[1], {"x": value(), "y": value("2")})
    for write in writes:
        history.done(write)

    assert kinds(history, x=value("1"), y=value("2")) == ["circle"]


def test_a_refused_transaction_that_is_there_is_found() -> None:
    history = history_of("x")
    history.failed(history.invoke("1", append("x")))

    assert kinds(history, x=value("1")) == ["failed and there"]


def test_what_a_refusal_showed_is_a_read() -> None:
    history = history_of("x", "y")
    do(history, "1", "x")
    history.failed(history.invoke("2", append("x", "y")), {"x": value()})

    assert kinds(history, x=value("1"), y=value()) == ["circle"]


def test_a_write_that_was_done_twice_is_found() -> None:
    history = history_of("x")
    do(history, "1", "x")

    assert kinds(history, x=value("1", "1")) == ["done twice"]


def test_a_write_of_nobody_is_found() -> None:
    assert kinds(history_of("x"), x=value("1")) == ["nobody's"]


def test_a_wrong_sum_and_a_condition_that_did_not_hold_are_found() -> None:
    history = SerialHistory({"x": Value(number=3)})
    pay = history.invoke("pay", {"x": Write(add=-4, least=4)})
    history.done(pay)

    assert kinds(history, x=value("pay", number=-2)) == ["condition", "wrong value"]


def ran_on_one_store(seed: int) -> SerialHistory:
    """Random transactions of six clients, each of which takes effect at one moment."""
    draw = Random(seed)
    history = history_of(*"abcd")
    items = dict(history.initial)
    open_: dict[int, Transaction] = {}
    shown: dict[int, dict[str, Value]] = {}
    for step in range(400):
        client = draw.randrange(6)
        if client not in open_:
            writes = {
                key: Write(add=draw.randrange(9)) for key in draw.sample("abcd", draw.randrange(4))
            }
            open_[client] = history.invoke(f"{step}", writes)
        elif client not in shown:
            shown[client] = {key: items[key] for key in draw.sample("abcd", draw.randrange(4))}
            transaction = open_[client]
            for key, write in transaction.writes.items():
                items[key] = write.apply(transaction.name, items[key])
        elif draw.random() < 0.05:
            # The answer was lost on its way.
            del open_[client], shown[client]
        else:
            history.done(open_.pop(client), shown.pop(client))
    history.done(history.invoke("last"), items)
    return history


@pytest.mark.parametrize("case", range(20))
def test_what_one_store_said_is_explained(case: int) -> None:
    assert check(ran_on_one_store(case)) == []


@pytest.mark.parametrize("case", range(20))
def test_a_read_that_is_older_than_an_answer_before_it_is_found(case: int) -> None:
    history = ran_on_one_store(case)
    draw = Random(case)
    by_name = {transaction.name: transaction for transaction in history.transactions}
    late = [
        (transaction, key)
        for transaction in history.transactions[:-1]
        for key, value in transaction.reads.items()
        if value.names and by_name[value.names[-1]].answered < transaction.invoked
    ]
    transaction, key = draw.choice(late)
    older = Value(transaction.reads[key].names[:-1])
    transaction.reads = {**transaction.reads, key: older}

    assert [anomaly.kind for anomaly in check(history)] == ["circle"]
