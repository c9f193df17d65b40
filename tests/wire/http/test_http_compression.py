"""Compressed requests, and compressed answers."""

from __future__ import annotations

import gzip
import zlib
from zlib import crc32

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.raw_http import TO_FULL_LANE

MIB = 1024 * 1024

pytestmark = pytest.mark.differs_from_dynamodb_local("it knows no compression")


BODY = b'{"Limit":0}'


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(BODY)),
        ("GZIP", gzip.compress(BODY)),
        ("deflate", zlib.compress(BODY)),
        ("identity", BODY),
        # The compressed data is followed by other bytes.
        ("gzip", gzip.compress(BODY) + b"junk"),
        ("gzip", gzip.compress(BODY) + b"\0" * 1000),
    ],
    ids=["gzip", "capitals", "deflate", "identity", "gzip and junk", "gzip and zeros"],
)
def test_a_compressed_body_is_read(wire: WireClient, coding: str, body: bytes):
    answer = wire.send("ListTables", body, {"Content-Encoding": coding})
    assert answer.status == 400
    assert b"at 'limit'" in answer.body


def test_two_gzip_members_in_a_row_are_one_body(wire: WireClient):
    body = gzip.compress(b'{"Lim') + gzip.compress(b'it":0}')
    answer = wire.send("ListTables", body, {"Content-Encoding": "gzip"})
    assert answer.status == 400
    assert b"at 'limit'" in answer.body


# Ids, because gzip's output contains the time, and workers need equal test names.
@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"\x1f\x8b\x08", gzip.compress(b"{}")[:-4], zlib.compress(b"{}")[2:]],
    ids=["empty", "not packed", "a magic number", "cut short", "no zlib"],
)
@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "gzip, deflate"])
def test_a_body_that_is_not_compressed_as_its_header_says_is_refused(
    wire: WireClient, coding: str, body: bytes
):
    answer = wire.send("ListTables", body, {"Content-Encoding": coding})
    assert answer.status == 400
    assert b"SerializationException" in answer.body
    assert wire.send("ListTables", {}).status == 200


def test_a_body_that_inflates_over_16_mb_is_refused(wire: WireClient):
    body = gzip.compress(b'{"a":"' + b"0" * (17 * MIB) + b'"}')
    answer = wire.send("ListTables", body, {"Content-Encoding": "gzip"})
    assert answer.status in (400, 413)
    assert wire.send("ListTables", {}).status == 200


LARGE = 100_000
PLAIN_LANE = dict([TO_FULL_LANE.split(": ")])
# For each Accept-Encoding, the expected encoding of an answer over 4 KB.
CHOICES = [
    ("gzip", "gzip"),
    ("deflate", "deflate"),
    ("identity", None),
    ("br, identity, deflate, gzip", "deflate"),
    ("*", "gzip"),
    ("*, deflate;q=0.5", "gzip"),
    ("*, identity", "gzip"),
    ("*;q=0.5,identity", "gzip"),
    ("*, deflate", "deflate"),
    ("*, gzip;q=0.5", "deflate"),
    ("deflate;q=0.5, gzip;q=0.2", "deflate"),
    ("deflate;q=0.5,gzip;q=0.", "deflate"),
    ("gzip;q= 0;q=1", None),
    ("gzip; q=0;q=1", None),
    ("gzip;nq=0;q=1", None),
    ("gzip;q =0;q=1", "gzip"),
    ("gzip;q=31,deflate;q=51", "gzip"),
    ("deflate;q=0.5,gzip;q=0. x", "gzip"),
    ("gzip;q=0, gzip;q=1, gzip;q=0", "gzip"),
    ("br, gzip;q=0, deflate; q = 0.5 , identity;q=0", "deflate"),
]


def decompressed(body: bytes, coding: str | None) -> bytes:
    match coding:
        case "gzip":
            return gzip.decompress(body)
        case "deflate":
            return zlib.decompress(body)
        case _:
            return body


@pytest.mark.parametrize(("accept_encoding", "coding"), CHOICES)
def test_a_large_answer_is_compressed_as_the_client_requests(
    wire: WireClient,
    simple: str,
    pk: str,
    accept_encoding: str,
    coding: str | None,
):
    wire("PutItem", {"TableName": simple, "Item": {"pk": {"S": pk}, "text": {"S": "x" * LARGE}}})
    request = {"TableName": simple, "Key": {"pk": {"S": pk}}}
    plain = wire.send("GetItem", request)
    assert "Content-Encoding" not in plain.headers
    for lane in ({}, PLAIN_LANE):
        asked = wire.send("GetItem", request, {"Accept-Encoding": accept_encoding} | lane)
        assert asked.headers.get("Content-Encoding") == coding
        assert decompressed(asked.body, coding) == plain.body
        assert asked.headers["x-amz-crc32"] == str(crc32(asked.body))
        assert asked.headers["Content-Length"] == str(len(asked.body))


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_small_answer_is_not_compressed(wire: WireClient, coding: str):
    answer = wire.send("ListTables", {"Limit": 1}, {"Accept-Encoding": coding})
    assert "Content-Encoding" not in answer.headers
