"""The header of a CSV file, or a choice, gives each column a type; otherwise it has strings."""

from __future__ import annotations

from typing import Any

import pytest

from dynactor.model.files.csv_columns import CsvTypes
from dynactor.model.files.records import BadContent, Csv, Fault, Record

TYPES = CsvTypes(["pk"], {"pk": "S", "n": "N"})


def read(text: str, types: CsvTypes = TYPES) -> list[Record | Fault]:
    records = Csv(types, ",", None)
    return [*records.feed(text.encode()), *records.end()]


def only(text: str, types: CsvTypes = TYPES) -> dict[str, Any]:
    [record] = read(text, types)
    assert isinstance(record, Record), record
    return record.item


def test_a_cell_is_a_string_whatever_it_looks_like():
    item = only('pk,n,zip,price,version,tags\na,7,01234,1.50,1.10,"[{""S"":""x""}]"\n')
    assert item == {
        "pk": {"S": "a"},
        "n": {"N": "7"},
        "zip": {"S": "01234"},
        "price": {"S": "1.50"},
        "version": {"S": "1.10"},
        "tags": {"S": '[{"S":"x"}]'},
    }


@pytest.mark.parametrize(
    ("type_name", "cell", "value"),
    [
        ("S", "01", {"S": "01"}),
        ("N", "1.50", {"N": "1.50"}),
        ("B", "AAE=", {"B": "AAE="}),
        ("BOOL", "false", {"BOOL": False}),
        ("NULL", "true", {"NULL": True}),
        ("M", '"{""a"":{""N"":""1""}}"', {"M": {"a": {"N": "1"}}}),
        ("L", '"[{""S"":""x""},{""NULL"":true}]"', {"L": [{"S": "x"}, {"NULL": True}]}),
        ("SS", '"[""x"",""y""]"', {"SS": ["x", "y"]}),
        ("NS", '"[""1"",""2.5""]"', {"NS": ["1", "2.5"]}),
        ("BS", '"[""AAE=""]"', {"BS": ["AAE="]}),
        ("JSON", '"{""S"":""""}"', {"S": ""}),
        ("JSON", '"{""M"":{}}"', {"M": {}}),
    ],
)
def test_a_type_in_the_header_or_a_chosen_one_decides_about_the_cells(
    type_name: str, cell: str, value: dict[str, Any]
):
    expected = {"pk": {"S": "a"}, "x": value}
    assert only(f"pk:S,x:{type_name}\na,{cell}\n") == expected
    assert only(f"pk,x\na,{cell}\n", TYPES._replace(chosen={"x": type_name})) == expected
    assert only(f"pk:S,x:S\na,{cell}\n", TYPES._replace(chosen={"x": type_name})) == expected


def test_a_type_in_the_header_goes_before_the_declared_one():
    assert only("pk:S,n:S\na,7\n") == {"pk": {"S": "a"}, "n": {"S": "7"}}


@pytest.mark.parametrize(
    "header", ["pk,price:N", "pk,price:N,n:N", "pk:S,price:N,pk", "other,price:N", "a:S,price:X"]
)
def test_a_header_that_aws_can_import_or_without_all_types_is_taken_literally(header: str):
    names = header.split(",")
    assert list(only(f"{header}\n{','.join('1' for _ in names)}\n")) == names


def test_a_key_whose_name_ends_like_a_type_is_found_in_the_header():
    types = CsvTypes(["a:S"], {"a:S": "S"})
    assert only("a:S,price:N\nx,1\n", types) == {"a:S": {"S": "x"}, "price:N": {"S": "1"}}


@pytest.mark.parametrize(
    ("type_name", "cell", "words"),
    [
        ("BOOL", "yes", "x: the cell is neither true nor false"),
        ("L", "[1", "x: the cell is not DynamoDB JSON"),
        ("JSON", "5", "x: the cell is not a value"),
    ],
)
def test_a_cell_without_a_value_of_its_type_is_a_fault(type_name: str, cell: str, words: str):
    found = read(f"pk:S,x:{type_name}\na,{cell}\nb,\n")
    fault, record = found
    assert isinstance(fault, Fault)
    assert (fault.line, fault.message.startswith(words)) == (2, True)
    assert isinstance(record, Record)


@pytest.mark.parametrize(
    ("header", "chosen", "words"),
    [
        ("pk:S,x:S,x:N", {}, "occurs twice"),
        ("pk:S,:N", {}, "has no name"),
        ("pk,x", {"y": "N"}, "the header has no column y"),
    ],
)
def test_a_header_without_the_chosen_or_distinct_names_ends_the_file(
    header: str, chosen: dict[str, str], words: str
):
    with pytest.raises(BadContent, match=words):
        read(f"{header}\na,b,c\n", TYPES._replace(chosen=chosen))
