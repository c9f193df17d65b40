"""On a virtual clock the effects of a day are visible at once, and time never goes back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients.clients import STREAMS_TARGET_PREFIX, WireClient, boto3_client, refusal
from tests.support.servers.admin import ServerClock, server_with_clock
from tests.support.servers.server import ServerDidNotStart, running_server
from tests.support.streams.streams import iterator_of, records_of, shards_of
from tests.support.tables.tables import definition, table

pytestmark = pytest.mark.ours_alone("no other server has a clock to set")

# A time in the distant past, so that the test can't confuse it with real time.
START = "2001-02-03T04:05:06.789Z"
START_EPOCH_SECONDS = 981_173_106.789
HOUR_SECONDS = 3_600.0
SPEED = 10_000
DEADLINE_SECONDS = 20
SPECIFICATION = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


class Served:
    """A server, its clients and its clock."""

    def __init__(self, wire: WireClient, streams: WireClient, clock: ServerClock) -> None:
        self.wire = wire
        self.streams = streams
        self.clock = clock

    def streamed(self, name: str = "followed") -> str:
        """Create a table with a stream; return the stream's ARN."""
        request = definition("pk:S", name=name, StreamSpecification=SPECIFICATION)
        arn: str = self.wire("CreateTable", request)["TableDescription"]["LatestStreamArn"]
        return arn

    def put(self, key: str, name: str = "followed") -> None:
        self.wire("PutItem", {"TableName": name, "Item": {"pk": {"S": key}}})

    def keys(self, arn: str) -> set[str]:
        """The keys of all readable records."""
        records = records_of(self.streams, arn)
        return {record["dynamodb"]["Keys"]["pk"]["S"] for record in records}

    def keys_while_trimmed(self, arn: str) -> set[str] | None:
        """The readable keys; None if records were trimmed between an iterator and its use."""
        found: set[str] = set()
        for shard in shards_of(self.streams, arn):
            iterator = iterator_of(self.streams, arn, shard["ShardId"])
            answer = self.streams.send("GetRecords", {"ShardIterator": iterator})
            if answer.status != 200:
                assert refusal(answer).type == "TrimmedDataAccessException"
                return None
            found |= {record["dynamodb"]["Keys"]["pk"]["S"] for record in answer.json["Records"]}
        return found


@pytest.fixture
def served() -> Iterator[Served]:
    with (
        server_with_clock(START, "--copy-messages") as (server, clock),
        closing(WireClient(server.endpoint)) as wire,
        closing(WireClient(server.endpoint, STREAMS_TARGET_PREFIX)) as streams,
    ):
        yield Served(wire, streams, clock)


def test_stream_records_are_trimmed_after_a_day(served: Served):
    arn = served.streamed()
    for key in "abcdefgh":
        served.put(key)
    served.clock.step(23 * HOUR_SECONDS)
    served.put("later")
    assert served.keys(arn) == {*"abcdefgh", "later"}
    served.clock.step(2 * HOUR_SECONDS)
    # The deadline is much shorter than the interval of the server's periodic work.
    deadline = time.monotonic() + DEADLINE_SECONDS
    while served.keys_while_trimmed(arn) != {"later"}:
        assert time.monotonic() < deadline
    # Shards with records were rolled meanwhile, so they have children.
    parents = {shard.get("ParentShardId") for shard in shards_of(served.streams, arn)}
    assert len(parents) > 1


def test_a_stream_is_disabled_and_enabled_again_on_a_stopped_clock(served: Served):
    first = served.streamed()
    served.put("a")
    disabled = {"TableName": "followed", "StreamSpecification": {"StreamEnabled": False}}
    served.wire("UpdateTable", disabled)
    served.put("between")
    enabled = {"TableName": "followed", "StreamSpecification": SPECIFICATION}
    answer = served.wire("UpdateTable", enabled)["TableDescription"]
    served.put("b")
    assert answer["LatestStreamArn"] > first
    assert (served.keys(first), served.keys(answer["LatestStreamArn"])) == ({"a"}, {"b"})


def test_an_iterator_expires_after_15_minutes(served: Served):
    arn = served.streamed()
    shard, *_ = shards_of(served.streams, arn)
    request = {"ShardIterator": iterator_of(served.streams, arn, shard["ShardId"])}
    served.clock.step(15 * 60 - 1)
    assert served.streams("GetRecords", request)["Records"] == []
    served.clock.step(2)
    refused = served.streams.refused("GetRecords", request)
    assert refused.type == "ExpiredIteratorException"


def test_described_times_are_those_of_the_virtual_clock(served: Served):
    arn = served.streamed()
    assert arn.endswith("/stream/2001-02-03T04:05:06.789")
    described = served.wire("DescribeTable", {"TableName": "followed"})["Table"]
    assert described["CreationDateTime"] == START_EPOCH_SECONDS
    assert described["BillingModeSummary"]["LastUpdateToPayPerRequestDateTime"] == (
        START_EPOCH_SECONDS
    )
    stream = served.streams("DescribeStream", {"StreamArn": arn})["StreamDescription"]
    assert stream["CreationRequestDateTime"] == START_EPOCH_SECONDS
    served.clock.step(60)
    served.put("a")
    (record,) = records_of(served.streams, arn)
    shown = record["dynamodb"]["ApproximateCreationDateTime"]
    assert START_EPOCH_SECONDS + 59 <= shown <= START_EPOCH_SECONDS + 60


def test_decreases_are_counted_by_days_of_the_virtual_clock(served: Served):
    capacity = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": units(10)}
    with table(served.wire, "pk:S", **capacity) as name:

        def decreased(to: int) -> dict[str, Any]:
            served.wire("UpdateTable", {"TableName": name, "ProvisionedThroughput": units(to)})
            return described()

        def described() -> dict[str, Any]:
            throughput: dict[str, Any] = served.wire("DescribeTable", {"TableName": name})["Table"][
                "ProvisionedThroughput"
            ]
            return throughput

        assert decreased(9)["NumberOfDecreasesToday"] == 1
        assert decreased(8)["NumberOfDecreasesToday"] == 2
        now = served.clock.step(24 * HOUR_SECONDS)
        assert described()["NumberOfDecreasesToday"] == 0
        after = decreased(7)
        assert after["NumberOfDecreasesToday"] == 1
        assert after["LastDecreaseDateTime"] == pytest.approx(now, abs=0.001)


def units(count: int) -> dict[str, int]:
    return {"ReadCapacityUnits": count, "WriteCapacityUnits": count}


def test_clients_get_real_time_in_headers():
    with (
        server_with_clock("2090-01-01") as (server, _),
        closing(boto3_client(server.endpoint)) as client,
    ):
        answer = client.list_tables()
    # The header Date must have real time, because clients sign their requests with it.
    shown = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    assert shown is None or "2090" not in shown


@pytest.mark.parametrize("killed", [False, True])
def test_virtual_time_does_not_go_back_when_the_server_is_killed(tmp_path: Path, killed: bool):
    with (
        server_with_clock(START, data_dir=tmp_path) as (server, clock),
        closing(WireClient(server.endpoint)) as wire,
        closing(WireClient(server.endpoint, STREAMS_TARGET_PREFIX)) as streams,
    ):
        served = Served(wire, streams, clock)
        arn = served.streamed()
        first = clock.set(speed=SPEED)
        # Run for longer than the server stores the limit of the clock ahead.
        while clock.now() < first + 4 * SPEED:
            served.put("a")
        told = clock.now()
        records = records_of(streams, arn)
        if killed:
            server.kill()
        else:
            assert server.stop() == 0
    latest = max(record["dynamodb"]["ApproximateCreationDateTime"] for record in records)
    assert START_EPOCH_SECONDS < latest <= told
    with server_with_clock(START, data_dir=tmp_path) as (server, clock):
        began = server.announcement.partition("Virtual clock at ")[2]
        assert began.partition("\n")[0].endswith(f", running at speed {SPEED}")
        # The message has the time at which the clock continued.
        assert began >= iso(told)
        assert clock.now() >= told


def iso(epoch_seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(epoch_seconds))


def test_a_start_with_real_time_is_refused_if_time_would_go_back(tmp_path: Path):
    with server_with_clock("2090-01-01", data_dir=tmp_path):
        pass
    with (
        pytest.raises(ServerDidNotStart, match=r"is at 2090-01-01T00:00:00\.000Z.*--virtual"),
        running_server(data_dir=tmp_path),
    ):
        pass
    with server_with_clock("now", data_dir=tmp_path) as (_, clock):
        assert clock.now() == 3_786_912_000
