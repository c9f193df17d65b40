"""A large request with an invalid head is refused before its body is buffered."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from hashlib import sha256

import pytest

from dynactor.api.http.protocol import Protocol
from dynactor.api.keys.signature import AccessKey, Signatures, authorization
from tests.support.clients.raw_http import TO_FULL_LANE, RawAnswer, RawConnection, raw_connection
from tests.support.databases.fake_operations import ECHO, NO_DATABASE, Gate, echo_server
from tests.support.environment.hanging import HANG_SECONDS

MIB = 1024 * 1024
MEMORY_BYTES = 3 * MIB
KEY = AccessKey("AKIATEST", "secret")
# The memory suffices for one such body.
BODY = b'{"Text":"%s"}' % (b"x" * 2 * MIB)
SMALL = b'{"Text":"small"}'
TOLD = "x-amz-content-sha256"

Headers = dict[str, str]
both_lanes = pytest.mark.parametrize(
    "more", [{}, dict([TO_FULL_LANE.split(": ")])], ids=["fast lane", "full lane"]
)


def signed(
    body: bytes,
    *,
    tells_hash: bool = False,
    key: AccessKey = KEY,
    age_seconds: int = 0,
    operation: str = "Echo",
) -> Headers:
    """The headers of a request that was signed some time ago."""
    headers = {
        "host": "127.0.0.1",
        "content-type": "application/x-amz-json-1.0",
        "x-amz-target": f"DynamoDB_20120810.{operation}",
    }
    if tells_hash:
        headers[TOLD] = sha256(body).hexdigest()
    moment = datetime.fromtimestamp(time.time() - age_seconds, UTC)
    return headers | authorization(key, "local", headers, body, moment)


def head(headers: Headers) -> bytes:
    lines = "".join(f"{name}: {text}\r\n" for name, text in headers.items())
    return f"POST / HTTP/1.1\r\n{lines}\r\n".encode()


def request(body: bytes, headers: Headers) -> bytes:
    return head(headers | {"Content-Length": f"{len(body)}"}) + body


@asynccontextmanager
async def server(*, is_open: bool = False) -> AsyncIterator[tuple[str, Gate]]:
    """A server with memory for one large request, and with access keys unless ``is_open``."""
    gate = Gate()
    signatures = None if is_open else Signatures((KEY,))
    protocol = Protocol(NO_DATABASE, (ECHO, gate.operation), frozenset({"Later"}), signatures)
    async with (
        asyncio.timeout(HANG_SECONDS),
        echo_server(
            protocol=protocol, large_requests_bytes=MEMORY_BYTES, drain_seconds=0.01
        ) as endpoint,
    ):
        yield endpoint, gate


@asynccontextmanager
async def full_server(more: Headers) -> AsyncIterator[tuple[RawConnection, str, Gate]]:
    """A server whose memory is used up by a request, and that request's connection."""
    async with server() as (endpoint, gate), raw_connection(endpoint) as within:
        within.send(request(BODY, signed(BODY, operation="Wait") | more))
        while not gate.waiting:
            await asyncio.sleep(0.001)
        yield within, endpoint, gate


def without(headers: Headers, name: str) -> Headers:
    return {each: text for each, text in headers.items() if each != name}


def with_its_hash() -> Headers:
    return signed(BODY, tells_hash=True)


# Headers with a fault for a request with ``BODY``; each is signed when it is sent.
WRONG: dict[str, Callable[[], Headers]] = {
    "no signature": lambda: without(signed(BODY), "authorization"),
    "half a signature": lambda: signed(BODY) | {"authorization": "AWS4-HMAC-SHA256 Credential=a"},
    "no date": lambda: without(signed(BODY), "x-amz-date"),
    "a date that is none": lambda: signed(BODY) | {"x-amz-date": "today"},
    "an old date": lambda: signed(BODY, age_seconds=1000),
    "a date to come": lambda: signed(BODY, age_seconds=-100_000),
    "an unknown key": lambda: signed(BODY, key=AccessKey("nobody", "any")),
    "another hash": lambda: with_its_hash() | {TOLD: sha256(b"{}").hexdigest()},
    "another secret": lambda: signed(BODY, tells_hash=True, key=AccessKey(KEY[0], "other")),
    "another host": lambda: with_its_hash() | {"host": "localhost"},
    "no operation": lambda: signed(BODY) | {"x-amz-target": "none"},
    "an operation to come": lambda: signed(BODY) | {"x-amz-target": "DynamoDB_20120810.Later"},
    "another content type": lambda: signed(BODY) | {"content-type": "text/plain"},
    "JSON": lambda: without(signed(BODY), "authorization") | {"content-type": "application/json"},
}


@both_lanes
@pytest.mark.parametrize("wrong", WRONG)
async def test_an_invalid_head_of_a_large_request_gets_the_same_error_as_of_a_small_one(
    wrong: str, more: Headers
):
    headers = WRONG[wrong]() | more
    async with full_server(more) as (_, endpoint, _), raw_connection(endpoint) as connection:
        connection.send(request(SMALL, headers))
        refusal = await connection.answer()
        async with raw_connection(endpoint) as other:
            # The client gets the answer although memory is full, and before it sends its body.
            other.send(head(headers | {"Content-Length": f"{len(BODY)}"}))
            early = await other.answer()
            assert early.headers["connection"] == "close"
        assert told(early) == told(refusal)
        assert refusal.status == (404 if wrong == "another content type" else 400)


def told(answer: RawAnswer) -> tuple[int, str, bytes]:
    """An answer without the parts of its message that depend on the body or the time."""
    body = re.sub(rb"[0-9a-f]{64}", b"HASH", answer.body)
    return answer.status, answer.headers["content-type"], re.sub(rb"[0-9]{6}Z", b"TIME", body)


@pytest.mark.parametrize("wrong", WRONG)
async def test_a_body_in_chunks_is_refused_when_it_turns_out_to_be_large(wrong: str):
    chunked = {"transfer-encoding": "chunked"}
    async with full_server({}) as (_, endpoint, _), raw_connection(endpoint) as connection:
        connection.send(
            head(WRONG[wrong]() | chunked) + b"%x\r\n%b" % (len(BODY), BODY[: 65 * 1024])
        )
        assert (await connection.answer()).status in (400, 404)


@both_lanes
async def test_the_body_of_a_refused_request_is_drained(more: Headers):
    async with full_server(more) as (_, endpoint, _), raw_connection(endpoint) as connection:
        # The client sends the whole body before it reads the answer.
        connection.writer.transport.set_write_buffer_limits(0)
        connection.send(request(BODY, WRONG["an unknown key"]() | more))
        await connection.writer.drain()
        assert (await connection.answer()).json["__type"].endswith("UnrecognizedClientException")
        assert await connection.is_closed()


async def test_a_client_that_expects_100_continue_is_refused_at_once():
    expects = {"expect": "100-continue"}
    async with full_server({}) as (_, endpoint, _), raw_connection(endpoint) as connection:
        headers = WRONG["an unknown key"]() | expects | {"Content-Length": f"{len(BODY)}"}
        connection.send(head(headers))
        assert (await connection.answer()).status == 400


@both_lanes
@pytest.mark.parametrize("tells_hash", [False, True])
async def test_a_client_with_a_key_waits_for_memory(more: Headers, *, tells_hash: bool):
    async with full_server(more) as (within, endpoint, gate), raw_connection(endpoint) as other:
        headers = signed(BODY, tells_hash=tells_hash) | more
        other.send(request(BODY, headers))
        gate.opened.set()
        assert (await within.answer()).body == BODY
        assert (await other.answer()).body == BODY
        other.send(request(BODY.replace(b"x", b"y"), headers))
        assert (await other.answer()).json["__type"].endswith("#InvalidSignatureException")


@both_lanes
async def test_without_access_keys_a_request_still_needs_any_signature(more: Headers):
    async with server(is_open=True) as (endpoint, _), raw_connection(endpoint) as connection:
        unsigned = without(signed(BODY), "authorization") | more
        connection.send(head(unsigned | {"Content-Length": f"{len(BODY)}"}))
        answer = await connection.answer()
        assert answer.json["__type"].endswith("#MissingAuthenticationTokenException")
