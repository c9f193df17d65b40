"""Log lines about requests."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from tests.support.clients.clients import WireClient
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.servers.server import Server, running_server

TABLE = {
    "TableName": "Thread",
    "AttributeDefinitions": [{"AttributeName": "forum", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "forum", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}
NO_TABLE = {"TableName": "None", "Key": {"forum": {"S": "secret"}}}


@contextmanager
def served(*options: str) -> Iterator[tuple[Server, WireClient]]:
    with (
        running_server("--log-format", "json", *options) as server,
        closing(WireClient(server.endpoint)) as wire,
    ):
        yield server, wire


def lines(server: Server, event: str) -> list[dict[str, Any]]:
    found = map(json.loads, server.log.splitlines())
    return [line for line in found if line["event"] == event]


def wait_lines(server: Server, event: str, count: int) -> list[dict[str, Any]]:
    deadline = time.monotonic() + HANG_SECONDS
    while len(found := lines(server, event)) < count:
        assert time.monotonic() < deadline, server.log
    return found


def test_a_failed_request_is_logged_without_its_content() -> None:
    with served() as (server, wire):
        answer = wire.send("GetItem", NO_TABLE)
        (line,) = wait_lines(server, "request_failed", 1)
        assert "secret" not in server.log
    assert line.pop("timestamp")
    assert line == {
        "event": "request_failed",
        "level": "info",
        "operation": "GetItem",
        "code": "ResourceNotFoundException",
        "http_status": 400,
        "request_id": answer.headers["x-amzn-RequestId"],
    }


def test_an_error_code_is_logged_at_most_20_times_a_second_with_a_count_of_the_rest() -> None:
    with served() as (server, wire):
        for _ in range(50):
            wire.send("GetItem", NO_TABLE)
        wire.send("GetItems", NO_TABLE)
        found = wait_lines(server, "requests_not_logged", 1)
        logged = lines(server, "request_failed")
    of_code = [line for line in logged if line["code"] == "ResourceNotFoundException"]
    # On a busy machine the requests may take longer than one second.
    assert len(of_code) + sum(line["count"] for line in found) <= 50
    assert len(of_code) >= 20
    assert {line["code"] for line in logged} == {
        "ResourceNotFoundException",
        "UnknownOperationException",
    }


def test_failed_conditions_are_logged_at_level_debug() -> None:
    put = {
        "TableName": "Thread",
        "Item": {"forum": {"S": "EC2"}},
        "ConditionExpression": "attribute_exists(forum)",
    }
    for level, count in (("info", 0), ("debug", 1)):
        with served("--log-level", level) as (server, wire):
            wire("CreateTable", TABLE)
            wire.refused("PutItem", put)
            wire.send("GetItem", NO_TABLE)
            failed = wait_lines(server, "request_failed", 1 + count)
        assert [line["code"] for line in failed][:-1] == ["ConditionalCheckFailedException"] * count


def test_at_level_debug_each_answer_is_logged() -> None:
    with served("--log-level", "debug") as (server, wire):
        wire("ListTables", {})
        (line,) = wait_lines(server, "request_answered", 1)
    assert line["operation"] == "ListTables"
    assert line["milliseconds"] > 0
