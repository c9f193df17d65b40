"""Gzip, and what is not quite gzip."""

from __future__ import annotations

import gzip

import pytest

from api import compression
from model.errors import RequestEntityTooLargeException, SerializationException
from model.limits import REQUEST_BYTES


def test_what_is_deflated_is_inflated():
    assert compression.inflate(compression.deflate(b"abc" * 1000)) == b"abc" * 1000


def test_members_in_a_row_are_one_body():
    assert (
        compression.inflate(gzip.compress(b"a") + gzip.compress(b"") + gzip.compress(b"b")) == b"ab"
    )


def test_a_body_of_very_many_members_is_refused_at_once():
    with pytest.raises(SerializationException, match="too many members"):
        compression.inflate(gzip.compress(b"") * (REQUEST_BYTES // 20))


def test_exactly_16_mb_is_let_through():
    assert len(compression.inflate(gzip.compress(b"0" * REQUEST_BYTES))) == REQUEST_BYTES


@pytest.mark.parametrize("size_bytes", [1, 100, 10_000, 1_000_000, REQUEST_BYTES])
def test_how_much_there_can_be_in_a_body_is_known_before_it_is_inflated(size_bytes: int):
    packed = gzip.compress(b"0" * size_bytes)
    most_bytes = compression.most_inflated_bytes(len(packed))
    assert size_bytes <= most_bytes <= REQUEST_BYTES
    # No body that can be packed so well is taken for much more than it is.
    assert most_bytes < 1.1 * size_bytes or size_bytes <= 10_000


@pytest.mark.parametrize(
    "bomb",
    [
        gzip.compress(b"0" * (REQUEST_BYTES + 1)),
        gzip.compress(b"0" * REQUEST_BYTES) + gzip.compress(b"0"),
    ],
    ids=["one member", "two members"],
)
def test_more_is_cut_off(bomb: bytes):
    with pytest.raises(RequestEntityTooLargeException):
        compression.inflate(bomb)


# gzip writes the time into what it packs: ids, so that every process calls a test the same.
@pytest.mark.parametrize(
    "packed",
    [b"", b"{}", gzip.compress(b"{}")[:-1], gzip.compress(b"{}") + b"tail"],
    ids=["empty", "not packed", "cut short", "with a tail"],
)
def test_what_is_not_gzip_is_refused(packed: bytes):
    with pytest.raises(SerializationException):
        compression.inflate(packed)


@pytest.mark.parametrize(
    ("accept_encoding", "accepted"),
    [
        ("", False),
        ("identity", False),
        ("gzip", True),
        ("deflate, GZip;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip; q=0.0, identity", False),
    ],
)
def test_a_client_says_whether_it_accepts_gzip(accept_encoding: str, *, accepted: bool):
    assert compression.accepts_gzip(accept_encoding) is accepted
