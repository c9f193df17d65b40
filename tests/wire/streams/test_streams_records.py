"""GetRecords: which writes leave a record, and the content of records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.streams.streams import (
    drained,
    images,
    iterator_of,
    records_of,
    shards_of,
    streamed_table,
)
from tests.support.tables.tables import unique_name


@pytest.fixture(scope="module")
def streamed(wire: WireClient) -> Iterator[tuple[str, str]]:
    with streamed_table(wire, "pk:S", "sk:S") as made:
        yield made


class Follower:
    """A table, one item of it, and the records of that item."""

    def __init__(self, wire: WireClient, streams: WireClient, streamed: tuple[str, str]) -> None:
        self._wire = wire
        self._streams = streams
        self.table, self.arn = streamed
        self.key = {"pk": {"S": unique_name("pk")}, "sk": {"S": "s"}}

    def call(self, operation: str, **members: Any) -> dict[str, Any]:
        return self._wire(operation, {"TableName": self.table, **members})

    def records(self) -> list[dict[str, Any]]:
        return [
            record
            for record in records_of(self._streams, self.arn)
            if record["dynamodb"]["Keys"] == self.key
        ]

    def images(self) -> list[tuple[str, Any, Any]]:
        return images(self.records())


@pytest.fixture
def item(wire: WireClient, streams_wire: WireClient, streamed: tuple[str, str]) -> Follower:
    return Follower(wire, streams_wire, streamed)


def n(value: int) -> dict[str, Any]:
    return {"n": {"N": str(value)}}


def test_each_change_of_an_item_has_a_record(item: Follower):
    key = item.key
    item.call("PutItem", Item=key | n(1))
    item.call(
        "UpdateItem",
        Key=key,
        UpdateExpression="SET n = n + :one",
        ExpressionAttributeValues={":one": {"N": "1"}},
    )
    item.call("PutItem", Item=key | {"s": {"SS": ["b", "a"]}})
    item.call("DeleteItem", Key=key)
    last = key | {"s": {"SS": ["a", "b"]}}
    found = item.images()
    for _, *pair in found:
        for image in pair:
            if image and "s" in image:
                image["s"]["SS"].sort()
    assert found == [
        ("INSERT", None, key | n(1)),
        ("MODIFY", key | n(1), key | n(2)),
        ("MODIFY", key | n(2), last),
        ("REMOVE", last, None),
    ]


def test_a_record_has_all_documented_members(item: Follower):
    item.call("PutItem", Item=item.key | {"é": {"S": 'ü"\\\n'}, "b": {"B": "AP8="}})
    (record,) = item.records()
    body = record["dynamodb"]
    assert re.fullmatch(r"[0-9a-f-]{32,36}", record.pop("eventID"))
    assert re.fullmatch(r"\d{21,40}", body.pop("SequenceNumber"))
    created = body.pop("ApproximateCreationDateTime")
    assert created == int(created)
    # Seconds since 1970; milliseconds would be above the bound.
    assert 1.7e9 < created < 1.7e11
    assert body.pop("SizeBytes") == 2 * (len(item.key["pk"]["S"]) + 5) + 10
    region = record.pop("awsRegion")
    assert region in item.arn
    assert record == {
        "eventName": "INSERT",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "dynamodb": {
            "Keys": item.key,
            "NewImage": item.key | {"é": {"S": 'ü"\\\n'}, "b": {"B": "AP8="}},
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
    }


def test_a_write_that_changes_nothing_leaves_no_record(item: Follower):
    stored = item.key | n(1) | {"m": {"M": {"a": {"N": "1"}, "b": {"N": "2"}}}}
    item.call("PutItem", Item=stored)
    item.call("PutItem", Item=stored)
    item.call("PutItem", Item=stored | {"m": {"M": {"b": {"N": "2"}, "a": {"N": "1.0"}}}})
    item.call(
        "UpdateItem",
        Key=item.key,
        UpdateExpression="ADD n :zero SET m.a = :one REMOVE nothing",
        ExpressionAttributeValues={":zero": {"N": "0"}, ":one": {"N": "1"}},
    )
    assert len(item.records()) == 1


def test_a_refused_write_leaves_no_record(wire: WireClient, item: Follower):
    item.call("PutItem", Item=item.key)
    wire.refused(
        "PutItem",
        {
            "TableName": item.table,
            "Item": item.key | n(1),
            "ConditionExpression": "attribute_not_exists(pk)",
        },
    )
    assert len(item.records()) == 1


def test_a_delete_of_a_missing_item_leaves_no_record(item: Follower):
    item.call("DeleteItem", Key=item.key)
    assert item.records() == []


def test_the_image_of_an_emptied_item_is_its_keys(item: Follower):
    item.call("PutItem", Item=item.key | n(1))
    item.call("UpdateItem", Key=item.key, UpdateExpression="REMOVE n")
    assert item.images()[1:] == [("MODIFY", item.key | n(1), item.key)]


def test_writes_of_a_batch_leave_a_record_each(wire: WireClient, item: Follower):
    keys = [item.key | {"sk": {"S": str(at)}} for at in range(20)]
    puts = [{"PutRequest": {"Item": key | n(1)}} for key in keys]
    deletes = [{"DeleteRequest": {"Key": key}} for key in keys]
    for requests in (puts, deletes):
        wire("BatchWriteItem", {"RequestItems": {item.table: requests}})
    ours = [
        record
        for record in records_of(item._streams, item.arn)
        if record["dynamodb"]["Keys"]["pk"] == item.key["pk"]
    ]
    names: dict[str, list[str]] = {}
    for record in ours:
        names.setdefault(record["dynamodb"]["Keys"]["sk"]["S"], []).append(record["eventName"])
    assert names == {str(at): ["INSERT", "REMOVE"] for at in range(20)}


@pytest.mark.parametrize(
    ("view_type", "shown"),
    [
        ("KEYS_ONLY", set()),
        ("NEW_IMAGE", {"NewImage"}),
        ("OLD_IMAGE", {"OldImage"}),
        ("NEW_AND_OLD_IMAGES", {"NewImage", "OldImage"}),
    ],
)
def test_records_have_the_images_of_the_view_type(
    wire: WireClient, streams_wire: WireClient, view_type: str, shown: set[str]
):
    with streamed_table(wire, "pk:S", view_type=view_type) as (name, arn):
        key = {"pk": {"S": "a"}}
        wire("PutItem", {"TableName": name, "Item": key | n(1)})
        wire("PutItem", {"TableName": name, "Item": key | n(22)})
        wire("DeleteItem", {"TableName": name, "Key": key})
        bodies = [record["dynamodb"] for record in records_of(streams_wire, arn)]
    expected: list[dict[str, Any]] = [
        {"NewImage": key | n(1)},
        {"NewImage": key | n(22), "OldImage": key | n(1)},
        {"OldImage": key | n(22)},
    ]
    sizes = {"1": 6, "22": 6}
    for body, pair in zip(bodies, expected, strict=True):
        visible = {name: image for name, image in pair.items() if name in shown}
        assert {name: body[name] for name in ("NewImage", "OldImage") if name in body} == visible
        assert body["StreamViewType"] == view_type
        images_bytes = sum(sizes[image["n"]["N"]] for image in visible.values())
        assert body["SizeBytes"] == 3 + images_bytes


def test_pages_follow_one_another(wire: WireClient, streams_wire: WireClient):
    with streamed_table(wire, "pk:S") as (name, arn):
        for value in range(7):
            wire("PutItem", {"TableName": name, "Item": {"pk": {"S": "a"}} | n(value)})
        for shard in shards_of(streams_wire, arn):
            iterator = iterator_of(streams_wire, arn, shard["ShardId"])
            one_by_one, _ = drained(streams_wire, iterator, Limit=1)
            by_three, following = drained(streams_wire, iterator, Limit=3)
            at_once, _ = drained(streams_wire, iterator)
            assert one_by_one == by_three == at_once
            # An open shard has a next iterator even after empty pages.
            assert following is not None
            assert drained(streams_wire, following)[0] == []
        seen = [value for _, _, (*_, value) in images(at_once)] if at_once else []
        assert len(seen) in (0, 7)


def test_an_open_shard_with_nothing_new_answers_an_iterator(
    wire: WireClient, streams_wire: WireClient
):
    with streamed_table(wire, "pk:S") as (_, arn):
        shard_id = shards_of(streams_wire, arn)[0]["ShardId"]
        iterator = iterator_of(streams_wire, arn, shard_id)
        for _ in range(3):
            answer = streams_wire("GetRecords", {"ShardIterator": iterator})
            assert answer["Records"] == []
            iterator = answer["NextShardIterator"]


def test_a_closed_shard_has_no_next_iterator_at_its_end(wire: WireClient, streams_wire: WireClient):
    with streamed_table(wire, "pk:S") as (name, arn):
        wire("PutItem", {"TableName": name, "Item": {"pk": {"S": "a"}}})
    read = []
    for shard in shards_of(streams_wire, arn):
        records, following = drained(streams_wire, iterator_of(streams_wire, arn, shard["ShardId"]))
        assert following is None
        read += records
    assert images(read) == [("INSERT", None, {"pk": {"S": "a"}})]


@pytest.mark.differs_from_dynamodb_local("it has one shard")
def test_all_records_of_an_item_are_in_one_shard(wire: WireClient, streams_wire: WireClient):
    with streamed_table(wire, "pk:S") as (name, arn):
        for value in range(3):
            for pk in "abcdefgh":
                wire("PutItem", {"TableName": name, "Item": {"pk": {"S": pk}} | n(value)})
        found: dict[str, list[tuple[str, str]]] = {}
        for shard in shards_of(streams_wire, arn):
            for record in drained(streams_wire, iterator_of(streams_wire, arn, shard["ShardId"]))[
                0
            ]:
                image = record["dynamodb"]["NewImage"]
                found.setdefault(image["pk"]["S"], []).append((shard["ShardId"], image["n"]["N"]))
        assert len({shard_id for places in found.values() for shard_id, _ in places}) > 1
        for places in found.values():
            assert [value for _, value in places] == ["0", "1", "2"]
            assert len({shard_id for shard_id, _ in places}) == 1


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"Limit": 0},
            (
                "1 validation error detected: Value '0' at 'limit' failed to satisfy "
                "constraint: Member must have value greater than or equal to 1"
            ),
        ),
        (
            {"Limit": 1001},
            "One or more parameter values were invalid: Limit should be less than or equal to 1000",
        ),
    ],
)
def test_a_wrong_limit_is_refused(
    streams_wire: WireClient, streamed: tuple[str, str], members: dict, message: str
):
    _, arn = streamed
    iterator = iterator_of(streams_wire, arn, shards_of(streams_wire, arn)[0]["ShardId"])
    refusal = streams_wire.refused("GetRecords", {"ShardIterator": iterator, **members})
    assert refusal == ("ValidationException", message)


def refused_iterator(streams_wire: WireClient, text: str) -> tuple[str, str | None]:
    return streams_wire.refused("GetRecords", {"ShardIterator": text})


NO_ITERATOR = ("ValidationException", "Invalid ShardIterator")


def test_an_invalid_iterator_is_refused(streams_wire: WireClient, streamed: tuple[str, str]):
    _, arn = streamed
    iterator = iterator_of(streams_wire, arn, shards_of(streams_wire, arn)[0]["ShardId"])
    for text in ("x", "|", "||", "x||", iterator + "x", f"{arn}|1|", f"{arn}|1|x"):
        assert refused_iterator(streams_wire, text) == NO_ITERATOR


@pytest.mark.differs_from_dynamodb_local("it reads what is left of an iterator that was cut")
def test_an_iterator_that_was_changed_is_refused(
    streams_wire: WireClient, streamed: tuple[str, str]
):
    _, arn = streamed
    iterator = iterator_of(streams_wire, arn, shards_of(streams_wire, arn)[0]["ShardId"])
    for text in (iterator[:-5], iterator[:-4] + "\u00e9===", "x" + iterator, iterator.swapcase()):
        assert refused_iterator(streams_wire, text) == NO_ITERATOR


@pytest.mark.differs_from_dynamodb_local("it takes an iterator that is missing for a wrong one")
def test_a_missing_iterator_is_refused(streams_wire: WireClient):
    refusal = streams_wire.refused("GetRecords", {})
    assert refusal.message == (
        "1 validation error detected: Value null at 'shardIterator' failed to satisfy "
        "constraint: Member must not be null"
    )
