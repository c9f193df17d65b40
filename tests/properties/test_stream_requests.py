"""Any request to a stream gets a success or one of DynamoDB's errors, never a 5xx."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.clients.clients import WireClient
from tests.support.streams.streams import iterator_of, records_of, shards_of, streamed_table

OTHERS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=60),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.sampled_from(("Type", "ShardId", "x")), st.text(max_size=40), max_size=2),
)


class Known(NamedTuple):
    """The ARN, shard ids and iterators of an existing stream."""

    arns: list[str]
    shard_ids: list[str]
    numbers: list[str]
    iterators: list[str]


@pytest.fixture(scope="module")
def known(wire: WireClient, streams_wire: WireClient) -> Iterator[Known]:
    with streamed_table(wire, "pk:S") as (name, arn):
        for pk in "abcde":
            wire("PutItem", {"TableName": name, "Item": {"pk": {"S": pk}}})
        shards = shards_of(streams_wire, arn)
        numbers = [record["dynamodb"]["SequenceNumber"] for record in records_of(streams_wire, arn)]
        numbers += [shard["SequenceNumberRange"]["StartingSequenceNumber"] for shard in shards]
        iterators = [
            iterator_of(streams_wire, arn, shard["ShardId"], kind)
            for shard in shards
            for kind in ("TRIM_HORIZON", "LATEST")
        ]
        yield Known(
            [arn, arn.replace(name, "other-table"), arn[:-1]],
            [shard["ShardId"] for shard in shards] + ["x" * 30],
            [*numbers, "0" * 21, "9" * 21, "1" * 40],
            iterators,
        )


def members_of(known: Known) -> dict[str, st.SearchStrategy[Any]]:
    """Members of all operations with mostly meaningful values."""
    shard_ids = st.sampled_from(known.shard_ids)
    sensible: dict[str, st.SearchStrategy[Any]] = {
        "StreamArn": st.sampled_from(known.arns),
        "ExclusiveStartStreamArn": st.sampled_from(known.arns),
        "TableName": st.sampled_from(("other-table", "a")),
        "ShardId": shard_ids,
        "ExclusiveStartShardId": shard_ids,
        "ShardFilter": st.fixed_dictionaries(
            {}, optional={"Type": st.just("CHILD_SHARDS"), "ShardId": shard_ids}
        ),
        "ShardIteratorType": st.sampled_from(
            (
                "TRIM_HORIZON",
                "LATEST",
                "AT_SEQUENCE_NUMBER",
                "AFTER_SEQUENCE_NUMBER",
                "AT_TIMESTAMP",
            )
        ),
        "SequenceNumber": st.sampled_from(known.numbers),
        "Timestamp": st.one_of(st.floats(-1e18, 1e18), st.integers(0, 1 << 31)),
        "ShardIterator": st.sampled_from(known.iterators),
        "Limit": st.integers(0, 1_001),
    }
    return {
        name: st.integers(0, 15).flatmap(lambda odd, values=values: values if odd else OTHERS)
        for name, values in sensible.items()
    }


MEMBERS = {
    "ListStreams": (set(), {"TableName", "ExclusiveStartStreamArn", "Limit"}),
    "DescribeStream": ({"StreamArn"}, {"Limit", "ExclusiveStartShardId", "ShardFilter"}),
    "GetShardIterator": (
        {"StreamArn", "ShardId", "ShardIteratorType"},
        {"SequenceNumber", "Timestamp"},
    ),
    "GetRecords": ({"ShardIterator"}, {"Limit"}),
}


@pytest.mark.differs_from_dynamodb_local("it answers 500 to members of a wrong type")
@pytest.mark.parametrize("operation", sorted(MEMBERS))
@settings(
    deadline=None,
    max_examples=300,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_a_stream_request_never_gives_a_server_error(
    streams_wire: WireClient, known: Known, operation: str, data: st.DataObject
):
    values = members_of(known)
    usual, optional = MEMBERS[operation]
    body = data.draw(
        st.fixed_dictionaries(
            {name: values[name] for name in sorted(usual)},
            optional={name: values[name] for name in sorted(optional)},
        )
    )
    answer = streams_wire.send(operation, body)
    assert answer.status in (200, 400), (body, answer.body)
    if answer.status == 400:
        assert answer.json["__type"].startswith("com.amazon")
