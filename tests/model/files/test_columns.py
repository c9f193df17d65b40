"""Types of columns, found from the values of items."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from dynactor.model.files.columns import Columns, ColumnType, cell


def type_of(*values: dict[str, Any], doubles: bool = False) -> ColumnType:
    columns = Columns()
    for value in values:
        columns.add({"a": value})
    return columns.types(doubles=doubles)["a"]


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ([{"S": "x"}], ColumnType("string")),
        ([{"BOOL": True}, {"NULL": True}], ColumnType("boolean")),
        ([{"B": "AAE="}], ColumnType("binary")),
        ([{"N": "0"}], ColumnType("decimal", precision=1)),
        ([{"N": "-12.5"}, {"N": "0.125"}], ColumnType("decimal", precision=5, scale=3)),
        ([{"N": "9" * 38}], ColumnType("decimal", precision=38)),
        ([{"N": "9" * 38}, {"N": "0.1"}], ColumnType("string")),
        ([{"NS": ["1", "2.5"]}], ColumnType("decimal", is_list=True, precision=2, scale=1)),
        ([{"SS": ["x"]}], ColumnType("string", is_list=True)),
        ([{"N": "1"}, {"S": "x"}], ColumnType("json")),
        ([{"N": "1"}, {"NS": ["1"]}], ColumnType("json")),
        ([{"M": {}}], ColumnType("json")),
        ([{"NULL": True}], ColumnType("string")),
    ],
)
def test_a_type_fits_all_values(values: list[dict[str, Any]], column: ColumnType):
    assert type_of(*values) == column


def test_numbers_are_doubles_only_on_request():
    assert type_of({"N": "1"}, doubles=True) == ColumnType("double")


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ({"B": "AAE="}, b"\x00\x01"),
        ({"NS": ["1", "2.5"]}, [Decimal("1.0"), Decimal("2.5")]),
        ({"N": "-" + "9" * 38}, Decimal("-" + "9" * 38)),
        (
            {"M": {"n": {"N": "1.10"}, "s": {"NS": ["1"]}, "l": {"L": [{"NULL": True}]}}},
            '{"n":1.10,"s":[1],"l":[null]}',
        ),
        ({"NULL": True}, None),
        (None, None),
    ],
)
def test_a_cell_has_the_whole_value(value: dict[str, Any] | None, content: Any):
    column = ColumnType("string") if value is None else type_of(value)
    assert cell(value, column) == content
