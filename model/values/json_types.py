"""Converts JSON values to strings, numbers and lists as DynamoDB's parser does.

The parser accepts some values of another type (``"true"`` for a boolean, 5.5 for an integer). It
refuses others with a SerializationException that names a Java type.

Source: dynalite 4, measured on AWS.
"""

from __future__ import annotations

from math import floor
from typing import Any, Final

from dynactor.model.errors import SerializationException

# The maxima of Java's types. A minimum is the negated maximum minus 1.
INTEGER_MOST: Final = 2**31 - 1
LONG_MOST: Final = 2**63 - 1

_LARGEST: Final = {"Integer": INTEGER_MOST, "Long": LONG_MOST}
_TRUE_TEXTS: Final = frozenset({"TRUE", "1", "YES"})
_FALSE_TEXTS: Final = frozenset({"FALSE", "0", "NO"})


def string(value: Any) -> str:
    """Convert a JSON value to a string."""
    if type(value) is str:
        return value
    raise _not_converted(value, "String")


def boolean(value: Any) -> bool:
    """A boolean, or a string that spells one."""
    if type(value) is bool:
        return value
    if type(value) is str:
        text = value.upper()
        if text in _TRUE_TEXTS:
            return True
        if text in _FALSE_TEXTS:
            return False
        raise SerializationException("Unexpected token received from parser")
    raise _not_converted(value, "Boolean")


def base64_text(value: Any) -> str:
    """The text of a binary, not yet checked to be base64."""
    if type(value) is str:
        return value
    if type(value) is list:
        raise SerializationException("Unrecognized collection type class java.nio.ByteBuffer")
    raise SerializationException(
        "Start of structure or map found where not expected"
        if type(value) is dict
        else "only base-64-encoded strings are convertible to bytes"
    )


def integer(value: Any, java_type: str) -> int:
    """A number of Java's type "Integer" or "Long", rounded down and clamped to its range."""
    if type(value) is int or type(value) is float:
        largest = _LARGEST[java_type]
        return max(-largest - 1, min(floor(value), largest))
    raise _not_converted(value, java_type)


def timestamp(value: Any) -> float:
    """A time in epoch seconds, clamped to the range of Java's long."""
    if type(value) is int or type(value) is float:
        largest = _LARGEST["Long"]
        return float(max(-largest, min(value, largest)))
    raise _not_converted(value, "Date")


def array(value: Any) -> list[Any]:
    """A list."""
    if type(value) is list:
        return value
    raise SerializationException(
        "Start of structure or map found where not expected"
        if type(value) is dict
        else "Unexpected field type"
    )


def mapping(value: Any, element_class: str) -> dict[str, Any]:
    """A map of strings to elements of a Java class."""
    if type(value) is dict:
        return value
    raise SerializationException(
        f"Unrecognized collection type java.util.Map<java.lang.String, {element_class}>"
        if type(value) is list
        else "Unexpected field type"
    )


def structure(value: Any, java_class: str, *, in_collection: bool) -> dict[str, Any]:
    """A JSON object, which is a member of a structure or an element of a list or map."""
    if type(value) is dict:
        return value
    if type(value) is list:
        raise SerializationException(f"Unrecognized collection type class {java_class}")
    raise SerializationException(
        "Unexpected value type in payload" if in_collection else "Unexpected field type"
    )


def _not_converted(value: Any, java_type: str) -> SerializationException:
    if type(value) is list:
        return SerializationException(f"Unrecognized collection type class java.lang.{java_type}")
    if type(value) is dict:
        return SerializationException("Start of structure or map found where not expected")
    if type(value) is bool:
        found = "TRUE_VALUE" if value else "FALSE_VALUE"
    elif type(value) is str:
        found = "STRING_VALUE"
    else:
        found = "NUMBER_VALUE" if type(value) is int else "DECIMAL_VALUE"
    return SerializationException(f"{found} cannot be converted to {java_type}")
