"""Checks only the JSON types of attribute values."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from dynactor.model.errors import ValidationException
from dynactor.model.limits import NESTING_LEVELS
from dynactor.model.values import attribute_value


def check_attribute_value(value: Any, level: int = 1, *, in_collection: bool = True) -> None:
    """Refuse a value whose JSON types are not those of an attribute value.

    ``in_collection``: the value is an element of a map or list rather than a member of a structure.

    The messages are those of ``attribute_value.check``. But ``check`` stops at the first error of
    any kind, and this function looks for JSON types only. It ignores levels below the deepest valid
    one.
    """
    if level > NESTING_LEVELS + 1:
        return
    if value is None:
        return
    if type(value) is not dict:
        attribute_value.structure(value, in_collection=in_collection)
        return
    for type_name, content in value.items():
        if type_name == "M" and type(content) is dict:
            for member in content.values():
                check_attribute_value(member, level + 1)
        elif type_name == "L" and type(content) is list:
            for member in content:
                check_attribute_value(member, level + 1)
        else:
            _check_alone({type_name: content})


def _check_alone(value: Any) -> None:
    # The operation itself reports values with valid JSON types and invalid contents.
    with suppress(ValidationException):
        attribute_value.check(value)
