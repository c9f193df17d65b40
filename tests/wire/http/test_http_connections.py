"""Requests on one connection: in pieces, pipelined, too large, slow, or cut off."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPResponse
from typing import BinaryIO

import pytest

from tests.support.clients.clients import AUTHORIZATION, JSON_1_0, WireClient

MIB = 1024 * 1024


@contextmanager
def connection(wire: WireClient) -> Iterator[socket.socket]:
    """A socket connected to the server under test."""
    with socket.create_connection((wire.host, wire.port), timeout=30) as bare:
        bare.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield bare


def head(wire: WireClient, length: int | None, *more: str, operation: str = "ListTables") -> bytes:
    """The head of a request with a body of ``length`` bytes."""
    lines = [
        "POST / HTTP/1.1",
        f"Host: {wire.host}:{wire.port}",
        f"Content-Type: {JSON_1_0}",
        f"X-Amz-Target: DynamoDB_20120810.{operation}",
        "X-Amz-Date: 20260101T000000Z",
        f"Authorization: {AUTHORIZATION}",
        *([f"Content-Length: {length}"] if length is not None else []),
        *more,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def response(bare: socket.socket) -> tuple[int, bytes]:
    """Read exactly one answer."""
    parsed = HTTPResponse(bare)
    parsed.begin()
    body = parsed.read()
    parsed.close()
    return parsed.status, body


def is_alive(wire: WireClient) -> bool:
    return wire.send("ListTables", {"Limit": 1}).status == 200


def test_a_connection_serves_many_requests(wire: WireClient):
    with connection(wire) as bare:
        for _ in range(20):
            bare.sendall(head(wire, 2) + b"{}")
            status, body = response(bare)
            assert status == 200
            assert b"TableNames" in body


def test_head_and_body_may_come_in_two_segments(wire: WireClient):
    with connection(wire) as bare:
        for _ in range(3):
            bare.sendall(head(wire, 2))
            bare.sendall(b"{}")
            assert response(bare)[0] == 200


def test_a_request_may_come_byte_by_byte(wire: WireClient):
    with connection(wire) as bare:
        for byte in head(wire, 11) + b'{"Limit":1}':
            bare.sendall(bytes([byte]))
        assert response(bare)[0] == 200


@pytest.mark.differs_from_dynamodb_local("its message for the limit is another")
def test_pipelined_requests_are_answered_in_order(wire: WireClient):
    limits = [0, 1, -1, 2, -2]
    with connection(wire) as bare:
        request = b""
        for limit in limits:
            body = b'{"Limit":%d}' % limit
            request += head(wire, len(body)) + body
        bare.sendall(request)
        reader = bare.makefile("rb")
        for limit in limits:
            status_line, body = answer_of(reader)
            if limit > 0:
                assert b" 200 " in status_line
            else:
                assert b" 400 " in status_line
                assert b"Value '%d' at 'limit'" % limit in body
        reader.close()


def test_each_pipelined_request_sees_the_writes_before_it(wire: WireClient, simple: str, pk: str):
    key = {"TableName": simple, "Key": {"pk": {"S": pk}}}
    update = key | {
        "UpdateExpression": "ADD n :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    sent = b""
    for _ in range(50):
        for operation, request in (("UpdateItem", update), ("GetItem", key)):
            body = json.dumps(request).encode()
            sent += head(wire, len(body), operation=operation) + body
    with connection(wire) as bare:
        bare.sendall(sent)
        reader = bare.makefile("rb")
        for number in range(1, 51):
            assert b" 200 " in answer_of(reader)[0]
            assert b'"n":{"N":"%d"}' % number in answer_of(reader)[1]
        reader.close()


def answer_of(reader: BinaryIO) -> tuple[bytes, bytes]:
    """Read the next answer; return its status line and its body."""
    status_line = reader.readline()
    length = 0
    while (line := reader.readline()) != b"\r\n":
        name, _, text = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(text)
    return status_line, reader.read(length)


def test_an_http_1_0_client_is_answered_and_disconnected(wire: WireClient):
    with connection(wire) as bare:
        bare.sendall(head(wire, 2).replace(b"HTTP/1.1", b"HTTP/1.0") + b"{}")
        received = b""
        while chunk := bare.recv(65536):
            received += chunk
        assert re.match(rb"HTTP/1\.[01] 200", received)


def test_header_names_are_case_insensitive(wire: WireClient):
    with connection(wire) as bare:
        first, *lines = head(wire, 2).split(b"\r\n")
        split = [line.partition(b":") for line in lines]
        lowered = [name.lower() + colon + text for name, colon, text in split]
        bare.sendall(b"\r\n".join([first, *lowered]) + b"{}")
        assert response(bare)[0] == 200


def test_a_chunked_body_is_read(wire: WireClient):
    with connection(wire) as bare:
        bare.sendall(head(wire, None, "Transfer-Encoding: chunked"))
        bare.sendall(b'5\r\n{"Lim\r\n')
        bare.sendall(b'6\r\nit":1}\r\n0\r\n\r\n')
        assert response(bare)[0] == 200


def test_a_client_that_expects_100_continue_gets_it(wire: WireClient):
    with connection(wire) as bare:
        bare.sendall(head(wire, 2, "Expect: 100-continue"))
        interim = bare.recv(4096)
        assert interim.startswith(b"HTTP/1.1 100")
        bare.sendall(b"{}")
        assert response(bare)[0] == 200


def test_connection_close_is_honored(wire: WireClient):
    with connection(wire) as bare:
        bare.sendall(head(wire, 2, "Connection: close") + b"{}")
        received = b""
        while chunk := bare.recv(65536):
            received += chunk
        assert received.startswith(b"HTTP/1.1 200")


def test_a_request_cut_off_in_its_head_does_not_affect_others(wire: WireClient):
    with connection(wire) as bare:
        bare.sendall(head(wire, 2)[:40])
    assert is_alive(wire)


def test_a_write_cut_off_in_its_body_is_not_executed(wire: WireClient, simple: str, pk: str):
    body = b'{"TableName":"%s","Item":{"pk":{"S":"%s"}}}' % (simple.encode(), pk.encode())
    with connection(wire) as bare:
        bare.sendall(head(wire, len(body) + 1, operation="PutItem") + body)
    assert wire("GetItem", {"TableName": simple, "Key": {"pk": {"S": pk}}}) == {}


def test_a_client_that_disconnects_before_its_answer_does_not_affect_others(wire: WireClient):
    for _ in range(20):
        with connection(wire) as bare:
            bare.sendall(head(wire, 2) + b"{}")
    assert is_alive(wire)


def test_slow_clients_do_not_delay_others(wire: WireClient):
    with connection(wire) as slow, connection(wire) as slower:
        slow.sendall(head(wire, 2))
        slower.sendall(head(wire, 2)[:20])
        assert is_alive(wire)
        slow.sendall(b"{}")
        assert response(slow)[0] == 200


def test_a_hundred_idle_connections_do_not_delay_others(wire: WireClient):
    idle = [socket.create_connection((wire.host, wire.port)) for _ in range(100)]
    assert is_alive(wire)
    for bare in idle:
        bare.close()


@pytest.mark.differs_from_dynamodb_local("it reads 17 MB, and answers 400")
def test_a_body_of_17_mb_is_refused(wire: WireClient):
    body = b'{"TableName":"' + b"x" * (17 * MIB) + b'"}'
    with connection(wire) as bare:
        bare.sendall(head(wire, len(body)))
        try:
            bare.sendall(body)
        except (BrokenPipeError, ConnectionResetError):
            # The server may answer and close before the whole body is sent.
            pass
        else:
            assert response(bare)[0] == 413
    assert is_alive(wire)


@pytest.mark.differs_from_dynamodb_local("its validator speaks first of the name's length")
def test_a_body_just_under_16_mb_is_read(wire: WireClient):
    filler = b'{"Limit":0,"NoSuchMember":"' + b"x" * (16 * MIB - 100) + b'"}'
    answer = wire.send("ListTables", filler)
    assert answer.status == 400
    assert b"'limit'" in answer.body


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\r\n\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: abc\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            marks=pytest.mark.differs_from_dynamodb_local("it answers 500"),
        ),
    ],
)
def test_bytes_other_than_http_are_refused_and_do_not_affect_others(
    wire: WireClient, request_bytes: bytes
):
    with connection(wire) as bare:
        bare.sendall(request_bytes)
        bare.shutdown(socket.SHUT_WR)
        try:
            received = bare.recv(65536)
        except ConnectionResetError:
            received = b""
    assert received == b"" or re.match(rb"HTTP/1\.[01] (4|505)", received)
    assert is_alive(wire)


@pytest.mark.differs_from_dynamodb_local("it answers 431")
def test_headers_over_16_kb_are_refused(wire: WireClient):
    answer = wire.send("ListTables", {}, {"X-Long": "x" * 20_000})
    assert answer.status == 400
    assert is_alive(wire)


@pytest.mark.ours_alone("DynamoDB's own hosts look at no Host header")
@pytest.mark.parametrize(
    "host",
    ["evil.example.com", "dynamodb.us-east-1.amazonaws.com.evil.test", "[::1].evil.example.com"],
)
def test_a_host_that_is_neither_local_nor_an_address_is_refused(wire: WireClient, host: str):
    answer = wire.send("ListTables", {}, {"Host": host})
    assert answer.status == 403


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:8000", "[::1]:8000"])
def test_a_host_that_is_local_or_an_address_is_served(wire: WireClient, host: str):
    assert wire.send("ListTables", {}, {"Host": host}).status == 200
