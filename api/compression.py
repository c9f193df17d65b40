"""Gzip, both ways, with bounds."""

from __future__ import annotations

import zlib
from typing import Final

from model.errors import RequestEntityTooLargeException, SerializationException
from model.limits import REQUEST_BYTES

_GZIP: Final = 16 + zlib.MAX_WBITS
# Clients send one. Behind each, what is left is copied: a body of empty ones took half an hour.
_MEMBERS: Final = 64
# Two bits at least tell of 258 bytes at most (zlib's "Technical Details").
_MOST_INFLATED: Final = 258 * 8 // 2
# Below this an answer fits a few packets, and compressing costs more than sending.
WORTH_COMPRESSING_BYTES: Final = 4096


def inflate(packed: bytes) -> bytes:
    """The contents of one gzip member or some in a row; a bomb is cut off at 16 MB.

    Raises:
        SerializationException: the body is not gzip, or not all of it, or in too many members.
        RequestEntityTooLargeException: there is more than 16 MB in it.
    """
    pieces = []
    room_bytes = REQUEST_BYTES
    for _ in range(_MEMBERS):
        member = zlib.decompressobj(_GZIP)
        try:
            # One byte more than there is room for tells "full" from "too much".
            piece = member.decompress(packed, room_bytes + 1)
        except zlib.error:
            raise SerializationException("The body is not valid gzip") from None
        room_bytes -= len(piece)
        if room_bytes < 0:
            raise RequestEntityTooLargeException("Request size exceeds 16 MB when inflated")
        if not member.eof:
            raise SerializationException("The gzip body ends too early")
        pieces.append(piece)
        packed = member.unused_data
        if not packed:
            return b"".join(pieces)
    raise SerializationException("The gzip body has too many members")


def most_inflated_bytes(packed_bytes: int) -> int:
    """What ``inflate`` makes of so many bytes at most, whatever they are."""
    return min(packed_bytes * _MOST_INFLATED, REQUEST_BYTES)


def deflate(body: bytes) -> bytes:
    """The body as gzip, made quickly rather than small."""
    packer = zlib.compressobj(level=1, wbits=_GZIP)
    return packer.compress(body) + packer.flush()


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether an Accept-Encoding header allows a compressed answer."""
    for choice in accept_encoding.split(","):
        coding, _, parameters = choice.partition(";")
        if coding.strip().lower() == "gzip":
            weight = parameters.replace(" ", "").lower()
            return weight not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
