"""Bodies compressed by the client, and answers compressed for it."""

from __future__ import annotations

import gzip
from zlib import crc32

import pytest

from tests.support.clients import WireClient

MIB = 1024 * 1024

pytestmark = pytest.mark.differs_from_dynamodb_local("it knows no compression")


def test_a_compressed_body_is_read(wire: WireClient):
    body = gzip.compress(b'{"Limit":1}')
    assert wire.send("ListTables", body, {"Content-Encoding": "gzip"}).status == 200


def test_two_gzip_members_in_a_row_are_one_body(wire: WireClient):
    body = gzip.compress(b'{"Lim') + gzip.compress(b'it":0}')
    answer = wire.send("ListTables", body, {"Content-Encoding": "gzip"})
    assert answer.status == 400
    assert b"at 'limit'" in answer.body


# gzip writes the time into what it packs: ids, so that every process calls a test the same.
@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"\x1f\x8b\x08", gzip.compress(b"{}")[:-4], gzip.compress(b"{}") + b"tail"],
    ids=["empty", "not packed", "a magic number", "cut short", "with a tail"],
)
def test_a_body_that_only_says_it_is_compressed_is_refused(wire: WireClient, body: bytes):
    answer = wire.send("ListTables", body, {"Content-Encoding": "gzip"})
    assert answer.status == 400
    assert wire.send("ListTables", {}).status == 200


def test_a_body_that_inflates_over_16_mb_is_refused(wire: WireClient):
    body = gzip.compress(b'{"a":"' + b"0" * (17 * MIB) + b'"}')
    answer = wire.send("ListTables", body, {"Content-Encoding": "gzip"})
    assert answer.status in (400, 413)
    assert wire.send("ListTables", {}).status == 200


def test_a_large_answer_is_compressed_for_who_accepts_it(wire: WireClient, simple: str, pk: str):
    wire("PutItem", {"TableName": simple, "Item": {"pk": {"S": pk}, "text": {"S": "x" * 100_000}}})
    request = {"TableName": simple, "Key": {"pk": {"S": pk}}}
    plain = wire.send("GetItem", request)
    packed = wire.send("GetItem", request, {"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert packed.headers["x-amz-crc32"] == str(crc32(packed.body))
    assert packed.headers["Content-Length"] == str(len(packed.body))
