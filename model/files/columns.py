"""Columns for the attributes of a table, with types found from the values of all items.

A column of numbers is a decimal if all its numbers have at most 38 digits at one scale; otherwise
the numbers are strings, because a double would round them. Maps, lists and attributes with several
types are JSON.
"""

from __future__ import annotations

from base64 import b64decode
from decimal import Context, Decimal
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from dynactor.model.values.attribute_value import SET_TYPES
from dynactor.model.values.item import Item

# The most digits of a decimal of 128 bits.
DECIMAL_DIGITS: Final = 38

Kind: TypeAlias = Literal["string", "boolean", "binary", "decimal", "double", "json"]

_EXACT: Final = Context(prec=200)
_KINDS: Final[dict[str, Kind]] = {"S": "string", "BOOL": "boolean", "B": "binary"}

_encode = msgspec.json.Encoder().encode


class ColumnType(Struct, frozen=True):
    """The type of a column's values; ``scale`` is the number of digits after the point."""

    kind: Kind
    is_list: bool = False
    precision: int = 0
    scale: int = 0


class Column:
    """Collects the types of one attribute's values."""

    def __init__(self) -> None:
        self._types: set[str] = set()
        self._whole_digits = 0
        self._scale = 0

    def add(self, type_name: str, content: Any) -> None:
        """Note one value."""
        if type_name == "NULL":
            return
        self._types.add(type_name)
        if type_name == "N":
            self._add_number(content)
        elif type_name == "NS":
            for number in content:
                self._add_number(number)

    def _add_number(self, text: str) -> None:
        whole, _, fraction = text.removeprefix("-").partition(".")
        self._whole_digits = max(self._whole_digits, len(whole.lstrip("0")))
        self._scale = max(self._scale, len(fraction))

    def type(self, *, doubles: bool = False) -> ColumnType:
        """The type of all values so far. ``doubles``: numbers may be rounded to doubles."""
        if not self._types:
            return ColumnType("string")
        if len(self._types) > 1:
            return ColumnType("json")
        [type_name] = self._types
        is_list = type_name in SET_TYPES
        element = type_name[0] if is_list else type_name
        if element != "N":
            return ColumnType(_KINDS.get(element, "json"), is_list)
        if doubles:
            return ColumnType("double", is_list)
        precision = self._whole_digits + self._scale
        if precision > DECIMAL_DIGITS:
            return ColumnType("string", is_list)
        return ColumnType("decimal", is_list, max(precision, 1), self._scale)


class Columns:
    """Collects the columns of a table, in the order in which the items show them."""

    def __init__(self) -> None:
        self._columns: dict[str, Column] = {}

    def add(self, item: Item) -> None:
        """Note the attributes of a checked item."""
        for name, value in item.items():
            column = self._columns.get(name)
            if column is None:
                column = self._columns[name] = Column()
            for type_name, content in value.items():
                column.add(type_name, content)

    def types(self, *, doubles: bool = False) -> dict[str, ColumnType]:
        """The columns with their types."""
        return {name: column.type(doubles=doubles) for name, column in self._columns.items()}


def cell(value: dict[str, Any] | None, column: ColumnType) -> Any:
    """A value as an element of its column; None for no value."""
    if value is None:
        return None
    [(type_name, content)] = value.items()
    if type_name == "NULL":
        return None
    if column.kind == "json":
        return _encode(_plain(type_name, content)).decode()
    if column.is_list:
        return [_element(each, column) for each in content]
    return _element(content, column)


def _element(content: Any, column: ColumnType) -> Any:
    match column.kind:
        case "binary":
            return b64decode(content)
        case "decimal":
            return Decimal(content).quantize(Decimal((0, (1,), -column.scale)), context=_EXACT)
        case "double":
            return float(content)
        case _:
            return content


def _plain(type_name: str, content: Any) -> Any:
    """A value as plain JSON. Numbers keep all their digits."""
    match type_name:
        case "NULL":
            return None
        case "N":
            return msgspec.Raw(content.encode())
        case "NS":
            return [msgspec.Raw(number.encode()) for number in content]
        case "M":
            return {
                name: _plain(value_type, member)
                for name, value in content.items()
                for value_type, member in value.items()
            }
        case "L":
            return [
                _plain(value_type, element)
                for value in content
                for value_type, element in value.items()
            ]
        case _:
            return content
