"""Attribute values: DynamoDB JSON, checked once and canonical afterwards.

An attribute value is a dict with one entry, its type and its content: ``{"S": "text"}``, ``{"N":
"12.5"}``, ``{"L": [...]}``. Requests, the disk and answers all use this form. Canonical means:
numbers in plain decimal, base64 in its one spelling (any other is refused), sets sorted. So two
values are equal in DynamoDB's sense exactly if ``==`` holds.

Checked values are never changed in place.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Container
from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias, TypeVar

from dynactor.model.errors import SerializationException, ValidationException, invalid_value
from dynactor.model.limits import ATTRIBUTE_NAME_BYTES, NESTING_LEVELS
from dynactor.model.validation_faults import PlainFault, RepeatedMember
from dynactor.model.values import json_types, number, value_types

AttributeValue: TypeAlias = value_types.AttributeValue

_Read = TypeVar("_Read")
_JAVA_CLASS: Final = "com.amazonaws.dynamodb.v20120810.AttributeValue"

TYPES: Final = ("S", "N", "B", "SS", "NS", "BS", "M", "L", "NULL", "BOOL")
SET_TYPES: Final = frozenset({"SS", "NS", "BS"})
# The types that have an order, for keys, ``<`` and BETWEEN.
ORDERED_TYPES: Final = frozenset({"S", "N", "B"})

# "DynamoDB item sizes and formats": a list or map costs 3 bytes and 1 for each element.
_DOCUMENT_BYTES: Final = 3
_ELEMENT_BYTES: Final = 1

# PartiQL's message; all other operations have the longer one.
NESTING: Final = "Nesting Levels have exceeded supported limits"
TOO_DEEP: Final = f"{NESTING}: Attributes in the item have nested levels beyond supported limit"

EMPTY_NAME: Final = "Empty attribute name"
NAME_TOO_LARGE: Final = (
    f"Attribute name is too large, must be less than {ATTRIBUTE_NAME_BYTES + 1} bytes"
)

# The item itself is the first level of nesting (DynamoDB Local 3.3 accepts 31 levels below it).
_ATTRIBUTE_LEVEL: Final = 2

_EMPTY: Final = (
    "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
)
_EMPTY_SETS: Final = {
    "SS": "An string set  may not be empty",
    "NS": "An number set  may not be empty",
    "BS": "Binary sets should not be empty",
}
_SEVERAL: Final = (
    "Supplied AttributeValue has more than one datatypes set, "
    "must contain exactly one of the supported datatypes"
)
_INVALID: Final = "One or more parameter values were invalid: "
_LAST_CHARACTER: Final = "Invalid last non-pad Base64 character dectected"
_NO_BASE64: Final = re.compile(r"[^A-Za-z0-9+/=]")


def data_type(value: AttributeValue) -> str:
    """The type of a value, one of ``TYPES``."""
    for type_name in value:
        return type_name
    raise AssertionError("a checked value has one type")


def check(value: Any, level: int = _ATTRIBUTE_LEVEL) -> int:
    """Check a value fresh from the wire, make it canonical in place, and return its size.

    The size is DynamoDB's, in bytes, without the attribute's name. Raises ``ValidationException``
    with DynamoDB's message for the first fault found, or ``SerializationException`` if a member has
    a JSON type that its shape does not allow.
    """
    if type(value) is not dict:
        _shaped(structure, value)
    if len(value) != 1:
        return _check_odd(value, level)
    for type_name, content in value.items():
        if type_name == "S":
            if type(content) is not str:
                _shaped(json_types.string, content)
            return len(content) if content.isascii() else len(content.encode())
        if type_name == "N":
            if type(content) is not str:
                _shaped(json_types.string, content)
            size_bytes = number.whole_size_bytes(content)
            if size_bytes:
                return size_bytes
            plain = number.canonical(content)
            if plain is not content:
                value["N"] = plain
            return number.size_bytes(plain)
        if type_name == "M":
            return _check_map(content, level)
        if type_name == "L":
            return _check_list(content, level)
        if type_name == "BOOL":
            if type(content) is not bool:
                value["BOOL"] = _shaped(json_types.boolean, content)
            return 1
        if type_name == "NULL":
            if type(content) is not bool:
                value["NULL"] = _shaped(json_types.boolean, content)
            if not value["NULL"]:
                raise invalid_value("Null attribute value types must have the value of true")
            return 1
        if type_name == "B":
            return len(_decode_base64(content))
        if type_name in SET_TYPES:
            return _check_set(value, type_name, content)
    return _check_odd(value, level)


def _check_map(content: Any, level: int) -> int:
    if type(content) is not dict:
        _shaped(_mapping, content)
    if level > NESTING_LEVELS:
        raise _too_deep()
    size_bytes = _DOCUMENT_BYTES
    for name, member in content.items():
        size_bytes += _ELEMENT_BYTES + check(member, level + 1)
        size_bytes += name_size_bytes(name)
    check_names(content)
    return size_bytes


def check_name(name: str) -> None:
    """Refuse a name that is invalid for an attribute; raises ``ValidationException``."""
    check_names((name,))
    name_size_bytes(name)


def name_size_bytes(name: str) -> int:
    """The size of a name of an attribute or a map's member; raises ``ValidationException``."""
    size_bytes = len(name) if name.isascii() else len(name.encode())
    if size_bytes > ATTRIBUTE_NAME_BYTES:
        fault = PlainFault(NAME_TOO_LARGE)
        raise invalid_value(f"{NAME_TOO_LARGE}", fault=fault)
    return size_bytes


def check_names(names: Container[str]) -> None:
    """Refuse empty names of attributes and of map members; raises ``ValidationException``."""
    if "" in names:
        raise ValidationException(EMPTY_NAME)


def _check_list(content: Any, level: int) -> int:
    if type(content) is not list:
        _shaped(json_types.array, content)
    if level > NESTING_LEVELS:
        raise _too_deep()
    size_bytes = _DOCUMENT_BYTES
    for member in content:
        size_bytes += _ELEMENT_BYTES + check(member, level + 1)
    return size_bytes


def _too_deep() -> ValidationException:
    return ValidationException(TOO_DEEP)


def is_too_deep(value: Any, level: int = _ATTRIBUTE_LEVEL) -> bool:
    """Whether a value nests deeper than DynamoDB allows; the value may be unchecked."""
    if type(value) is not dict:
        return False
    members = value.get("L")
    if type(members) is not list:
        content = value.get("M")
        if type(content) is not dict:
            return False
        members = list(content.values())
    return level > NESTING_LEVELS or any(is_too_deep(member, level + 1) for member in members)


def _check_set(value: AttributeValue, type_name: str, content: Any) -> int:
    if type(content) is not list:
        _shaped(json_types.array, content)
    read = json_types.base64_text if type_name == "BS" else json_types.string
    for member in content:
        if type(member) is not str:
            _shaped(read, member)
    if not content:
        message = _INVALID + _EMPTY_SETS[type_name]
        raise ValidationException(message, fault=PlainFault(message))
    if type_name == "SS":
        if len(set(content)) != len(content):
            raise _repeated(
                f"{_INVALID}Input collection [{', '.join(content)}] contains duplicates.",
                "SS",
                content,
            )
        # UTF-8 sorts as code points do, and so does Python's str.
        content.sort()
        return sum(len(member.encode()) for member in content)
    if type_name == "NS":
        plain = [number.canonical(member) for member in content]
        if len(set(plain)) != len(plain):
            raise _repeated("Input collection contains duplicates", "NS", plain)
        plain.sort(key=Decimal)
        value["NS"] = plain
        return sum(map(number.size_bytes, plain))
    raw = [_decode_base64(member) for member in content]
    if len(set(raw)) != len(raw):
        raise _repeated(
            f"{_INVALID}Input collection [{', '.join(content)}]of type BS contains duplicates.",
            "BS",
            content,
        )
    raw.sort()
    value["BS"] = [b64encode(member).decode() for member in raw]
    return sum(map(len, raw))


def _repeated(
    message: str, type_name: Literal["SS", "NS", "BS"], members: list[str]
) -> ValidationException:
    """The error for a set that holds a member twice; equal members are equal texts."""
    seen: set[str] = set()
    for member in members:
        if member in seen:
            break
        seen.add(member)
    order = b64decode if type_name == "BS" else str
    fault = RepeatedMember(type_name, (*sorted(seen, key=order), member))
    return ValidationException(message, fault=fault)


def _check_odd(value: AttributeValue, level: int) -> int:
    """Refuse a value with no known type or with several; unknown members are ignored."""
    known = {
        type_name: content
        for type_name, content in value.items()
        if type_name in TYPES and content is not None
    }
    if not known:
        raise ValidationException(_EMPTY)
    if len(known) > 1:
        for type_name, content in known.items():
            check({type_name: content}, level)
        raise ValidationException(_SEVERAL)
    value.clear()
    value.update(known)
    return check(value, level)


def _decode_base64(content: Any) -> bytes:
    if type(content) is not str:
        _shaped(json_types.base64_text, content)
    if len(content) % 4:
        raise SerializationException(
            f"Base64 encoded length is expected a multiple of 4 bytes but found: {len(content)}"
        )
    try:
        raw = b64decode(content, validate=True)
    except (Base64Error, ValueError):
        raise SerializationException(
            "Invalid Base64 character found in the payload"
            if _NO_BASE64.search(content)
            else _LAST_CHARACTER
        ) from None
    # The last character may encode bits beyond the last byte. Python ignores them, AWS does not.
    if b64encode(raw) != content.encode():
        raise SerializationException(_LAST_CHARACTER)
    return raw


def _shaped(read: Callable[[Any], _Read], content: Any) -> _Read:
    """Convert a content of another JSON type as DynamoDB's parser does; most types are refused.

    Raises ``SerializationException``, or ``ValidationException`` for null, which counts as missing.
    """
    if content is None:
        raise ValidationException(_EMPTY)
    return read(content)


def structure(value: Any, *, in_collection: bool = True) -> dict[str, Any]:
    """The members of an attribute value, nested or alone; raises ``SerializationException``."""
    return json_types.structure(value, _JAVA_CLASS, in_collection=in_collection)


def _mapping(content: Any) -> dict[str, Any]:
    return json_types.mapping(content, _JAVA_CLASS)


def size_bytes(value: AttributeValue) -> int:
    """The DynamoDB size of a checked value, without the attribute's name."""
    for type_name, content in value.items():
        if type_name == "S":
            return len(content) if content.isascii() else len(content.encode())
        if type_name == "N":
            return number.size_bytes(content)
        if type_name == "B":
            return _binary_size_bytes(content)
        if type_name == "M":
            return _DOCUMENT_BYTES + sum(
                len(name.encode()) + _ELEMENT_BYTES + size_bytes(member)
                for name, member in content.items()
            )
        if type_name == "L":
            return _DOCUMENT_BYTES + sum(_ELEMENT_BYTES + size_bytes(member) for member in content)
        if type_name == "SS":
            return sum(len(member.encode()) for member in content)
        if type_name == "NS":
            return sum(map(number.size_bytes, content))
        if type_name == "BS":
            return sum(map(_binary_size_bytes, content))
    return 1


def _binary_size_bytes(base64_text: str) -> int:
    return len(base64_text) * 3 // 4 - base64_text.endswith("=") - base64_text.endswith("==")


def shown(value: AttributeValue) -> str:
    """A checked value as DynamoDB writes it in messages; a binary is shown as a Java buffer."""
    type_name = data_type(value)
    content: Any = value[type_name]
    if type_name == "B":
        count = size_bytes(value)
        content = f"java.nio.HeapByteBuffer[pos=0 lim={count} cap={count}]"
    return f"{{{type_name}:{content}}}"


def order_key(value: AttributeValue) -> bytes:
    """Bytes that order values of one of ``ORDERED_TYPES`` as DynamoDB does.

    Strings by UTF-8, numbers by value, binaries by unsigned bytes. Only values of the same
    type may be compared.
    """
    if "S" in value:
        text: str = value["S"]
        return text.encode()
    if "N" in value:
        return number.encode(value["N"])
    return b64decode(value["B"])
