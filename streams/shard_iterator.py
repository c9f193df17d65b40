"""Shard iterators: a position in a shard and its time of issue, as text for clients.

The text shows the stream's ARN and hides the rest, as AWS's iterators do. A checksum detects
invalid iterators. It protects no secret, because an iterator gives no access that its holder does
not have.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from typing import Annotated, Final, TypeAlias

from msgspec import Meta, MsgspecError, Struct, msgpack

from dynactor.streams.sequence_number import COUNTER_BITS

_VERSION: Final = "1"
_CHECKSUM_BYTES: Final = 8

_Counter: TypeAlias = Annotated[int, Meta(ge=0, lt=1 << COUNTER_BITS)]
_Hidden: TypeAlias = tuple[str, _Counter, int]

_encode = msgpack.Encoder().encode
_decode = msgpack.Decoder(_Hidden).decode


class Cursor(Struct, frozen=True):
    """The position after the counter ``after`` of a shard."""

    stream_arn: str
    shard_id: str
    after: int
    issued_epoch_ms: int


def encode(cursor: Cursor) -> str:
    """The text for the client."""
    hidden = _encode((cursor.shard_id, cursor.after, cursor.issued_epoch_ms))
    return f"{cursor.stream_arn}|{_VERSION}|{_coded(cursor.stream_arn, hidden)}"


def parse(text: str) -> Cursor | None:
    """The cursor in a client's text; None if it was never issued."""
    arn, _, rest = text.partition("|")
    version, _, coded = rest.partition("|")
    if version != _VERSION:
        return None
    try:
        hidden = urlsafe_b64decode(coded)[_CHECKSUM_BYTES:]
        if _coded(arn, hidden) != coded:
            return None
        shard_id, after, issued_epoch_ms = _decode(hidden)
    except (ValueError, MsgspecError):
        return None
    return Cursor(arn, shard_id, after, issued_epoch_ms)


def _coded(stream_arn: str, hidden: bytes) -> str:
    checksum = blake2b(f"{stream_arn}|".encode() + hidden, digest_size=_CHECKSUM_BYTES).digest()
    return urlsafe_b64encode(checksum + hidden).decode()
