"""Amazon Ion: text with one value in each line, or binary, with the member ``Item`` in each value.

The package ``amazon.ion`` decodes values. Binary files are divided here, by the lengths of their
top-level values, because the package reads only whole files.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any, Final

from dynactor.model.files.records import (
    UNDECODABLE,
    BadContent,
    Fault,
    Lines,
    Record,
    Records,
)

_BINARY: Final = b"\xe0\x01\x00\xea"
_VALUE_BYTES: Final = 16 * 1024 * 1024
# Type codes and lengths of binary Ion (amazon-ion.github.io/ion-docs/docs/binary.html).
_NOP, _BOOL, _STRUCT, _ANNOTATION = 0, 1, 13, 14
_LONG, _NULL = 14, 15
_SORTED_STRUCT: Final = 1
_MORE_BITS: Final = 7
_LAST: Final = 0x80
# The symbol $ion_symbol_table.
_SYMBOL_TABLE: Final = 0x83
_SETS: Final = {"$dynamodb_SS": "SS", "$dynamodb_NS": "NS", "$dynamodb_BS": "BS"}
_NUMBERS: Final = frozenset(("INT", "DECIMAL", "FLOAT"))
_CONDITION: Final = frozenset(
    ("ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues")
)


class IonMissing(Exception):
    """The package for Ion is not installed."""


class _UnsupportedIon(Exception):
    """The value has no form in DynamoDB."""


class IonLibrary:
    """Decodes single values."""

    def __init__(self) -> None:
        try:
            from amazon.ion import exceptions, simpleion  # noqa: PLC0415 - an extra
        except ImportError:
            raise IonMissing from None
        self._library: Any = simpleion
        self._errors: Any = (
            exceptions.IonException,
            ValueError,
            TypeError,
            ArithmeticError,
            RecursionError,
        )

    def record(self, number: int, text: bytes) -> Record | Fault:
        """The record with the only value of an Ion text or binary."""
        try:
            value = self._library.loads(text)
        except self._errors as error:
            return Fault(number, text, UNDECODABLE, f"The value is not Ion: {error}")
        item = value.get("Item") if _kind(value) == "STRUCT" else None
        if item is None or _kind(item) != "STRUCT":
            message = "The value is not a struct with the member Item"
            return Fault(number, text, UNDECODABLE, message)
        try:
            return Record(number, text, _members(item), _condition_members(value))
        except (_UnsupportedIon, RecursionError) as error:
            return Fault(number, text, UNDECODABLE, str(error))


class IonDecoder:
    """Decodes the records of one file; its first bytes tell text from binary."""

    def __init__(self) -> None:
        self._library = IonLibrary()
        self._begin: bytes | None = b""
        self._form: _IonText | _IonBinary = _IonText(self._library)

    def feed(self, data: bytes) -> Records:
        """The records that end in this part of the file."""
        if self._begin is not None:
            data = self._begin + data
            self._begin = data if len(data) < len(_BINARY) else None
            if self._begin is not None:
                return iter(())
            if data.startswith(_BINARY):
                self._form = _IonBinary(self._library)
        return self._form.feed(data)

    def end(self) -> Records:
        """The last record."""
        begin, self._begin = self._begin, None
        if begin:
            yield from self._form.feed(begin)
        yield from self._form.end()


class _IonText(Lines):
    """Text with one value in each line."""

    def __init__(self, library: IonLibrary) -> None:
        super().__init__()
        self._library = library

    def record(self, number: int, text: bytes) -> Record | Fault:
        return self._library.record(number, text)


class _IonBinary:
    """Top-level values, each decoded with the symbol tables before it."""

    def __init__(self, library: IonLibrary) -> None:
        self._library = library
        self._rest = b""
        self._context = _BINARY
        self._number = 0

    def feed(self, data: bytes) -> Records:
        self._rest += data
        at = 0
        while (end := self._value_end(at)) is not None:
            value = self._rest[at:end]
            at = end
            if value == _BINARY:
                self._context = _BINARY
            elif _is_symbol_table(value):
                self._context += value
            elif value[0] >> 4 != _NOP:
                self._number += 1
                yield self._library.record(self._number, self._context + value)
        self._rest = self._rest[at:]

    def end(self) -> Records:
        if self._rest:
            raise BadContent("the last Ion value is truncated")
        return iter(())

    def _value_end(self, at: int) -> int | None:
        """The end of the value at a place; None if more data is needed."""
        data = self._rest
        if at >= len(data):
            return None
        if data[at] == _BINARY[0]:
            end = at + len(_BINARY)
        else:
            kind, length = data[at] >> 4, data[at] & 0x0F
            at += 1
            if kind == _BOOL or length == _NULL:
                length = 0
            elif length == _LONG or (kind == _STRUCT and length == _SORTED_STRUCT):
                read = _var_uint(data, at)
                if read is None:
                    return None
                length, at = read
            end = at + length
        if end - at > _VALUE_BYTES:
            raise BadContent(f"an Ion value has more than {_VALUE_BYTES:,} bytes")
        return end if end <= len(data) else None


def _var_uint(data: bytes, at: int) -> tuple[int, int] | None:
    """A number of 7 bits in each byte, and its end; None if more data is needed."""
    number = 0
    for end in range(at, len(data)):
        number = number << _MORE_BITS | data[end] & ~_LAST & 0xFF
        if data[end] & _LAST:
            return number, end + 1
        if number > _VALUE_BYTES:
            raise BadContent(f"an Ion value has more than {_VALUE_BYTES:,} bytes")
    return None


def _is_symbol_table(value: bytes) -> bool:
    if value[0] >> 4 != _ANNOTATION:
        return False
    at = 1
    if value[0] & 0x0F == _LONG:
        read = _var_uint(value, at)
        if read is None:
            return False
        at = read[1]
    # The length of the annotations, then the first annotation.
    read = _var_uint(value, at)
    return read is not None and value[read[1] : read[1] + 1] == bytes([_SYMBOL_TABLE])


def _kind(value: Any) -> str:
    kind = getattr(value, "ion_type", None)
    return "NULL" if kind is None else str(kind.name)


def _members(struct: Any) -> dict[str, Any]:
    return {name: _value(each) for name, each in struct.items()}


def _condition_members(struct: Any) -> dict[str, Any]:
    """The members of a condition beside an item, as in DynamoDB JSON."""
    members: dict[str, Any] = {}
    for name, part in struct.items():
        if name == "ExpressionAttributeValues" and _kind(part) == "STRUCT":
            members[name] = _members(part)
        elif name == "ExpressionAttributeNames" and _kind(part) == "STRUCT":
            members[name] = {alias: _plain(each) for alias, each in part.items()}
        elif name in _CONDITION:
            members[name] = _plain(part)
    return members


def _plain(value: Any) -> Any:
    """A string; other values stay as they are, and are refused later."""
    return str(value) if _kind(value) == "STRING" else value


def _value(value: Any) -> dict[str, Any]:
    kind = _kind(value)
    if kind in _NUMBERS:
        return {"N": str(value)}
    match kind:
        case "STRING":
            return {"S": str(value)}
        case "SYMBOL":
            return {"S": value.text}
        case "BLOB" | "CLOB":
            return {"B": b64encode(bytes(value)).decode()}
        case "BOOL":
            return {"BOOL": bool(value)}
        case "NULL":
            return {"NULL": True}
        case "STRUCT":
            return {"M": _members(value)}
        case "LIST" | "SEXP":
            return _list(value)
    raise _UnsupportedIon(f"DynamoDB has no type for an Ion {kind.lower()}")


def _list(value: Sequence[Any]) -> dict[str, Any]:
    elements = [_value(each) for each in value]
    for annotation in _annotations(value):
        kind = _SETS.get(annotation)
        if kind is not None:
            if any(kind[0] not in each for each in elements):
                raise _UnsupportedIon(f"An element of a set {annotation} has another type")
            return {kind: [each[kind[0]] for each in elements]}
    return {"L": elements}


def _annotations(value: Any) -> Iterator[str]:
    return (each.text for each in value.ion_annotations if each.text is not None)
