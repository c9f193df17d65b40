"""The violation detector with concurrent writes, and with a server that throttles."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from dynactor.api.clients.client import Endpoint, RequestFailed, RetryingEndpoint, open_client
from dynactor.api.clients.reach import CannotCall
from dynactor.api.commands.violation_detector import (
    Convert,
    DeleteAttribute,
    ItemViolation,
    Rewrite,
    Target,
    correct,
    item_violations,
)
from dynactor.model.keys.key import KeyAttribute, KeySchema
from tests.support.clients.clients import WireClient

SCORE, NAME = KeyAttribute("score", "N"), KeyAttribute("name", "S")
INDEX_KEY = KeySchema((SCORE,), (NAME,))


def target(table_name: str) -> Target:
    return Target(table_name, ("pk",), INDEX_KEY, 0)


async def test_an_item_whose_value_was_changed_meanwhile_is_not_fixed(
    wire: WireClient, simple: str, pk: str
):
    key = {"pk": {"S": pk}}
    item = {**key, "score": {"S": "new"}, "name": {"S": ""}}
    wire("PutItem", {"TableName": simple, "Item": item})
    found = item_violations(target(simple), {**item, "score": {"S": "old"}})
    assert [violation.attribute for violation in found] == [SCORE, NAME]
    async with open_client(wire_endpoint(wire)) as client:
        for fix in (DeleteAttribute(), Rewrite({"score": {"N": "1"}, "name": {"S": "ann"}})):
            told = await correct(client, target(simple), found, fix)
            assert {violation.outcome for violation in told} == {
                "not corrected: the value has changed meanwhile"
            }
            assert not any(violation.corrected for violation in told)
    assert wire("GetItem", {"TableName": simple, "Key": key})["Item"] == item


async def test_a_deleted_item_is_not_recreated(wire: WireClient, simple: str, pk: str):
    key = {"pk": {"S": pk}}
    violation = ItemViolation(key, SCORE, {"S": "1"}, "wrong type")
    async with open_client(wire_endpoint(wire)) as client:
        (told,) = await correct(client, target(simple), [violation], Convert())
    assert not told.corrected
    assert "Item" not in wire("GetItem", {"TableName": simple, "Key": key})


def wire_endpoint(wire: WireClient) -> str:
    return f"http://{wire.host}:{wire.port}"


@asynccontextmanager
async def answering(*answers: tuple[int, bytes]) -> AsyncIterator[tuple[Endpoint, list[str]]]:
    """A client of a fake server with these answers, and the targets of the client's requests."""
    asked: list[str] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        asked.append(request.headers["X-Amz-Target"])
        status, body = answers[min(len(asked), len(answers)) - 1]
        return web.Response(status=status, body=body)

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    async with open_client(f"http://{host}:{port}") as client:
        yield RetryingEndpoint(client), asked
    await runner.cleanup()


def error(name: str) -> tuple[int, bytes]:
    return 400, b'{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"m"}' % name.encode()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynactor.api.clients.client._FIRST_PAUSE_SECONDS", 0.001)


async def test_a_throttled_request_is_sent_again():
    throttled = error("ThrottlingException")
    async with answering(throttled, throttled, (200, b'{"Count":1}')) as (client, asked):
        assert await client.call("Scan", {}) == {"Count": 1}
    assert asked == ["DynamoDB_20120810.Scan"] * 3


async def test_a_request_that_is_always_throttled_fails():
    async with answering(error("ThrottlingException")) as (client, asked):
        with pytest.raises(RequestFailed) as refused:
            await client.call("Scan", {})
    assert (refused.value.error_type, refused.value.message) == ("ThrottlingException", "m")
    assert len(asked) == 8


async def test_any_other_error_is_reported_at_once():
    async with answering(error("ValidationException")) as (client, asked):
        with pytest.raises(RequestFailed, match="ValidationException: m"):
            await client.call("Scan", {})
    assert len(asked) == 1


@pytest.mark.parametrize("body", [b"<html>", b"[]", b""])
async def test_an_answer_of_another_server_is_reported(body: bytes):
    answer: Any = (200, body)
    async with answering(answer) as (client, _):
        with pytest.raises(CannotCall, match="is not DynamoDB"):
            await client.call("Scan", {})
