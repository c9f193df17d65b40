"""The request heads that the fast lane parses or passes to the full lane, and encoded answers."""

from __future__ import annotations

import pytest

from dynactor.api.http.message import answer_bytes, parse_head
from dynactor.api.http.protocol import Answer
from dynactor.model.limits import REQUEST_BYTES


def lines(*headers: str, first: str = "POST / HTTP/1.1") -> bytes:
    return "\r\n".join((first, *headers)).encode("latin-1")


def test_a_head_as_sdks_send_it_is_read():
    head = parse_head(
        lines(
            "host: localhost:8000",
            "X-AMZ-Target:DynamoDB_20120810.GetItem",
            "Content-Type: application/x-amz-json-1.0 ",
            "Connection: Keep-Alive",
            "Content-Length: 2",
        )
    )
    assert head is not None
    assert head.content_length == 2
    request = head.request(b"{}")
    assert request.host == "localhost:8000"
    assert request.target == "DynamoDB_20120810.GetItem"
    assert request.content_type == "application/x-amz-json-1.0"
    assert request.authorization == ""
    assert request.body == b"{}"


@pytest.mark.parametrize(
    "head",
    [
        lines("Host: a"),
        lines("Content-Length: 2", first="POST /path HTTP/1.1"),
        lines("Content-Length: 2", first="POST / HTTP/1.0"),
        lines("Content-Length: 2", first="PUT / HTTP/1.1"),
        lines("Content-Length: +2"),
        lines("Content-Length: 2, 2"),
        lines("Content-Length: \u00b2"),
        lines("Content-Length: "),
        lines(f"Content-Length: {REQUEST_BYTES + 1}"),
        lines("Content-Length: " + "9" * 5000),
        lines("Content-Length: 2", "Content-Length: 2"),
        lines("Content-Length: 2", "content-length: 3"),
        lines("Content-Length : 2"),
        lines("Content-Length: 2", "Transfer-Encoding: chunked"),
        lines("Content-Length: 2", "transfer-encoding : chunked"),
        lines("Content-Length: 2", "Expect: 100-continue"),
        lines("Content-Length: 2", "Upgrade: h2c"),
        lines("Content-Length: 2", "Origin: https://page.example.com"),
        lines("Content-Length: 2", "Connection: close"),
        lines("Content-Length: 2", "Host: a", " folded: b"),
        lines("Content-Length: 2", "no colon"),
        lines("Content-Length: 2", ": no name"),
        lines("Content-Length: 2", "A: b\nTransfer-Encoding: chunked"),
        lines("Content-Length: 2", "A: b\rTransfer-Encoding: chunked"),
        lines("Content-Length: 2", "A: b\0"),
    ],
)
def test_an_unusual_head_is_passed_to_the_full_lane(head: bytes):
    assert parse_head(head) is None


def test_an_answer_is_encoded_as_one_bytes_object():
    answer = Answer(400, "application/json", b"{}", "ID")
    assert answer_bytes(answer, 784111777.9, closing=True) == (
        b"HTTP/1.1 400 Bad Request\r\n"
        b"Server: dynactor\r\n"
        b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
        b"Content-Type: application/json\r\n"
        b"Content-Length: 2\r\n"
        b"x-amzn-RequestId: ID\r\n"
        b"x-amz-crc32: 2745614147\r\n"
        b"Connection: close\r\n"
        b"\r\n"
        b"{}"
    )
