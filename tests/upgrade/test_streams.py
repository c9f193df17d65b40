"""Streams of an earlier version can be read, and continue."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.upgraded import Image, Upgraded, Written, upgraded, written_by_6ee0983
from tests.support.streams.streams import drained, iterator_of, records_of, shards_of

STREAMED = list(written_by_6ee0983().streams)
DAY_SECONDS = 24 * 60 * 60

Change = tuple[Image, Image]


@pytest.mark.parametrize("name", STREAMED)
def test_shards_and_records_keep_their_ids(opened: Upgraded, written: Written, name: str):
    stream = written.streams[name]
    arn = stream["StreamArn"]
    assert shards_of(opened.streams, arn) == stream["shards"]
    for shard_id, before in stream["records"].items():
        records, _ = drained(opened.streams, iterator_of(opened.streams, arn, shard_id))
        assert list(map(identity, records)) == before


def identity(record: dict[str, Any]) -> list[str]:
    return [record["eventID"], record["dynamodb"]["SequenceNumber"], record["eventName"]]


@pytest.mark.parametrize("name", STREAMED)
def test_records_have_the_images_of_each_change(opened: Upgraded, written: Written, name: str):
    stream = written.streams[name]
    records = records_of(opened.streams, stream["StreamArn"])
    by_key: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in sorted(records, key=lambda each: each["dynamodb"]["SequenceNumber"]):
        by_key[str(record["dynamodb"]["Keys"])].append(record)
    expected: defaultdict[str, list[Change]] = defaultdict(list)
    for old, new in written.changes[name]:
        expected[str(written.key(name, new or old or {}))].append((old, new))
    view_type = written.requests[name]["StreamSpecification"]["StreamViewType"]
    if view_type == "NEW_AND_OLD_IMAGES":
        assert {key: list(map(images, each)) for key, each in by_key.items()} == expected
    else:
        assert {key: len(each) for key, each in by_key.items()} == {
            key: len(each) for key, each in expected.items()
        }


def images(record: dict[str, Any]) -> Change:
    return record["dynamodb"].get("OldImage"), record["dynamodb"].get("NewImage")


def test_deletions_by_time_to_live_are_marked(opened: Upgraded, written: Written):
    for record in records_of(opened.streams, written.streams["Sessions"]["StreamArn"]):
        is_expired = record["eventName"] == "REMOVE"
        assert ("userIdentity" in record) == is_expired


def test_an_iterator_of_the_earlier_version_continues(opened: Upgraded, written: Written):
    for given in written.handed_out["iterators"]:
        records = opened.streams("GetRecords", {"ShardIterator": given["ShardIterator"]})["Records"]
        assert [each["dynamodb"]["SequenceNumber"] for each in records] == given["numbers"]


def test_a_consumer_continues_after_its_sequence_number(opened: Upgraded, written: Written):
    stream = written.streams["Readings"]
    arn = stream["StreamArn"]
    for shard_id, before in stream["records"].items():
        for at, (_, number, _) in enumerate(before):
            kind = "AFTER_SEQUENCE_NUMBER"
            iterator = iterator_of(opened.streams, arn, shard_id, kind, SequenceNumber=number)
            records, _ = drained(opened.streams, iterator)
            assert list(map(identity, records)) == before[at + 1 :]


def test_the_shard_of_a_split_partition_is_closed(written: Written):
    shards = {shard["ShardId"]: shard for shard in written.streams["Readings"]["shards"]}
    ended = [
        each for each in shards.values() if "EndingSequenceNumber" in each["SequenceNumberRange"]
    ]
    assert ended
    assert all(len(children(shards, shard)) == 2 for shard in ended)


def children(shards: dict[str, dict[str, Any]], shard: dict[str, Any]) -> list[str]:
    return [
        shard_id
        for shard_id, each in shards.items()
        if each.get("ParentShardId") == shard["ShardId"]
    ]


def test_a_stream_that_was_disabled_is_read_for_a_day(written: Written, directory: Path):
    before = written.disabled_stream
    arn = before["StreamArn"]
    with upgraded(written, directory, "--keep-streams-seconds", "0.05") as server:
        found = [images(record) for record in records_of(server.streams, arn)]
        assert sorted(found, key=str) == sorted(map(tuple, before["changes"]), key=str)
        server.clock.step(DAY_SECONDS)
        describing = {"StreamArn": arn}
        while server.streams.send("DescribeStream", describing).status == 200:
            pass
        refused = server.streams.refused("DescribeStream", describing)
        assert refused.type == "ResourceNotFoundException"


def test_new_changes_come_after_the_old_ones(written: Written, directory: Path):
    stream = written.streams["Readings"]
    before = {row[1] for rows in stream["records"].values() for row in rows}
    with upgraded(written, directory) as server:
        for item in written.items["Readings"]:
            server.wire("PutItem", {"TableName": "Readings", "Item": item | {"new": {"N": "1"}}})
        for shard in shards_of(server.streams, stream["StreamArn"]):
            shard_id = shard["ShardId"]
            iterator = iterator_of(server.streams, stream["StreamArn"], shard_id)
            records, _ = drained(server.streams, iterator)
            old = stream["records"][shard_id]
            assert list(map(identity, records[: len(old)])) == old
            numbers = [each["dynamodb"]["SequenceNumber"] for each in records]
            assert numbers == sorted(set(numbers))
            before |= set(numbers)
        assert len(before) == len(written.changes["Readings"]) + len(written.items["Readings"])
