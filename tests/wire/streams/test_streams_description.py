"""ListStreams and DescribeStream."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.support.clients.clients import STREAMS_TARGET_PREFIX, WireClient
from tests.support.clients.lanes import LanesClient
from tests.support.streams.streams import shards_of, streamed_table
from tests.support.tables.tables import key_schema, table, unique_name, wait_until_active

SHARD_ID = re.compile(r"shardId-\d{20}-[0-9a-f]{8}")
NO_SUCH_STREAM = (
    "arn:aws:dynamodb:us-east-1:000000000000:table/no-such-table/stream/2026-01-01T00:00:00.000"
)
NO_SUCH_SHARD = "shardId-00000000000000000001-0123abcd"

INVALID = "One or more parameter values were invalid"


@pytest.fixture(scope="module")
def streamed(wire: WireClient) -> Iterator[tuple[str, str]]:
    with streamed_table(wire, "pk:S", "sk:N", view_type="KEYS_ONLY") as made:
        yield made


def one_error(value: object, member: str, constraint: str) -> str:
    return (
        f"1 validation error detected: Value '{value}' at '{member}' "
        f"failed to satisfy constraint: {constraint}"
    )


def test_a_stream_is_described(
    wire: WireClient, streams_wire: WireClient, streamed: tuple[str, str]
):
    name, arn = streamed
    described = wire("DescribeTable", {"TableName": name})["Table"]
    description = streams_wire("DescribeStream", {"StreamArn": arn})["StreamDescription"]
    shards = description.pop("Shards")
    created = description.pop("CreationRequestDateTime")
    # Seconds since 1970; milliseconds would be above the bound.
    assert 1.7e9 < created < 1.7e11
    assert description == {
        "StreamArn": arn,
        "StreamLabel": described["LatestStreamLabel"],
        "StreamStatus": "ENABLED",
        "StreamViewType": "KEYS_ONLY",
        "TableName": name,
        "KeySchema": key_schema("pk", "sk"),
    }
    assert shards
    for shard in shards:
        assert SHARD_ID.fullmatch(shard["ShardId"])
        assert re.fullmatch(r"\d{21,40}", shard["SequenceNumberRange"]["StartingSequenceNumber"])
        assert "EndingSequenceNumber" not in shard["SequenceNumberRange"]
        assert "ParentShardId" not in shard


@pytest.mark.ours_alone("one set of tables for all regions and accounts")
def test_the_region_and_account_of_an_arn_are_ignored(
    streams_wire: WireClient, streamed: tuple[str, str]
):
    _, arn = streamed
    fields = arn.split(":", 5)
    other = ":".join((*fields[:3], "eu-west-1", "123456789012", fields[5]))
    description = streams_wire("DescribeStream", {"StreamArn": other})["StreamDescription"]
    assert description["StreamArn"] == arn


def test_shards_are_paged(streams_wire: WireClient, streamed: tuple[str, str]):
    _, arn = streamed
    shards = shards_of(streams_wire, arn)
    paged = []
    request: dict[str, object] = {"StreamArn": arn, "Limit": 1}
    while True:
        page = streams_wire("DescribeStream", request)["StreamDescription"]
        paged += page["Shards"]
        if "LastEvaluatedShardId" not in page:
            break
        assert page["LastEvaluatedShardId"] == page["Shards"][-1]["ShardId"]
        request["ExclusiveStartShardId"] = page["LastEvaluatedShardId"]
    assert paged == shards


def test_the_shard_named_as_start_need_not_exist(
    streams_wire: WireClient, streamed: tuple[str, str]
):
    _, arn = streamed
    for start, expected in (
        (NO_SUCH_SHARD, shards_of(streams_wire, arn)),
        ("x" * 28, []),
    ):
        request = {"StreamArn": arn, "ExclusiveStartShardId": start}
        assert streams_wire("DescribeStream", request)["StreamDescription"]["Shards"] == expected


def test_the_child_shards_of_an_open_shard_are_empty(
    streams_wire: WireClient, streamed: tuple[str, str]
):
    _, arn = streamed
    for shard_id in (shards_of(streams_wire, arn)[0]["ShardId"], NO_SUCH_SHARD):
        request = {
            "StreamArn": arn,
            "ShardFilter": {"Type": "CHILD_SHARDS", "ShardId": shard_id},
        }
        assert streams_wire("DescribeStream", request)["StreamDescription"]["Shards"] == []


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"Limit": 0}, one_error(0, "limit", "Member must have value greater than or equal to 1")),
        (
            {"Limit": 101},
            f"{INVALID}: Limit cannot be greater than the maximum: 100",
        ),
        (
            {"ExclusiveStartShardId": "x"},
            one_error(
                "x", "exclusiveStartShardId", "Member must have length greater than or equal to 28"
            ),
        ),
        (
            {"ShardFilter": {}},
            one_error("null", "shardFilter.type", "Member must be CHILD_SHARDS"),
        ),
        (
            {
                "ShardFilter": {"Type": "CHILD_SHARDS", "ShardId": NO_SUCH_SHARD},
                "ExclusiveStartShardId": NO_SUCH_SHARD,
            },
            "ShardFilter and ExclusiveStartShardId both should not be specified in the request.",
        ),
    ],
)
def test_a_wrong_request_to_describe_is_refused(
    streams_wire: WireClient, streamed: tuple[str, str], members: dict, message: str
):
    _, arn = streamed
    refusal = streams_wire.refused("DescribeStream", {"StreamArn": arn, **members})
    assert refusal == ("ValidationException", message)


@pytest.mark.differs_from_dynamodb_local("it answers no shards")
def test_a_filter_for_child_shards_must_name_the_parent(endpoint: str, streamed: tuple[str, str]):
    _, arn = streamed
    request = {"StreamArn": arn, "ShardFilter": {"Type": "CHILD_SHARDS"}}
    with closing(LanesClient(endpoint, STREAMS_TARGET_PREFIX)) as lanes:
        assert lanes.refused("DescribeStream", request) == (
            "ValidationException",
            one_error("null", "shardFilter.shardId", "Member must not be null"),
        )


@pytest.mark.differs_from_dynamodb_local("it takes an unknown type for none")
def test_an_unknown_shard_filter_is_refused(streams_wire: WireClient, streamed: tuple[str, str]):
    _, arn = streamed
    refusal = streams_wire.refused(
        "DescribeStream", {"StreamArn": arn, "ShardFilter": {"Type": "OTHER"}}
    )
    assert refusal.message == one_error(
        "OTHER", "shardFilter.type", "Member must satisfy enum value set: [CHILD_SHARDS]"
    )


@pytest.mark.parametrize(
    ("operation", "members"),
    [
        ("DescribeStream", {}),
        pytest.param(
            "GetShardIterator",
            {"ShardId": NO_SUCH_SHARD, "ShardIteratorType": "LATEST"},
            marks=pytest.mark.differs_from_dynamodb_local("it has other words here"),
        ),
    ],
)
def test_a_stream_that_is_missing_is_not_found(
    streams_wire: WireClient, operation: str, members: dict
):
    refusal = streams_wire.refused(operation, {"StreamArn": NO_SUCH_STREAM, **members})
    assert refusal == (
        "ResourceNotFoundException",
        f"Requested resource not found: Stream: {NO_SUCH_STREAM} not found",
    )


@pytest.mark.differs_from_dynamodb_local("it looks for any text as it is")
@pytest.mark.parametrize(
    ("arn", "message"),
    [
        (
            "short",
            one_error("short", "streamArn", "Member must have length greater than or equal to 37"),
        ),
        ("x" * 40, "Invalid StreamArn"),
        (NO_SUCH_STREAM.replace("/stream/", "/index/"), "Invalid StreamArn"),
        (NO_SUCH_STREAM.replace("dynamodb", "kinesis"), "Invalid StreamArn"),
    ],
)
def test_an_arn_that_is_not_a_streams_is_refused(streams_wire: WireClient, arn: str, message: str):
    refusal = streams_wire.refused("DescribeStream", {"StreamArn": arn})
    assert refusal == ("ValidationException", message)


def test_streams_are_listed_by_table(
    wire: WireClient, streams_wire: WireClient, streamed: tuple[str, str], simple: str
):
    name, arn = streamed
    described = wire("DescribeTable", {"TableName": name})["Table"]
    assert streams_wire("ListStreams", {"TableName": name}) == {
        "Streams": [
            {"StreamArn": arn, "TableName": name, "StreamLabel": described["LatestStreamLabel"]}
        ]
    }
    assert streams_wire("ListStreams", {"TableName": simple}) == {"Streams": []}
    assert streams_wire("ListStreams", {"TableName": unique_name()}) == {"Streams": []}


@pytest.mark.differs_from_dynamodb_local("its pages come in no order")
def test_streams_are_listed_in_pages(wire: WireClient, streams_wire: WireClient):
    with (
        streamed_table(wire, "pk:S") as (_, first),
        streamed_table(wire, "pk:S") as (_, second),
        streamed_table(wire, "pk:S") as (_, third),
    ):
        listed = []
        request: dict[str, object] = {"Limit": 2}
        while True:
            page = streams_wire("ListStreams", request)
            assert len(page["Streams"]) <= 2
            listed += [stream["StreamArn"] for stream in page["Streams"]]
            if "LastEvaluatedStreamArn" not in page:
                break
            assert page["LastEvaluatedStreamArn"] == listed[-1]
            request["ExclusiveStartStreamArn"] = listed[-1]
        assert {first, second, third} <= set(listed)
        assert len(listed) == len(set(listed))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"Limit": 0}, one_error(0, "limit", "Member must have value greater than or equal to 1")),
        (
            {"Limit": 101},
            f"{INVALID}: Limit cannot be greater than the maximum allowed size: 100",
        ),
    ],
)
def test_a_wrong_limit_to_list_is_refused(streams_wire: WireClient, members: dict, message: str):
    assert streams_wire.refused("ListStreams", members) == ("ValidationException", message)


@pytest.mark.differs_from_dynamodb_local("it looks for any text as it is")
def test_a_start_that_is_no_arn_is_refused(streams_wire: WireClient):
    refusal = streams_wire.refused("ListStreams", {"ExclusiveStartStreamArn": "x" * 40})
    assert refusal == ("ValidationException", "Invalid StreamArn")


def test_a_stream_that_was_disabled_and_enabled_again_stays_readable(
    wire: WireClient, streams_wire: WireClient
):
    with streamed_table(wire, "pk:S") as (name, first):
        wire("PutItem", {"TableName": name, "Item": {"pk": {"S": "a"}}})
        wire("UpdateTable", {"TableName": name, "StreamSpecification": {"StreamEnabled": False}})
        wait_until_active(wire, name)
        ended = streams_wire("DescribeStream", {"StreamArn": first})["StreamDescription"]
        assert ended["StreamStatus"] == "DISABLED"
        assert all(
            "EndingSequenceNumber" in shard["SequenceNumberRange"] for shard in ended["Shards"]
        )
        specification = {"StreamEnabled": True, "StreamViewType": "OLD_IMAGE"}
        wire("UpdateTable", {"TableName": name, "StreamSpecification": specification})
        second = wait_until_active(wire, name)["LatestStreamArn"]
        assert second != first
        description = streams_wire("DescribeStream", {"StreamArn": second})["StreamDescription"]
        assert description["StreamViewType"] == "OLD_IMAGE"
        assert description["StreamStatus"] == "ENABLED"
        again = streams_wire("DescribeStream", {"StreamArn": first})["StreamDescription"]
        assert again == ended
        listed = streams_wire("ListStreams", {"TableName": name})["Streams"]
        assert sorted(stream["StreamArn"] for stream in listed) == [first, second]


def test_the_stream_of_a_deleted_table_is_kept(wire: WireClient, streams_wire: WireClient):
    with streamed_table(wire, "pk:S") as (name, arn):
        pass
    listed = streams_wire("ListStreams", {"TableName": name})["Streams"]
    assert [stream["StreamArn"] for stream in listed] == [arn]
    description = streams_wire("DescribeStream", {"StreamArn": arn})["StreamDescription"]
    assert description["StreamStatus"] == "DISABLED"


def test_operations_of_streams_need_the_target_of_dynamodb_streams(
    wire: WireClient, streams_wire: WireClient
):
    assert wire.refused("ListStreams", {}).type == "UnknownOperationException"
    assert streams_wire.refused("ListTables", {}).type == "UnknownOperationException"


def test_a_table_without_a_stream_shows_none(wire: WireClient):
    with table(wire, "pk:S") as name:
        described = wire("DescribeTable", {"TableName": name})["Table"]
    assert not {"LatestStreamArn", "LatestStreamLabel", "StreamSpecification"} & described.keys()
