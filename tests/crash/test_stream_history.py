"""The checker of streams accepts the streams of a correct store, and finds faults."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tests.support.histories.history import (
    Delete,
    Done,
    Expected,
    History,
    Item,
    Outcome,
    Put,
    Request,
)
from tests.support.streams.stream_walk import Ledger, Record, parents_first, stream_violations


def item(token: str) -> Item:
    return {"pk": {"S": "p"}, "token": {"S": token}}


ONE, TWO, THREE = item("1"), item("2"), item("3")


def record(number: int, event_name: str, old: Item | None, new: Item | None) -> Record:
    return Record("k", f"event{number}", event_name, number, old, new)


def history_of(*steps: tuple[Request, Outcome | None]) -> History:
    """A history of requests of one client, one after another. None is a missing answer."""
    history = History()
    for request, outcome in steps:
        operation = history.invoke("a", "k", request)
        if outcome is not None:
            history.answer(operation, outcome)
    return history


def faults(records: Sequence[Record], history: History, now: Item | None) -> list[str]:
    items = {} if now is None else {"k": now}
    return Ledger().violations(records, history.initial, history.operations, items)


HISTORY = history_of(
    (Put(ONE), Done()),
    (Put(ONE), Done()),
    (Put(TWO, Expected("1")), Done()),
    (Delete(), Done()),
    (Delete(), Done()),
    (Put(THREE), Done()),
)
STREAM = [
    record(1, "INSERT", None, ONE),
    record(2, "MODIFY", ONE, TWO),
    record(3, "REMOVE", TWO, None),
    record(4, "INSERT", None, THREE),
]


def test_a_stream_that_equals_the_history_is_accepted() -> None:
    assert faults(STREAM, HISTORY, THREE) == []


def with_one_that_changes_nothing(stream: list[Record]) -> list[Record]:
    return [stream[0], record(9, "MODIFY", ONE, ONE), *stream[1:]]


@pytest.mark.parametrize(
    "broken",
    [
        lambda stream: stream[1:],
        lambda stream: stream[:-1],
        lambda stream: [*stream[:1], *stream[2:]],
        lambda stream: [*stream, stream[-1]],
        lambda stream: [stream[0], *stream],
        lambda stream: [stream[1], stream[0], *stream[2:]],
        lambda stream: [*stream[:3], stream[3]._replace(new=item("4"))],
        lambda stream: [*stream[:3], stream[3]._replace(old=TWO, event_name="MODIFY")],
        lambda stream: [*stream[:3], stream[3]._replace(event_name="MODIFY")],
        lambda stream: [*stream[:3], stream[3]._replace(sequence_number=2)],
        lambda stream: [*stream[:3], stream[3]._replace(event_id="event1")],
        lambda stream: [*stream, record(5, "MODIFY", THREE, ONE)],
        with_one_that_changes_nothing,
    ],
    ids=[
        "first missing",
        "last missing",
        "one missing",
        "last doubled",
        "first doubled",
        "out of order",
        "wrong new image",
        "wrong old image",
        "wrong name",
        "wrong number",
        "event id given twice",
        "nobody wrote that",
        "no change",
    ],
)
def test_a_planted_fault_is_found(broken: Callable[[list[Record]], list[Record]]) -> None:
    assert faults(broken(STREAM), HISTORY, THREE)


def test_a_missing_record_is_found_by_the_history_even_if_the_images_fit() -> None:
    """Record 2 is missing and the images of 1 and 3 fit, but an answer shows the change of 2."""
    history = history_of((Put(ONE), Done()), (Put(TWO), Done()), (Put(THREE), Done()))
    records = [record(1, "INSERT", None, ONE), record(2, "MODIFY", ONE, THREE)]

    assert stream_violations(records, {"k": THREE}) == []
    assert faults(records, history, THREE)


def test_an_order_of_records_that_contradicts_the_answers_is_found() -> None:
    history = history_of((Put(ONE), Done()), (Delete(), Done()), (Put(TWO), Done()))
    records = [
        record(1, "INSERT", None, TWO),
        record(2, "MODIFY", TWO, ONE),
        record(3, "REMOVE", ONE, None),
    ]

    assert stream_violations(records, {}) == []
    assert faults(records, history, None)


@pytest.mark.parametrize("done", [True, False])
def test_an_unanswered_write_is_in_the_stream_if_it_is_in_the_table(done: bool) -> None:
    history = history_of((Put(ONE), Done()), (Put(TWO), None))
    records = [record(1, "INSERT", None, ONE), record(2, "MODIFY", ONE, TWO)]

    assert faults(records if done else records[:1], history, TWO if done else ONE) == []
    assert faults(records if done else records[:1], history, ONE if done else TWO)


def test_records_shown_before_a_restart_must_be_shown_again() -> None:
    ledger = Ledger()
    assert ledger.violations(STREAM, {}, HISTORY.operations, {"k": THREE}) == []
    assert ledger.violations(STREAM, {"k": THREE}, {}, {"k": THREE}) == []

    renamed = [STREAM[0]._replace(event_id="other"), *STREAM[1:]]
    assert ledger.violations(renamed, {"k": THREE}, {}, {"k": THREE})


def test_shards_are_read_after_their_parents() -> None:
    shards = [
        {"ShardId": "c", "ParentShardId": "b"},
        {"ShardId": "d", "ParentShardId": "gone"},
        {"ShardId": "b", "ParentShardId": "a"},
        {"ShardId": "a"},
    ]

    assert [shard["ShardId"] for shard in parents_first(shards)] == ["d", "a", "b", "c"]
