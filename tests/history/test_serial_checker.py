"""The serializability checker accepts possible histories and rejects impossible ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations
from random import Random

import pytest

from tests.support.histories.history_serial import SerialHistory, Transaction, Value, Write, check


def history_of(*keys: str) -> SerialHistory:
    return SerialHistory(dict.fromkeys(keys, Value()))


def value(*names: str, number: int = 0) -> Value:
    return Value(names, number)


def append(*keys: str) -> dict[str, Write]:
    return dict.fromkeys(keys, Write())


def kinds(history: SerialHistory, **last: Value) -> list[str]:
    """The kinds of anomalies that the checker finds after a final read of all items."""
    history.done(history.invoke("last"), last)
    return [anomaly.kind for anomaly in check(history)]


def do(history: SerialHistory, name: str, *keys: str, **reads: Value) -> Transaction:
    """Add a transaction with its request and its answer."""
    transaction = history.invoke(name, append(*keys))
    history.done(transaction, reads)
    return transaction


def test_sequential_transactions_are_explained() -> None:
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


def test_an_unanswered_transaction_may_have_happened_or_not() -> None:
    for last in (value(), value("1")):
        history = history_of("x", "y")
        history.invoke("1", append("x", "y"))
        assert kinds(history, x=last, y=last) == []


def test_an_unanswered_transaction_may_take_effect_late() -> None:
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

    assert kinds(history, x=value("1"), y=value("1")) == ["cycle"]


def test_half_of_a_transaction_that_two_reads_saw_is_found() -> None:
    history = history_of("x", "y")
    write = history.invoke("1", append("x", "y"))
    do(history, "new", x=value("1"))
    do(history, "old", y=value())
    history.done(write)

    assert kinds(history, x=value("1"), y=value("1")) == ["cycle"]


def test_a_lost_write_is_found() -> None:
    history = history_of("x")
    do(history, "1", "x")

    assert kinds(history, x=value()) == ["lost"]


def test_a_write_that_was_read_and_then_undone_is_found() -> None:
    history = history_of("x")
    history.invoke("1", append("x"))
    do(history, "look", x=value("1"))

    assert kinds(history, x=value()) == ["cycle"]


def test_a_lost_update_is_found_if_two_reads_have_different_histories() -> None:
    history = history_of("x")
    do(history, "1", "x")
    do(history, "look", x=value("1"))
    do(history, "2", "x")

    assert kinds(history, x=value("2")) == ["forked"]


def test_a_lost_update_is_found_if_two_writes_replaced_one_version() -> None:
    history = history_of("x")
    one, other = history.invoke("1", append("x")), history.invoke("2", append("x"))
    history.done(one, {"x": value()})
    history.done(other, {"x": value()})

    assert kinds(history, x=value("1", "2")) == ["cycle"]


def test_a_stale_read_is_found() -> None:
    history = history_of("x")
    do(history, "1", "x")
    do(history, "look", x=value())

    assert kinds(history, x=value("1")) == ["cycle"]


def test_a_write_that_took_effect_after_its_answer_is_found() -> None:
    history = history_of("x")
    do(history, "1", "x")
    do(history, "2", "x")

    assert kinds(history, x=value("2", "1")) == ["cycle"]


def test_writes_in_another_order_on_each_item_are_found() -> None:
    history = history_of("x", "y")
    one, other = history.invoke("1", append("x", "y")), history.invoke("2", append("x", "y"))
    history.done(one)
    history.done(other)

    assert kinds(history, x=value("1", "2"), y=value("2", "1")) == ["cycle"]


def test_write_skew_is_found() -> None:
    history = history_of("x", "y")
    one, other = history.invoke("1", append("x")), history.invoke("2", append("y"))
    history.done(one, {"x": value(), "y": value()})
    history.done(other, {"x": value(), "y": value()})

    assert kinds(history, x=value("1"), y=value("2")) == ["cycle"]


def test_readers_that_see_two_writes_in_different_orders_are_found() -> None:
    history = history_of("x", "y")
    writes = [history.invoke("1", append("x")), history.invoke("2", append("y"))]
    looks = [history.invoke("first", {}), history.invoke("second", {})]
    history.done(looks[0], {"x": value("1"), "y": value()})
    history.done(looks[1], {"x": value(), "y": value("2")})
    for write in writes:
        history.done(write)

    assert kinds(history, x=value("1"), y=value("2")) == ["cycle"]


def test_a_refused_transaction_with_effects_is_found() -> None:
    history = history_of("x")
    history.failed(history.invoke("1", append("x")))

    assert kinds(history, x=value("1")) == ["failed and there"]


def test_the_item_in_a_refusal_is_a_read() -> None:
    history = history_of("x", "y")
    do(history, "1", "x")
    history.failed(history.invoke("2", append("x", "y")), {"x": value()})

    assert kinds(history, x=value("1"), y=value()) == ["cycle"]


def test_a_write_that_was_applied_twice_is_found() -> None:
    history = history_of("x")
    do(history, "1", "x")

    assert kinds(history, x=value("1", "1")) == ["done twice"]


def test_a_write_without_a_transaction_is_found() -> None:
    assert kinds(history_of("x"), x=value("1")) == ["nobody's"]


def test_a_wrong_sum_and_a_condition_that_did_not_hold_are_found() -> None:
    history = SerialHistory({"x": Value(number=3)})
    pay = history.invoke("pay", {"x": Write(add=-4, least=4)})
    history.done(pay)

    assert kinds(history, x=value("pay", number=-2)) == ["condition", "wrong value"]


def ran_on_one_store(seed: int) -> SerialHistory:
    """Random transactions of six clients that each take effect at one moment."""
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
            # The answer is lost.
            del open_[client], shown[client]
        else:
            history.done(open_.pop(client), shown.pop(client))
    history.done(history.invoke("last"), items)
    return history


def small_histories(count: int) -> Iterator[SerialHistory]:
    """Small random histories; in some, one answer is replaced by another one."""
    for seed in range(count):
        draw = Random(seed)
        history = history_of("x", "y")
        items = dict(history.initial)
        begun: dict[int, tuple[Transaction, dict[str, Value]]] = {}
        while len(history.transactions) < 5 or begun:
            client = draw.randrange(3)
            if client in begun:
                transaction, reads = begun.pop(client)
                if draw.random() < 0.85:
                    history.done(transaction, reads)
            elif len(history.transactions) < 5:
                keys = draw.choice(("", "x", "y", "xy"))
                transaction = history.invoke(f"{len(history.transactions)}", append(*keys))
                reads = {key: items[key] for key in draw.choice(("", "x", "y", "xy"))}
                for key, write in transaction.writes.items():
                    items[key] = write.apply(transaction.name, items[key])
                begun[client] = transaction, reads
        readers = [each for each in history.transactions if each.reads]
        if readers and draw.random() < 0.7:
            reader, other = draw.choice(readers), draw.choice(readers)
            reader.reads = {key: other.reads.get(key, Value()) for key in reader.reads}
        history.done(history.invoke("last"), items)
        yield history


def has_order(history: SerialHistory) -> bool:
    """Whether an order explains all answers, by brute force."""
    unknown = [each for each in history.transactions if each.state == "unknown"]
    return any(
        explains(history, order)
        for count in range(len(unknown) + 1)
        for never in combinations(unknown, count)
        for order in permutations(
            [each for each in history.transactions if not any(each is one for one in never)]
        )
    )


def explains(history: SerialHistory, order: tuple[Transaction, ...]) -> bool:
    items = dict(history.initial)
    latest_request = 0
    for transaction in order:
        latest_request = max(latest_request, transaction.invoked)
        if transaction.answered < latest_request:
            return False
        if any(items[key] != value for key, value in transaction.reads.items()):
            return False
        for key, write in transaction.writes.items():
            items[key] = write.apply(transaction.name, items[key])
    return True


def test_there_is_a_cycle_exactly_if_no_order_exists() -> None:
    found = {True: 0, False: 0}
    for history in small_histories(400):
        expected = has_order(history)
        assert (check(history) == []) == expected, history.transactions
        found[expected] += 1
    assert min(found.values()) > 50


@pytest.mark.parametrize("case", range(20))
def test_the_history_of_one_store_is_explained(case: int) -> None:
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

    assert [anomaly.kind for anomaly in check(history)] == ["cycle"]
