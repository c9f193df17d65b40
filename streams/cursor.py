"""Shard iterators: a place in a shard and when it was handed out, as text that clients pass back.

The text shows the stream's ARN and hides the rest, as AWS's do. A checksum tells an iterator
from anything else; it keeps no secret, for an iterator gives nothing that its holder could not
ask for.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from typing import Final

import msgspec
from msgspec import Struct

_VERSION: Final = "1"
_CHECKSUM_BYTES: Final = 8

_encode = msgspec.msgpack.Encoder().encode


class Cursor(Struct, frozen=True, array_like=True):
    """The place behind the counter ``after`` of a shard."""

    stream_arn: str
    shard_id: str
    after: int
    issued_epoch_ms: int


class _Hidden(Struct, frozen=True, array_like=True):
    shard_id: str
    after: int
    issued_epoch_ms: int


_decode = msgspec.msgpack.Decoder(_Hidden).decode


def encode(cursor: Cursor) -> str:
    """The text that a client gets."""
    hidden = _encode(_Hidden(cursor.shard_id, cursor.after, cursor.issued_epoch_ms))
    checked = _checksum(cursor.stream_arn, hidden) + hidden
    return f"{cursor.stream_arn}|{_VERSION}|{urlsafe_b64encode(checked).decode()}"


def parse(text: str) -> Cursor | None:
    """The cursor that a client gives back; None if it is none that was handed out."""
    arn, _, rest = text.partition("|")
    version, _, coded = rest.partition("|")
    if version != _VERSION:
        return None
    try:
        checked = urlsafe_b64decode(coded.encode())
    except ValueError:
        return None
    checksum, hidden = checked[:_CHECKSUM_BYTES], checked[_CHECKSUM_BYTES:]
    # A decoder of base64 passes over what it does not know: only what we would write is ours.
    if urlsafe_b64encode(checked).decode() != coded or checksum != _checksum(arn, hidden):
        return None
    place = _decode(hidden)
    return Cursor(arn, place.shard_id, place.after, place.issued_epoch_ms)


def _checksum(stream_arn: str, hidden: bytes) -> bytes:
    parts = stream_arn.encode(errors="surrogatepass") + b"|" + hidden
    return blake2b(parts, digest_size=_CHECKSUM_BYTES, person=b"shard iterator").digest()
