"""Items as plain JSON, without DynamoDB's types, for consumers that don't know them.

Some information is lost: which arrays were sets, and which strings were binaries (base64) or
numbers that a double can't represent. Sets keep their stored order, which is ascending.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from msgspec import Raw

from dynactor.model.values.attribute_value import AttributeValue
from dynactor.model.values.item import Item

# Each decimal with this many digits maps to a distinct double.
_EXACT_DIGITS: Final = 15
# Integers with this many characters fit in 64 bits. A longer one is written with an exponent, so no
# parser reads it as such an integer.
_INTEGER_CHARACTERS: Final = 18


def plain_item(item: Item) -> dict[str, Any]:
    """The attributes of an item or map, ready for msgspec's encoder."""
    return {name: plain(value) for name, value in item.items()}


def plain(value: AttributeValue) -> Any:
    """The content of a checked value, ready for msgspec's encoder."""
    for type_name, content in value.items():
        if type_name == "N":
            return number(content)
        if type_name == "M":
            return plain_item(content)
        if type_name == "L":
            return [plain(member) for member in content]
        if type_name == "NS":
            return numbers(content)
        return None if type_name == "NULL" else content
    raise AssertionError("a checked value has one type")


def number(text: str) -> Raw | str:
    """A JSON number if a double represents all digits of this canonical number, or its text."""
    if len(text) <= _EXACT_DIGITS:
        return Raw(text.encode())
    nearest = repr(float(text))
    if Decimal(nearest) != Decimal(text):
        return text
    return Raw((text if len(text) <= _INTEGER_CHARACTERS else nearest).encode())


def numbers(texts: list[str]) -> list[Raw | str]:
    """JSON numbers if that is exact for all; otherwise strings, so that the array has one type."""
    found = [number(text) for text in texts]
    return list(texts) if any(isinstance(member, str) for member in found) else found
