"""Corrections of violations, from an edited report of ``dynactor violations``.

A line has a new value in ``correction``, or a Y in ``delete``, as in AWS's violation detector. A
line without either is skipped.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from dynactor.api.commands.violation_detector import (
    ItemViolation,
    Target,
    is_possible,
    item_violations,
)
from dynactor.model.errors import DynamoDBError
from dynactor.model.keys.key import KeyAttribute
from dynactor.model.limits import ITEM_SIZE_BYTES
from dynactor.model.values import attribute_value
from dynactor.model.values.attribute_value import AttributeValue
from dynactor.model.values.item import Item

_YES: Final = frozenset({"y", "yes", "true"})
_NO: Final = frozenset({"", "n", "no", "false"})
# The JSON of the largest value, with escapes.
_FIELD_CHARACTERS: Final = 6 * ITEM_SIZE_BYTES
_encode = msgspec.json.Encoder(order="sorted").encode


class BadCorrection(Exception):
    """A line of the file is invalid; the message names the line."""


class Corrections(Struct, frozen=True):
    """The contents of a file: the violations of each item, and their new values."""

    violations: Sequence[list[ItemViolation]]
    values: Mapping[tuple[bytes, str], AttributeValue]

    def new_value(self, violation: ItemViolation) -> AttributeValue | None:
        """The new value; ``{}`` to remove the attribute, None to keep the old value."""
        return self.values.get((_encode(violation.key), violation.attribute.name))


def read_corrections(path: Path, form: Literal["csv", "json"], target: Target) -> Corrections:
    """Read and check all corrections in a file; raises ``OSError`` or ``BadCorrection``."""
    items: dict[bytes, list[ItemViolation]] = {}
    values: dict[tuple[bytes, str], AttributeValue] = {}
    for number, line in _lines(path, form):
        try:
            violation, value = _correction(line, target)
        except (ValueError, KeyError, TypeError, AttributeError, DynamoDBError) as error:
            raise BadCorrection(f"{path}, line {number}: {_reason(error)}") from None
        item = _encode(violation.key)
        if any(one.attribute == violation.attribute for one in items.get(item, ())):
            raise BadCorrection(f"{path}, line {number}: an earlier line has the same value")
        items.setdefault(item, []).append(violation)
        if value is not None:
            values[item, violation.attribute.name] = value
    return Corrections(list(items.values()), values)


def _lines(path: Path, form: Literal["csv", "json"]) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            if form == "csv":
                csv.field_size_limit(_FIELD_CHARACTERS)
                reader = csv.DictReader(file)
                for line in reader:
                    yield reader.line_num, dict(line)
            else:
                for number, text in enumerate(file, 1):
                    if text.strip():
                        yield number, msgspec.json.decode(text, type=dict[str, Any])
    except (csv.Error, UnicodeDecodeError, msgspec.MsgspecError) as error:
        raise BadCorrection(f"{path} is not a report of violations: {error}") from None


def _correction(
    line: Mapping[str, Any], target: Target
) -> tuple[ItemViolation, AttributeValue | None]:
    """A violation and its new value: ``{}`` to remove the attribute, None to keep the old value."""
    key: Item = _value(line["key"])
    if key.keys() != set(target.table_key):
        raise ValueError(f"the attributes of the key are not those of {target.table_name}'s key")
    name = line["attribute"]
    attribute = next((one for one in target.index_key.attributes if one.name == name), None)
    if attribute is None:
        raise ValueError(f"{name} is not part of the index's key")
    value: AttributeValue = _value(line["value"])
    for content in (*key.values(), value):
        attribute_value.check(content)
    # A line has one attribute. A violation that the check of this attribute does not find is an
    # index key that is too long together with other attributes.
    found = item_violations(target, key | {attribute.name: value})
    reasons = [one.reason for one in found if one.attribute == attribute]
    violation = ItemViolation(key, attribute, value, reasons[0] if reasons else "too long together")
    return violation, _new_value(line, target, attribute)


def _new_value(
    line: Mapping[str, Any], target: Target, attribute: KeyAttribute
) -> AttributeValue | None:
    text = str(line.get("correction") or "")
    answer = str(line.get("delete") or "").strip().lower()
    if answer not in _YES | _NO:
        raise ValueError(f"delete is Y or N, not {answer}")
    if answer in _YES:
        if text:
            raise ValueError("there is a correction, and delete is Y")
        return {}
    if not text:
        return None
    value: AttributeValue = {attribute.type: text}
    attribute_value.check(value)
    if not is_possible(target.index_key, attribute, value):
        raise ValueError(f"{text} would be a violation itself")
    return value


def _value(text: Any) -> Any:
    """A key or value: JSON text in a CSV file, JSON itself in a JSON file."""
    return msgspec.json.decode(text, type=dict[str, Any]) if isinstance(text, str) else text


def _reason(error: Exception) -> str:
    return f"there is no {error}" if isinstance(error, KeyError) else str(error)
