"""Compression and decompression of bodies, bounded, and the choice of an answer's coding."""

from __future__ import annotations

import re
import zlib
from functools import lru_cache
from typing import Final, Literal, TypeAlias, get_args

from dynactor.model.errors import RequestEntityTooLargeException, SerializationException
from dynactor.model.limits import REQUEST_BYTES

# ``deflate`` is zlib's format (RFC 9110), not the raw format of that name.
Coding: TypeAlias = Literal["gzip", "deflate"]

CODINGS: Final[tuple[Coding, ...]] = get_args(Coding)
_WINDOW_BITS: Final[dict[Coding, int]] = {
    "gzip": 16 + zlib.MAX_WBITS,
    "deflate": zlib.MAX_WBITS,
}
_GZIP_START: Final = b"\x1f\x8b"
# Clients send one member. The remaining body is copied after each member, so without a limit a
# body of empty members took half an hour.
_MEMBERS: Final = 64
# The most bytes to which 1 compressed byte expands: 2 bits expand to at most 258 bytes (zlib's
# "Technical Details").
_MOST_INFLATED: Final = 258 * 8 // 2
# A smaller answer fits into a few packets, so compressing it would cost more than sending it.
WORTH_COMPRESSING_BYTES: Final = 4096
# The text of a coding's weight, and the form of a number in it.
_WEIGHT: Final = re.compile(r"q=([^;]*)", re.IGNORECASE)
_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_MOST_WEIGHT: Final = 1.0


def decompress(packed: bytes, coding: Coding) -> bytes:
    """Decompress a body of at most 16 MB.

    A gzip body may be several members in a row. Bytes after the last member are ignored, as on AWS.
    Raises ``SerializationException`` for another coding, an incomplete body or many members;
    ``RequestEntityTooLargeException`` above 16 MB.
    """
    pieces = []
    left_bytes = REQUEST_BYTES
    for _ in range(_MEMBERS):
        member = zlib.decompressobj(_WINDOW_BITS[coding])
        try:
            # One more byte than allowed is read, to detect a body that is too large.
            piece = member.decompress(packed, left_bytes + 1)
        except zlib.error:
            raise SerializationException(f"The body is not valid {coding}") from None
        left_bytes -= len(piece)
        if left_bytes < 0:
            raise RequestEntityTooLargeException("Request size exceeds 16 MB when inflated")
        if not member.eof:
            raise SerializationException(f"The {coding} body ends too early")
        pieces.append(piece)
        packed = member.unused_data
        if coding != "gzip" or not packed.startswith(_GZIP_START):
            return b"".join(pieces)
    raise SerializationException("The gzip body has too many members")


def most_decompressed_bytes(packed_bytes: int) -> int:
    """The largest size to which ``decompress`` may expand this number of bytes."""
    return min(packed_bytes * _MOST_INFLATED, REQUEST_BYTES)


def compress(body: bytes, coding: Coding) -> bytes:
    """Compress a body, optimized for speed."""
    packer = zlib.compressobj(level=1, wbits=_WINDOW_BITS[coding])
    return packer.compress(body) + packer.flush()


@lru_cache(maxsize=64)
def accepted_coding(accept_encoding: str) -> Coding | None:
    """The coding that an Accept-Encoding header requests; None: the answer is not compressed.

    Observed on AWS: the coding with the largest weight is used, and the first one if weights are
    equal. Codings matched by ``*`` come after named codings, gzip first. A coding that is named
    several times has its largest weight. The weight of ``identity`` is ignored. A weight that is
    over 1 or not a number counts as 1.
    """
    weights: dict[str, float] = {}
    for choice in accept_encoding.split(","):
        name, _, parameters = choice.partition(";")
        name = name.strip().lower()
        weights[name] = max(_weight(parameters), weights.get(name, 0.0))
    others = {coding: weights.get("*", 0.0) for coding in CODINGS if coding not in weights}
    named = {name: weight for name, weight in weights.items() if name in CODINGS}
    candidates = named | others
    best = max(candidates, key=lambda coding: candidates[coding])
    return best if candidates[best] > 0 else None


def _weight(parameters: str) -> float:
    """The number between the first ``q=`` and the next semicolon."""
    found = _WEIGHT.search(parameters)
    text = "" if found is None else found[1].strip()
    return min(float(text), _MOST_WEIGHT) if _NUMBER.fullmatch(text) else _MOST_WEIGHT
