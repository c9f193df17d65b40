"""Compressed bodies, and invalid ones."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import pytest

from dynactor.api.http.compression import (
    CODINGS,
    Coding,
    accepted_coding,
    compress,
    decompress,
    most_decompressed_bytes,
)
from dynactor.model.errors import RequestEntityTooLargeException, SerializationException
from dynactor.model.limits import REQUEST_BYTES


@pytest.mark.parametrize("coding", CODINGS)
def test_a_compressed_body_is_decompressed(coding: Coding):
    assert decompress(compress(b"abc" * 1000, coding), coding) == b"abc" * 1000


@pytest.mark.parametrize("tail", [b"tail", b"\0" * 100, b"\x1f"])
@pytest.mark.parametrize("coding", CODINGS)
def test_bytes_after_a_compressed_body_are_ignored(coding: Coding, tail: bytes):
    assert decompress(compress(b"abc", coding) + tail, coding) == b"abc"


def test_several_gzip_members_are_one_body():
    members = gzip.compress(b"a") + gzip.compress(b"") + gzip.compress(b"b")
    assert decompress(members, "gzip") == b"ab"


def test_a_body_of_very_many_members_is_refused_at_once():
    with pytest.raises(SerializationException, match="too many members"):
        decompress(gzip.compress(b"") * (REQUEST_BYTES // 20), "gzip")


@pytest.mark.parametrize("coding", CODINGS)
def test_a_body_of_exactly_16_mb_is_accepted(coding: Coding):
    packed = compress(b"0" * REQUEST_BYTES, coding)
    assert len(decompress(packed, coding)) == REQUEST_BYTES


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
@pytest.mark.parametrize("size_bytes", [1, 100, 10_000, 1_000_000, REQUEST_BYTES])
def test_the_maximum_size_of_a_compressed_body_is_computed_before_decompression(
    size_bytes: int, pack: Callable[[bytes], bytes]
):
    packed = pack(b"0" * size_bytes)
    most_bytes = most_decompressed_bytes(len(packed))
    assert size_bytes <= most_bytes <= REQUEST_BYTES
    # A well compressed body counts with hardly more than its real size.
    assert most_bytes < 1.1 * size_bytes or size_bytes <= 10_000


@pytest.mark.parametrize(
    ("bomb", "coding"),
    [
        (gzip.compress(b"0" * (REQUEST_BYTES + 1)), "gzip"),
        (gzip.compress(b"0" * REQUEST_BYTES) + gzip.compress(b"0"), "gzip"),
        (zlib.compress(b"0" * (REQUEST_BYTES + 1)), "deflate"),
    ],
    ids=["one member", "two members", "deflate"],
)
def test_a_body_over_16_mb_is_refused(bomb: bytes, coding: Coding):
    with pytest.raises(RequestEntityTooLargeException):
        decompress(bomb, coding)


BARE_DEFLATE = zlib.compress(b"{}")[2:-4]


# gzip writes the time into its output, so ids keep the tests' names equal in every process.
@pytest.mark.parametrize(
    ("packed", "coding"),
    [
        (b"", "gzip"),
        (b"{}", "gzip"),
        (gzip.compress(b"{}")[:-1], "gzip"),
        (gzip.compress(b"{}") + gzip.compress(b"{}")[:-1], "gzip"),
        (zlib.compress(b"{}"), "gzip"),
        (b"", "deflate"),
        (b"{}", "deflate"),
        (zlib.compress(b"{}")[:-1], "deflate"),
        (gzip.compress(b"{}"), "deflate"),
        (BARE_DEFLATE, "deflate"),
    ],
    ids=[
        "empty",
        "not packed",
        "cut short",
        "a second member cut short",
        "deflate as gzip",
        "empty deflate",
        "not packed as deflate",
        "deflate cut short",
        "gzip as deflate",
        "deflate without zlib's frame",
    ],
)
def test_a_body_with_the_wrong_compression_is_refused(packed: bytes, coding: Coding):
    with pytest.raises(SerializationException):
        decompress(packed, coding)


@pytest.mark.parametrize(
    ("accept_encoding", "coding"),
    [
        ("", None),
        ("identity", None),
        ("br", None),
        ("gzip", "gzip"),
        ("GZip;q=0.5", "gzip"),
        ("gzip;q=0", None),
        ("gzip; q=0.0, identity", None),
        ("*;q=0", None),
        ("gzip, deflate", "gzip"),
        ("gzip;q=.1, deflate;q=0.05", "gzip"),
        ("deflate;Q=0.5, gzip; q\t=\t0.6", "gzip"),
        ("*;q=0.1, gzip;q=0", "deflate"),
        (",;=,gzip", "gzip"),
        ("gzip;q=31,deflate;q=51", "gzip"),
        ("deflate;q=0.9,gzip;q=1e999", "gzip"),
        ("deflate;q=0.5,gzip;q=0. x", "gzip"),
        ("deflate;q=0.5,gzip;q=", "gzip"),
        ("deflate;q=0.5,gzip;q=nan", "gzip"),
        ("deflate;q=0.5,gzip;q=0_0", "gzip"),
        ("deflate;q=0.5,gzip;q= 4e-1 ;q=1", "deflate"),
        ("gzip;q =0;q=1", "gzip"),
        ("gzip;q =0", "gzip"),
        ("gzip;q=-1", None),
    ],
)
def test_a_client_says_which_coding_it_accepts(accept_encoding: str, coding: Coding | None):
    assert accepted_coding(accept_encoding) == coding
