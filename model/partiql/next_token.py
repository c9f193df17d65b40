"""NextToken: the position at which a SELECT continues, sealed against use with other statements.

Messages were observed on the service.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Struct

from dynactor.model.errors import ValidationException
from dynactor.model.values.attribute_value import AttributeValue
from dynactor.model.values.item import Item

_SEAL_BYTES: Final = 16


class Position(Struct, frozen=True):
    """The next range of the plan, and the key of the last item read from that range."""

    range_index: int
    last_key: Item | None = None


class _PageToken(Struct, frozen=True, array_like=True):
    version: int
    seal: bytes
    range_index: int
    last_key: Item | None


_VERSION: Final = 1
_decode = msgspec.json.Decoder(_PageToken).decode


def next_token(position: Position, text: str, parameters: Sequence[AttributeValue]) -> str:
    """The token for a statement that continues at this position."""
    seal = _seal(text, parameters)
    token = _PageToken(_VERSION, seal, position.range_index, position.last_key)
    return b64encode(msgspec.json.encode(token)).decode()


def read_position(token: str, text: str, parameters: Sequence[AttributeValue]) -> Position:
    """The position at which the statement continues; raises ``ValidationException``."""
    try:
        read = _decode(b64decode(token, validate=True))
    except (Base64Error, ValueError, msgspec.MsgspecError):
        raise invalid() from None
    if read.version != _VERSION or read.range_index < 0:
        raise invalid()
    if read.seal != _seal(text, parameters):
        raise ValidationException("NextToken does not match request")
    return Position(read.range_index, read.last_key)


def invalid() -> ValidationException:
    """The error for an invalid token."""
    return ValidationException("Invalid NextToken")


def _seal(text: str, parameters: Sequence[AttributeValue]) -> bytes:
    statement = msgspec.json.encode((text, parameters), order="sorted")
    return sha256(statement).digest()[:_SEAL_BYTES]
