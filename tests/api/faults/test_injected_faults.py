"""Injected faults as boto3 sees them, with and without retries."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import closing
from time import monotonic
from typing import Any
from zlib import crc32

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import (
    ChecksumError,
    ClientError,
    ConnectionClosedError,
    ResponseStreamingError,
)

import dynactor.testing
from tests.support.clients.clients import WireClient
from tests.support.servers.admin import admin_port, ask
from tests.support.servers.server import Server
from tests.support.tables.tables import definition

KEY = {"pk": {"S": "1"}}
ONE_ATTEMPT = Config(retries={"total_max_attempts": 1})


class Suite:
    """A server with a table, and boto3 clients with and without retries."""

    def __init__(self, server: dynactor.testing.Server) -> None:
        self.server = server
        self.faults = server.faults
        self.client = boto3.client("dynamodb", **server.client_arguments)
        self.once = boto3.client("dynamodb", **server.client_arguments, config=ONE_ATTEMPT)

    def begin(self) -> None:
        self.server.reset()
        self.client.create_table(**definition("pk:S", name="Thread"))

    def add_one(self, client: Any, table: str = "Thread") -> Any:
        """Increment a counter, which shows if a request is executed twice."""
        return client.update_item(
            TableName=table,
            Key=KEY,
            UpdateExpression="ADD Visits :one",
            ExpressionAttributeValues={":one": {"N": "1"}},
            ReturnValues="UPDATED_NEW",
        )

    def visits(self) -> int:
        item = self.client.get_item(TableName="Thread", Key=KEY).get("Item", {})
        return int(item.get("Visits", {"N": "0"})["N"])

    def close(self) -> None:
        self.client.close()
        self.once.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[Suite]:
    with dynactor.testing.server() as server, closing(Suite(server)) as suite:
        yield suite


@pytest.fixture
def suite(shared: Suite) -> Suite:
    shared.begin()
    return shared


def code(error: pytest.ExceptionInfo[ClientError]) -> str:
    found: str = error.value.response["Error"]["Code"]
    return found


@pytest.mark.parametrize(
    ("limit", "name", "reason"),
    [
        (None, "ThrottlingException", "TableWriteKeyRangeThroughputExceeded"),
        (
            "ProvisionedThroughputExceeded",
            "ThrottlingException",
            "TableWriteProvisionedThroughputExceeded",
        ),
        ("AccountLimitExceeded", "RequestLimitExceeded", "TableWriteAccountLimitExceeded"),
        (
            "MaxOnDemandThroughputExceeded",
            "ThrottlingException",
            "TableWriteMaxOnDemandThroughputExceeded",
        ),
    ],
)
def test_a_write_is_throttled_with_a_reason(
    suite: Suite, limit: str | None, name: str, reason: str
):
    suite.faults.add("throttling", operation="UpdateItem", **({"limit": limit} if limit else {}))
    with pytest.raises(ClientError) as raised:
        suite.add_one(suite.once)
    assert code(raised) == name
    reasons = (
        raised.value.response.get("ThrottlingReasons")
        or (raised.value.response["throttlingReasons"])
    )
    assert [each["reason"] for each in reasons] == [reason]
    assert suite.visits() == 0


@pytest.mark.parametrize(
    ("fault", "name", "status"),
    [
        ("internal-server-error", "InternalServerError", 500),
        ("service-unavailable", "ServiceUnavailable", 503),
        ("transaction-conflict", "TransactionConflictException", 400),
    ],
)
def test_a_refused_write_is_not_executed(suite: Suite, fault: str, name: str, status: int):
    suite.faults.add(fault, operation="UpdateItem")
    with pytest.raises(ClientError) as raised:
        suite.add_one(suite.once)
    assert code(raised) == name
    assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
    assert suite.visits() == 0


@pytest.mark.parametrize(
    "fault",
    [
        "throttling",
        "internal-server-error",
        "service-unavailable",
        "cut-before",
    ],
)
def test_boto3_retries_and_writes_once(suite: Suite, fault: str):
    rule = suite.faults.add(fault, operation="UpdateItem", next=2)
    assert suite.add_one(suite.client)["Attributes"]["Visits"] == {"N": "1"}
    assert suite.faults.injected(rule) == 2
    assert suite.visits() == 1


@pytest.mark.parametrize("fault", ["cut-after", "cut-middle", "wrong-crc32"])
def test_a_write_is_executed_although_its_answer_is_lost(suite: Suite, fault: str):
    suite.faults.add(fault, operation="UpdateItem", next=1)
    # boto3 retries the update, which has no client token, so the update is applied twice.
    assert suite.add_one(suite.client)["Attributes"]["Visits"] == {"N": "2"}


@pytest.mark.parametrize("fault", ["cut-after", "cut-middle"])
def test_without_retries_a_closed_connection_raises_the_clients_error(suite: Suite, fault: str):
    suite.faults.add(fault, operation="UpdateItem", next=1)
    with pytest.raises((ConnectionClosedError, ResponseStreamingError, ChecksumError)):
        suite.add_one(suite.once)
    assert suite.visits() == 1


@pytest.mark.parametrize("fault", ["cut-after", "cut-middle", "wrong-crc32", "cut-before"])
def test_a_retried_transaction_is_executed_once_because_of_its_token(suite: Suite, fault: str):
    rule = suite.faults.add(fault, operation="TransactWriteItems", next=2)
    update = {
        "TableName": "Thread",
        "Key": KEY,
        "UpdateExpression": "ADD Visits :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    suite.client.transact_write_items(TransactItems=[{"Update": update}])
    assert suite.faults.injected(rule) == 2
    assert suite.visits() == 1


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("transaction-conflict", "TransactionConflict"), ("throttling", "ThrottlingError")],
)
def test_an_injected_conflict_cancels_a_transaction_at_its_first_action(
    suite: Suite, fault: str, reason: str
):
    suite.faults.add(fault, table="Thread")
    puts = [{"Put": {"TableName": "Thread", "Item": {"pk": {"S": key}}}} for key in "ab"]
    with pytest.raises(ClientError) as raised:
        suite.once.transact_write_items(TransactItems=puts)
    assert code(raised) == "TransactionCanceledException"
    reasons = raised.value.response["CancellationReasons"]
    assert [each["Code"] for each in reasons] == [reason, "None"]


def test_a_part_of_a_batch_is_returned_as_unprocessed(suite: Suite):
    suite.faults.add("unprocessed", next=2)
    requests = [{"PutRequest": {"Item": {"pk": {"S": str(number)}}}} for number in range(5)]
    left = suite.once.batch_write_item(RequestItems={"Thread": requests})["UnprocessedItems"]
    assert left == {"Thread": requests[3:]}
    assert suite.client.scan(TableName="Thread")["Count"] == 3
    keys = [{"pk": {"S": str(number)}} for number in range(3)]
    answer = suite.once.batch_get_item(RequestItems={"Thread": {"Keys": keys}})
    assert answer["UnprocessedKeys"] == {"Thread": {"Keys": keys[2:]}}
    assert len(answer["Responses"]["Thread"]) == 2
    # boto3's batch writer repeats unprocessed items.
    suite.faults.add("unprocessed")
    table = boto3.resource("dynamodb", **suite.server.client_arguments).Table("Thread")
    with table.batch_writer() as batch:
        for number in range(30):
            batch.put_item(Item={"pk": str(number)})
    assert suite.client.scan(TableName="Thread")["Count"] == 30


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ("limit-exceeded", "LimitExceededException"),
        ("expired-iterator", "ExpiredIteratorException"),
    ],
)
def test_a_fault_is_injected_into_get_records(suite: Suite, fault: str, name: str):
    view = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    suite.client.update_table(TableName="Thread", StreamSpecification=view)
    with closing(
        boto3.client("dynamodbstreams", **suite.server.client_arguments, config=ONE_ATTEMPT)
    ) as streams:
        [stream] = streams.list_streams(TableName="Thread")["Streams"]
        described = streams.describe_stream(StreamArn=stream["StreamArn"])["StreamDescription"]
        iterator = streams.get_shard_iterator(
            StreamArn=stream["StreamArn"],
            ShardId=described["Shards"][0]["ShardId"],
            ShardIteratorType="TRIM_HORIZON",
        )["ShardIterator"]
        suite.faults.add(fault, table="Another")
        assert streams.get_records(ShardIterator=iterator)["Records"] == []
        suite.faults.add(fault, table="Thread")
        with pytest.raises(ClientError) as raised:
            streams.get_records(ShardIterator=iterator)
    assert code(raised) == name


@pytest.mark.parametrize(
    ("delay", "least"),
    [
        ({"seconds": 0.3}, 0.3),
        ({"from_seconds": 0.2, "to_seconds": 0.3}, 0.2),
        ({"median_seconds": 0.3, "p99_seconds": 0.3}, 0.3),
    ],
)
def test_an_answer_is_delayed(suite: Suite, delay: dict[str, float], least: float):
    suite.faults.add("delay", operation="UpdateItem", **delay)
    began = monotonic()
    suite.add_one(suite.once)
    assert monotonic() - began >= least


def test_a_delay_can_be_combined_with_another_fault(suite: Suite):
    suite.faults.add("delay", seconds=0.2)
    suite.faults.add("throttling")
    began = monotonic()
    with pytest.raises(ClientError):
        suite.add_one(suite.once)
    assert monotonic() - began >= 0.2


def failures(suite: Suite, attempts: int) -> list[bool]:
    """Update this many times; return for each update whether it failed."""
    refused = []
    for _ in range(attempts):
        try:
            suite.add_one(suite.once)
        except ClientError:
            refused.append(True)
        else:
            refused.append(False)
    return refused


def test_with_the_same_seed_the_same_requests_fail(suite: Suite):
    seen = []
    for seed in (7, 7, 8):
        rule = suite.faults.add("internal-server-error", share=0.5, seed=seed)
        seen.append(failures(suite, 20))
        suite.faults.remove(rule)
    assert seen[0] == seen[1] != seen[2]
    assert 0 < sum(seen[0]) < 20


def test_some_requests_succeed_and_a_number_of_later_ones_fail(suite: Suite):
    rule = suite.faults.add("throttling", after=2, next=3)
    assert failures(suite, 8) == [False] * 2 + [True] * 3 + [False] * 3
    [state] = suite.faults.rules
    assert (state["id"], state["matched"], state["injected"]) == (rule, 8, 3)


def test_a_rule_can_end_at_a_time_of_the_servers_clock(suite: Suite):
    suite.faults.add("throttling", until=suite.server.clock.now + 3600)
    assert failures(suite, 2) == [True, True]
    suite.server.clock.step(3601)
    assert failures(suite, 2) == [False, False]


def test_a_rule_can_be_limited_to_a_table_index_or_access_key(suite: Suite):
    suite.client.create_table(**definition("pk:S", name="Another"))
    suite.faults.add("throttling", table="Another")
    suite.add_one(suite.once)
    with pytest.raises(ClientError):
        suite.add_one(suite.once, "Another")
    with pytest.raises(ClientError):
        suite.once.execute_statement(Statement='SELECT * FROM "Another"')
    suite.faults.clear()
    suite.faults.add("internal-server-error", index="by-kind", operation=["Query", "Scan"])
    suite.once.scan(TableName="Thread")
    with pytest.raises(ClientError) as raised:
        suite.once.scan(TableName="Thread", IndexName="by-kind")
    assert code(raised) == "InternalServerError"
    suite.faults.clear()
    suite.faults.add("throttling", key_id="another")
    suite.add_one(suite.once)
    arguments = suite.server.client_arguments | {"aws_access_key_id": "another"}
    with closing(boto3.client("dynamodb", **arguments, config=ONE_ATTEMPT)) as another:
        with pytest.raises(ClientError) as raised:
            suite.add_one(another)
        assert code(raised) == "ThrottlingException"


def test_faults_are_counted_in_a_metric(suite: Suite):
    suite.faults.add("throttling", operation="UpdateItem", next=2)
    failures(suite, 3)
    metrics = ask(int(suite.server.admin_endpoint.rpartition(":")[2]), "/metrics").body.decode()
    [line] = [
        line
        for line in metrics.splitlines()
        if line.startswith("dynactor_injected_faults_total")
        and 'fault="throttling"' in line
        and 'operation="UpdateItem"' in line
    ]
    assert float(line.split()[-1]) >= 2


def test_a_reset_removes_all_rules(suite: Suite):
    suite.faults.add("throttling")
    suite.begin()
    assert suite.faults.rules == []
    suite.add_one(suite.once)


def test_an_invalid_request_is_refused_without_an_injected_fault(suite: Suite):
    suite.faults.add("throttling")
    with closing(WireClient(suite.server.endpoint)) as call:
        assert call.refused("GetItem", {"TableName": "Thread"}).type == "ValidationException"
        unsigned = call.send("ListTables", {}, {"Authorization": ""})
        assert b"MissingAuthenticationToken" in unsigned.body
    assert [each["matched"] for each in suite.faults.rules] == [0]


@pytest.mark.parametrize(
    "rule",
    [
        {"fault": "unprocessed", "operation": "PutItem"},
        {"fault": "throttling", "operation": "PutItems"},
        {"fault": "throttling", "seconds": 1},
        {"fault": "throttling", "share": 0},
        {"fault": "throttling", "until": "tomorrow"},
        {"fault": "delay"},
        {"fault": "delay", "seconds": 1, "median_seconds": 1, "p99_seconds": 2},
        {"fault": "delay", "from_seconds": 2, "to_seconds": 1},
        {"fault": "wrong-crc32", "limit": "AccountLimitExceeded"},
        {"fault": "no fault"},
        {"fault": "throttling", "tables": "Thread"},
    ],
)
def test_a_rule_that_can_apply_to_no_request_is_refused(suite: Suite, rule: dict[str, Any]):
    with pytest.raises(dynactor.testing.AdminError):
        suite.faults.add(**rule)
    assert suite.faults.rules == []


def test_faults_of_connections_are_injected_in_the_full_lane(suite: Suite):
    # Send the body in chunks, which only the full lane reads.
    request = b'{"TableName":"Thread","Key":{"pk":{"S":"1"}},"AttributeUpdates":{}}'
    for fault in ("cut-before", "cut-middle", "wrong-crc32"):
        suite.faults.add(fault, next=1)
        with closing(WireClient(suite.server.endpoint)) as call:
            headers = {"Transfer-Encoding": "chunked", "Content-Length": ""}
            chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(request), request)
            if fault == "wrong-crc32":
                answer = call.send("UpdateItem", chunked, headers)
                assert answer.body == b"{}"
                assert answer.headers["x-amz-crc32"] != str(crc32(b"{}"))
            else:
                with pytest.raises((ConnectionError, http.client.IncompleteRead)):
                    call.send("UpdateItem", chunked, headers)
    assert [each["injected"] for each in suite.faults.rules] == [1, 1, 1]


def test_without_the_option_no_fault_is_injected(default_server: Server):
    answer = ask(admin_port(default_server), "/faults", "POST", {"fault": "throttling"})
    assert answer.status == 403
    assert "--allow-faults" in answer.json["message"]
