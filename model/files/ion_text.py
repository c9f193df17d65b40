"""Writes items as Amazon Ion text, as DynamoDB exports them.

Numbers are decimals. Sets are lists with an annotation. Source: Developer Guide, "DynamoDB table
export output format", Amazon Ion.
"""

from __future__ import annotations

import re
from typing import Any, Final

from dynactor.model.values.item import Item

# Names of other forms are quoted.
_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z", re.ASCII)
_KEYWORDS: Final = frozenset(("null", "true", "false", "nan"))
_SYMBOL_ID: Final = re.compile(r"\$[0-9]+\Z", re.ASCII)
_ESCAPED: Final = re.compile(r'[\x00-\x1f\x7f"\'\\]')
_MARKER: Final = "$ion_1_0 "


def record_line(**members: Item | str) -> bytes:
    """One line of an export: a struct of items and of values that are Ion text already."""
    fields = (
        f"{name}:{value if isinstance(value, str) else item_struct(value)}"
        for name, value in members.items()
    )
    return f"{_MARKER}{{{','.join(fields)}}}\n".encode()


def item_struct(item: Item) -> str:
    """An item, or a map in an item."""
    return "{" + ",".join(f"{_symbol(name)}:{_value(each)}" for name, each in item.items()) + "}"


def _value(value: dict[str, Any]) -> str:
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return _string(content)
        case "N":
            return _number(content)
        case "B":
            return _blob(content)
        case "BOOL":
            return "true" if content else "false"
        case "NULL":
            return "null"
        case "M":
            return item_struct(content)
        case "L":
            return f"[{','.join(map(_value, content))}]"
        case "SS":
            return f"$dynamodb_SS::[{','.join(map(_string, content))}]"
        case "NS":
            return f"$dynamodb_NS::[{','.join(map(_number, content))}]"
        case "BS":
            return f"$dynamodb_BS::[{','.join(map(_blob, content))}]"
    raise AssertionError(kind)


def _number(text: str) -> str:
    """A decimal: an exponent after ``e`` would make a float."""
    mantissa, separator, exponent = text.upper().partition("E")
    if separator:
        return f"{mantissa}d{int(exponent)}"
    return mantissa if "." in mantissa else f"{mantissa}."


def _blob(base64: str) -> str:
    return f"{{{{{base64}}}}}"


def _string(text: str) -> str:
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _symbol(name: str) -> str:
    is_plain = _IDENTIFIER.match(name) and name not in _KEYWORDS and not _SYMBOL_ID.match(name)
    return name if is_plain else f"'{_ESCAPED.sub(_escape, name)}'"


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return f"\\{character}" if character in "\"'\\" else f"\\x{ord(character):02x}"
