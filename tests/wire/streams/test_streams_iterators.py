"""GetShardIterator: positions in a shard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.support.clients.clients import WireClient
from tests.support.streams.streams import drained, iterator_of, shards_of, streamed_table

INVALID = "One or more parameter values were invalid"


class Written(NamedTuple):
    """A shard with four records, all of one item."""

    arn: str
    shard_id: str
    starting: str
    numbers: list[str]


@pytest.fixture(scope="module")
def written(wire: WireClient, streams_wire: WireClient) -> Iterator[Written]:
    with streamed_table(wire, "pk:S") as (name, arn):
        for value in "1234":
            wire("PutItem", {"TableName": name, "Item": {"pk": {"S": "a"}, "n": {"N": value}}})
        for shard in shards_of(streams_wire, arn):
            records, _ = drained(streams_wire, iterator_of(streams_wire, arn, shard["ShardId"]))
            if records:
                numbers = [record["dynamodb"]["SequenceNumber"] for record in records]
                starting = shard["SequenceNumberRange"]["StartingSequenceNumber"]
                yield Written(arn, shard["ShardId"], starting, numbers)


def values(streams_wire: WireClient, iterator: str) -> str:
    records, _ = drained(streams_wire, iterator)
    return "".join(record["dynamodb"]["NewImage"]["n"]["N"] for record in records)


def test_an_iterator_at_trim_horizon_reads_all_records(streams_wire: WireClient, written: Written):
    iterator = iterator_of(streams_wire, written.arn, written.shard_id)
    assert values(streams_wire, iterator) == "1234"


def test_sequence_numbers_rise_from_the_starting_number_of_the_shard(written: Written):
    assert written.numbers == sorted(written.numbers)
    assert len(set(written.numbers)) == 4
    assert written.starting <= written.numbers[0]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("AT_SEQUENCE_NUMBER", ["1234", "234", "34", "4"]),
        ("AFTER_SEQUENCE_NUMBER", ["234", "34", "4", ""]),
    ],
)
def test_an_iterator_at_a_sequence_number_reads_from_its_record(
    streams_wire: WireClient, written: Written, kind: str, expected: list[str]
):
    read = [
        values(
            streams_wire,
            iterator_of(streams_wire, written.arn, written.shard_id, kind, SequenceNumber=number),
        )
        for number in written.numbers
    ]
    assert read == expected


def test_an_iterator_at_latest_reads_only_new_records(wire: WireClient, streams_wire: WireClient):
    with streamed_table(wire, "pk:S") as (name, arn):
        wire("PutItem", {"TableName": name, "Item": {"pk": {"S": "a"}, "n": {"N": "1"}}})
        iterators = [
            iterator_of(streams_wire, arn, shard["ShardId"], "LATEST")
            for shard in shards_of(streams_wire, arn)
        ]
        wire("PutItem", {"TableName": name, "Item": {"pk": {"S": "a"}, "n": {"N": "2"}}})
        assert [values(streams_wire, iterator) for iterator in iterators].count("2") == 1


@pytest.mark.differs_from_dynamodb_local("it knows no times, and answers 500")
def test_an_iterator_at_a_timestamp_reads_later_records(streams_wire: WireClient, written: Written):
    iterator = iterator_of(
        streams_wire, written.arn, written.shard_id, "AT_TIMESTAMP", Timestamp=1_500_000_000.5
    )
    assert values(streams_wire, iterator) == "1234"


def asked(written: Written, kind: str, **members: Any) -> dict[str, Any]:
    return {
        "StreamArn": written.arn,
        "ShardId": written.shard_id,
        "ShardIteratorType": kind,
        **members,
    }


def test_a_sequence_number_is_refused_for_types_without_one(
    streams_wire: WireClient, written: Written
):
    for kind in ("TRIM_HORIZON", "LATEST"):
        request = asked(written, kind, SequenceNumber=written.numbers[0])
        assert streams_wire.refused("GetShardIterator", request) == (
            "ValidationException",
            f"{INVALID}: SequenceNumber should not be passed for this iterator type",
        )


@pytest.mark.parametrize("kind", ["AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"])
def test_a_missing_sequence_number_is_refused_for_types_that_need_one(
    streams_wire: WireClient, written: Written, kind: str
):
    assert streams_wire.refused("GetShardIterator", asked(written, kind)) == (
        "ValidationException",
        f"{INVALID}: Invalid SequenceNumber",
    )


@pytest.mark.differs_from_dynamodb_local("it answers 500")
def test_an_invalid_sequence_number_is_refused(streams_wire: WireClient, written: Written):
    request = asked(written, "AT_SEQUENCE_NUMBER", SequenceNumber="x" * 21)
    assert streams_wire.refused("GetShardIterator", request) == (
        "ValidationException",
        f"{INVALID}: Invalid SequenceNumber",
    )


@pytest.mark.differs_from_dynamodb_local("it answers 500 to numbers behind the last")
@pytest.mark.parametrize("kind", ["AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"])
def test_a_sequence_number_outside_of_the_shard_is_refused(
    streams_wire: WireClient, written: Written, kind: str
):
    before = str(int(written.starting) - 1).zfill(21)
    behind = str(int(written.numbers[-1]) + 1).zfill(21)
    other = str(int(written.numbers[-1]) + (1 << 40)).zfill(21)
    for number in ("0" * 21, before, behind, other, "1".zfill(40)):
        request = asked(written, kind, SequenceNumber=number)
        assert streams_wire.refused("GetShardIterator", request) == (
            "ValidationException",
            "Invalid SequenceNumber for the shard",
        )


def test_the_length_of_a_sequence_number_is_checked(streams_wire: WireClient, written: Written):
    for number, bound in (
        ("1", "greater than or equal to 21"),
        ("1" * 41, "less than or equal to 40"),
    ):
        request = asked(written, "AT_SEQUENCE_NUMBER", SequenceNumber=number)
        assert streams_wire.refused("GetShardIterator", request) == (
            "ValidationException",
            (
                f"1 validation error detected: Value '{number}' at 'sequenceNumber' failed to "
                f"satisfy constraint: Member must have length {bound}"
            ),
        )


def test_a_shard_that_is_missing_is_not_found(streams_wire: WireClient, written: Written):
    request = asked(written, "LATEST") | {"ShardId": "shardId-00000000000000000001-0123abcd"}
    assert streams_wire.refused("GetShardIterator", request) == (
        "ResourceNotFoundException",
        "Shard does not exist",
    )


@pytest.mark.differs_from_dynamodb_local("it knows no times, and answers 500")
@pytest.mark.parametrize(
    ("kind", "members", "fault"),
    [
        ("AT_TIMESTAMP", {}, "Invalid Timestamp"),
        ("AT_TIMESTAMP", {"Timestamp": 9e9}, "Timestamp should not be in the future"),
        (
            "AT_TIMESTAMP",
            {"Timestamp": 1, "SequenceNumber": "1" * 21},
            "SequenceNumber should not be passed for this iterator type",
        ),
        ("LATEST", {"Timestamp": 1}, "Timestamp should not be passed for this iterator type"),
    ],
)
def test_a_wrong_time_is_refused(
    streams_wire: WireClient, written: Written, kind: str, members: dict, fault: str
):
    assert streams_wire.refused("GetShardIterator", asked(written, kind, **members)) == (
        "ValidationException",
        f"{INVALID}: {fault}",
    )


@pytest.mark.differs_from_dynamodb_local("it knows no times, and answers 500")
@pytest.mark.parametrize("time", [10**400, -(10**400), -1])
def test_a_timestamp_of_any_size_is_accepted(streams_wire: WireClient, written: Written, time: int):
    answer = streams_wire.send("GetShardIterator", asked(written, "AT_TIMESTAMP", Timestamp=time))
    assert answer.status == (400 if time > 0 else 200)


@pytest.mark.differs_from_dynamodb_local("it answers 500")
def test_missing_and_unknown_members_are_reported_together(streams_wire: WireClient):
    refusal = streams_wire.refused("GetShardIterator", {"ShardIteratorType": "OTHER"})
    assert refusal.message == (
        "3 validation errors detected: Value null at 'streamArn' failed to satisfy constraint: "
        "Member must not be null; Value null at 'shardId' failed to satisfy constraint: Member "
        "must not be null; Value 'OTHER' at 'shardIteratorType' failed to satisfy constraint: "
        "Member must satisfy enum value set: [TRIM_HORIZON, LATEST, AT_SEQUENCE_NUMBER, "
        "AFTER_SEQUENCE_NUMBER, AT_TIMESTAMP]"
    )


@pytest.mark.differs_from_dynamodb_local("it answers 500")
def test_an_invalid_time_is_not_decoded(streams_wire: WireClient, written: Written):
    request = asked(written, "AT_TIMESTAMP", Timestamp="2026-01-01")
    assert streams_wire.refused("GetShardIterator", request) == (
        "SerializationException",
        "STRING_VALUE cannot be converted to Date",
    )
