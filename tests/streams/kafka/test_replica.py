"""The tests' consumer rebuilds a table from its records, and detects each broken guarantee."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count

import msgspec
import pytest

from dynactor.model.values.item import Item
from dynactor.model.values.stored_item import StoredItem
from dynactor.streams.change_record import ChangeRecord, Origin
from dynactor.streams.kafka.message import (
    KafkaForm,
    KafkaMessage,
    change_messages,
    gap_message,
    snapshot_message,
    without_images,
)
from dynactor.streams.sequence_number import SequenceNumber
from tests.support.kafka.kafka_consumer import Consumed, Replica, by_key
from tests.support.kafka.kafka_forms import KEY, NEW, OLD, SOURCE, TAKEN_US
from tests.support.streams.changes import change

FORM = KafkaForm(tombstones=True)
NEWER: Item = {"Plays": {"N": "43"}}
A_CHANGE = [
    change(KEY, None, OLD, SequenceNumber(1, 1)),
    change(KEY, OLD, NEW, SequenceNumber(1, 2)),
    change(KEY, NEW, NEWER, SequenceNumber(3, 1)),
    change(KEY, NEWER, None, SequenceNumber(3, 2), origin=Origin.TTL),
]


def consumed(messages: Iterable[KafkaMessage], partition: int = 0) -> list[Consumed]:
    """Records as the consumer reads them from one Kafka partition."""
    offsets = count()
    return [
        Consumed(
            partition,
            next(offsets),
            message.key,
            message.value,
            {name: value.decode() for name, value in message.headers},
            message.timestamp_ms,
        )
        for message in messages
    ]


def records(*changes: ChangeRecord) -> list[Consumed]:
    return consumed(message for one in changes for message in change_messages(one, SOURCE, FORM))


def snapshot(item: Item, number: SequenceNumber) -> KafkaMessage:
    stored = StoredItem.of({**KEY, **item}, number.packed())
    return snapshot_message(stored, SOURCE, FORM, taken_us=TAKEN_US)


def rows(*items: Item) -> dict[str, Item]:
    return by_key(({**KEY, **item} for item in items), *KEY)


def test_the_replica_equals_the_result_of_the_changes():
    for length, items in enumerate([(), (OLD,), (NEW,), (NEWER,), ()]):
        replica = Replica.of(records(*A_CHANGE[:length]))
        assert replica.items == rows(*items)
    assert replica.events == {
        ("INSERT", "user"): 1,
        ("MODIFY", "user"): 2,
        ("REMOVE", "ttl"): 1,
    }
    assert (replica.duplicates, replica.tombstones) == (0, 1)


def test_repeated_records_change_nothing_and_are_counted():
    again = records(*A_CHANGE[:3])
    replica = Replica.of([*again, *again[1:], *records(A_CHANGE[3]), *again])
    assert replica.items == {}
    assert replica.duplicates == 5
    assert replica.events.total() == 4


def test_a_snapshot_replaces_the_changes_before_it():
    row = consumed([snapshot(NEW, SequenceNumber(1, 2))])
    replica = Replica.of([*row, *records(A_CHANGE[2])])
    assert replica.items == rows(NEWER)
    assert replica.overlaps == 0
    overlapping = Replica.of([*row, *records(*A_CHANGE[:3])])
    assert (overlapping.items, overlapping.overlaps) == (rows(NEWER), 2)
    late = Replica.of([*records(*A_CHANGE[:3]), *row])
    assert late.items == rows(NEWER)


def test_after_a_gap_the_replica_is_unknown_until_the_snapshot():
    gap = consumed([gap_message(SOURCE, FORM, time_us=TAKEN_US)])
    before = records(A_CHANGE[0])
    assert Replica.of([*before, *gap]).items == {}
    row = consumed([snapshot(NEW, SequenceNumber(1, 2))])
    replica = Replica.of([*before, *gap, *row, *records(A_CHANGE[2])])
    assert (replica.items, replica.gaps) == (rows(NEWER), 1)
    # Records of changes may arrive before the snapshot is complete.
    assert Replica.of([*before, *gap, *records(A_CHANGE[2]), *row]).items == rows(NEWER)


def test_an_item_with_a_left_out_image_exists_in_the_replica():
    (whole,) = change_messages(A_CHANGE[1], SOURCE, FORM)
    cut = consumed([without_images(whole, SOURCE, FORM)])
    replica = Replica.of([*records(A_CHANGE[0]), *cut])
    assert list(replica.items.values()) == ["omitted"]
    assert Replica.of([*records(A_CHANGE[0]), *cut, *records(A_CHANGE[2])]).items == rows(NEWER)


def altered(record: Consumed, change: Callable[[dict], None]) -> Consumed:
    assert record.value is not None
    value = msgspec.json.decode(record.value)
    change(value)
    return record._replace(value=msgspec.json.encode(value))


INSERTED, MODIFIED, MODIFIED_AGAIN, EXPIRED, TOMBSTONE = records(*A_CHANGE)


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param([INSERTED, MODIFIED_AGAIN], id="a change is missing"),
        pytest.param([INSERTED, MODIFIED_AGAIN, MODIFIED], id="two changes change places"),
        pytest.param([MODIFIED], id="the first change is missing"),
        pytest.param([INSERTED, EXPIRED], id="the last image is another one"),
        pytest.param(
            [INSERTED, MODIFIED, altered(MODIFIED, lambda value: value.update(awsRegion="x"))],
            id="a record that comes again is another one",
        ),
        pytest.param(
            [INSERTED, MODIFIED._replace(partition=1)], id="an item lies in two partitions"
        ),
        pytest.param(
            [
                *(INSERTED, MODIFIED, MODIFIED_AGAIN),
                altered(EXPIRED, lambda value: value.update(userIdentity=None)),
            ],
            id="an expiry is not marked",
        ),
        pytest.param(
            [
                altered(
                    INSERTED,
                    lambda value: value.update(
                        userIdentity={
                            "type": "Service",
                            "principalId": "dynamodb.amazonaws.com",
                        }
                    ),
                )
            ],
            id="a user's change is marked",
        ),
        pytest.param([INSERTED, MODIFIED, TOMBSTONE], id="a tombstone comes before its removal"),
        pytest.param(
            [INSERTED._replace(headers={**INSERTED.headers, "event-name": "MODIFY"})],
            id="a header says something else",
        ),
        pytest.param(
            [INSERTED._replace(key=b'{"Artist":{"S":"somebody else"}}')],
            id="the key is that of another item",
        ),
        pytest.param(
            [altered(INSERTED, lambda value: value["dynamodb"].pop("NewImage"))],
            id="an image is missing",
        ),
    ],
)
def test_a_broken_guarantee_is_detected(broken: list[Consumed]):
    with pytest.raises(AssertionError):
        Replica.of(broken)
