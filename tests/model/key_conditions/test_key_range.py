"""Ranges of positions, compared with the values that they select."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable

import pytest

from dynactor.model.key_conditions import key_range
from dynactor.model.key_conditions.key_condition import KeyCondition, KeyOperator, SortCondition
from dynactor.model.keys import key as keys
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.values.attribute_value import AttributeValue

SCHEMA = KeySchema((KeyAttribute("p", "S"),), (KeyAttribute("s", "B"),))
TABLE_KEY = KeySchema((KeyAttribute("p", "S"),), (KeyAttribute("t", "B"),))

# Zero bytes are escaped, and the ends of ranges contain 255.
BINARIES = (
    b"\x00",
    b"\x00\xff",
    b"a",
    b"a\x00",
    b"a\x00\xff",
    b"a\xff",
    b"b",
    b"\xfe",
    b"\xff",
    b"\xff\x00",
    b"\xff\xff\xff",
    b"\xff\xff\xff\x01",
    b"\xff" * 10,
)
SINGLE: dict[KeyOperator, Callable[[bytes, bytes], bool]] = {
    "=": lambda value, bound: value == bound,
    "<": lambda value, bound: value < bound,
    "<=": lambda value, bound: value <= bound,
    ">": lambda value, bound: value > bound,
    ">=": lambda value, bound: value >= bound,
    "begins_with": lambda value, bound: value.startswith(bound),
}


def binary(raw: bytes) -> AttributeValue:
    return {"B": b64encode(raw).decode()}


def found(*sort: SortCondition) -> list[bytes]:
    """The sort values in the range of a condition, with any table key after them."""
    condition = KeyCondition(({"S": "k"},), sort)
    wanted = key_range.selected_range(condition)
    values = []
    for raw in BINARIES:
        item = {"p": {"S": "k"}, "s": binary(raw)}
        position = keys.encode(SCHEMA, item)
        of_index = [
            position + keys.encode_sort(TABLE_KEY, {"t": binary(behind)}) for behind in BINARIES
        ]
        inside = {key_range.contains(wanted, one) for one in (position, *of_index)}
        assert len(inside) == 1, f"{raw!r} is in the range or not, with all that follows it"
        if inside == {True}:
            values.append(raw)
    return values


def test_a_partition_key_alone_has_every_sort_value() -> None:
    assert found() == list(BINARIES)


@pytest.mark.parametrize("operator", SINGLE)
@pytest.mark.parametrize("bound", BINARIES, ids=bytes.hex)
def test_an_operator_takes_the_values_for_which_it_holds(
    operator: KeyOperator, bound: bytes
) -> None:
    holds = SINGLE[operator]
    wanted = [value for value in BINARIES if holds(value, bound)]
    assert found(SortCondition("s", operator, (binary(bound),))) == wanted


@pytest.mark.parametrize("upper", BINARIES, ids=bytes.hex)
def test_between_includes_both_bounds(upper: bytes) -> None:
    for lower in BINARIES:
        wanted = [value for value in BINARIES if lower <= value <= upper]
        bounds = (binary(lower), binary(upper))
        assert found(SortCondition("s", "BETWEEN", bounds)) == wanted
