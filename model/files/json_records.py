"""Records of JSON files that people and tools write: lines of items, and output of a scan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from dynactor.model.files.records import (
    BOM,
    UNDECODABLE,
    BadContent,
    Fault,
    Lines,
    Record,
    Records,
)
from dynactor.model.values.attribute_value import TYPES

_TYPES: Final = frozenset(TYPES)


class _Number(str):
    """The text of a number with a fraction or an exponent, which a float would round."""

    __slots__ = ()


_decode = msgspec.json.Decoder(float_hook=_Number).decode


class MixedJsonLines(Lines):
    """In each line one item: in DynamoDB JSON, with or without the member ``Item``, or plain JSON.

    Plain JSON has no binary values and no sets. An object is DynamoDB JSON if each of its members
    has one type of DynamoDB.
    """

    def record(self, number: int, text: bytes) -> Record | Fault:
        """The record of a line of JSON."""
        return _record(number, text.strip())


class JsonDocument:
    """One document with all items: the output of ``aws dynamodb scan``, or an array of items."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> Records:
        """Keep a part of the document, which has no records before its end."""
        self._parts.append(data)
        return iter(())

    def end(self) -> Records:
        """The records of the items; raises ``BadContent`` without items, or if it is not JSON."""
        data, self._parts = b"".join(self._parts).removeprefix(BOM), []
        place = line = 0
        for item in _parsed_items(data):
            text = bytes(item)
            # The items are in the order of the document.
            found = data.index(text, place)
            line += data.count(b"\n", place, found)
            yield _record(line + 1, text)
            line += text.count(b"\n")
            place = found + len(text)


class _Dump(msgspec.Struct):
    Items: list[msgspec.Raw]


def _parsed_items(data: bytes) -> list[msgspec.Raw]:
    try:
        if data.lstrip().startswith(b"["):
            return msgspec.json.decode(data, type=list[msgspec.Raw])
        return msgspec.json.decode(data, type=_Dump).Items
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadContent(f"the file is not the output of a scan: {error}") from None


def _record(line: int, text: bytes) -> Record | Fault:
    try:
        decoded = _decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return Fault(line, text, UNDECODABLE, f"The line is not JSON: {error}")
    if type(decoded) is not dict:
        return Fault(line, text, UNDECODABLE, "The line is not an object")
    item = decoded
    if decoded.keys() == {"Item"} and type(decoded["Item"]) is dict:
        item = decoded["Item"]
    if not all(_is_typed(value) for value in item.values()):
        item = {name: _typed(value) for name, value in decoded.items()}
    return Record(line, text, item)


def _is_typed(value: Any) -> bool:
    return type(value) is dict and len(value) == 1 and not value.keys().isdisjoint(_TYPES)


def _typed(value: Any) -> dict[str, Any]:
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case _Number() | int():
            return {"N": str(value)}
        case str():
            return {"S": value}
        case Mapping():
            return {"M": {name: _typed(member) for name, member in value.items()}}
        case _:
            return {"L": [_typed(element) for element in value]}
