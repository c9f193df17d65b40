"""Files are divided into records, and faulty records keep their places."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dynactor.model.files.csv_columns import CsvTypes
from dynactor.model.files.records import (
    BadContent,
    Bounded,
    Csv,
    Fault,
    Format,
    JsonLines,
    Record,
)

KEY_TYPES = {"pk": "S", "n": "N"}


def read(records: Format, data: bytes, part_bytes: int = 1_000_000) -> list[Record | Fault]:
    """All records of a file that is read in parts of this size."""
    found: list[Record | Fault] = []
    for at in range(0, len(data), part_bytes):
        found += records.feed(data[at : at + part_bytes])
    return [*found, *records.end()]


def csv(delimiter: str = ",", header: Sequence[str] | None = None) -> Csv:
    return Csv(CsvTypes(["pk"], KEY_TYPES), delimiter, header)


def items(found: list[Record | Fault]) -> list[dict[str, object]]:
    assert not [each for each in found if isinstance(each, Fault)]
    return [each.item for each in found if isinstance(each, Record)]


def test_the_first_line_is_the_header_and_declared_types_are_kept():
    found = items(read(csv(), b"pk,n,text\na,1,2\n"))
    assert found == [{"pk": {"S": "a"}, "n": {"N": "1"}, "text": {"S": "2"}}]


def test_with_a_header_list_the_first_line_is_data():
    assert items(read(csv(header=["pk", "t"]), b"a,b")) == [{"pk": {"S": "a"}, "t": {"S": "b"}}]


@pytest.mark.parametrize("delimiter", [",", "\t", ":", ";", "|", " "])
def test_each_delimiter_divides_columns(delimiter: str):
    data = f"pk{delimiter}t\na{delimiter}b\n".encode()
    assert items(read(csv(delimiter), data)) == [{"pk": {"S": "a"}, "t": {"S": "b"}}]


@pytest.mark.parametrize("part_bytes", [1, 2, 3, 7, 1_000])
def test_a_csv_file_has_the_same_records_wherever_its_parts_begin(part_bytes: int):
    data = (
        b'\xef\xbb\xbfpk,n,t\r\na,1,"x\ny"\r\nb,2,"say ""hi"""\n\nc,3\nd,4,\n\xff,5,q\n'
        b'e,6,"a"b\nf,7,a,b\ng,8,last'
    )
    found = read(csv(), data, part_bytes)
    assert [(each.line, each.text) for each in found if isinstance(each, Fault)] == [
        (6, b"c,3"),
        (8, b"\xff,5,q"),
        (9, b'e,6,"a"b'),
        (10, b"f,7,a,b"),
    ]
    assert [(each.line, each.item) for each in found if isinstance(each, Record)] == [
        (2, {"pk": {"S": "a"}, "n": {"N": "1"}, "t": {"S": "x\ny"}}),
        (4, {"pk": {"S": "b"}, "n": {"N": "2"}, "t": {"S": 'say "hi"'}}),
        # An empty cell is an attribute that the item does not have.
        (7, {"pk": {"S": "d"}, "n": {"N": "4"}}),
        (11, {"pk": {"S": "g"}, "n": {"N": "8"}, "t": {"S": "last"}}),
    ]


def test_a_quote_without_its_end_is_one_fault():
    found = read(csv(), b'pk,t\na,b\nc,"d\ne,f\n')
    assert [type(each) for each in found] == [Record, Fault]


@pytest.mark.parametrize("header", [b"pk,pk\n", b"pk,\n"])
def test_a_header_without_unique_names_ends_the_file(header: bytes):
    with pytest.raises(BadContent):
        read(csv(), header)


def test_a_file_of_a_header_has_no_records():
    assert read(csv(), b"pk,n") == []
    assert read(csv(), b"") == []


@pytest.mark.parametrize("part_bytes", [1, 2, 5, 1_000])
def test_json_lines_are_records_wherever_the_parts_begin(part_bytes: int):
    data = b'\xef\xbb\xbf{"Item":{"a":{"S":"1"}}}\r\n\n[]\n{"Item":1}\n{\n\xff\n{"Item":{}}'
    found = read(JsonLines(), data, part_bytes)
    assert [(each.line, isinstance(each, Record)) for each in found] == [
        (1, True),
        (3, False),
        (4, False),
        (5, False),
        (6, False),
        (7, True),
    ]


@pytest.mark.parametrize("records", [JsonLines(), csv(header=["a"])], ids=["json", "csv"])
def test_a_record_without_an_end_is_refused(records: Format):
    with pytest.raises(BadContent, match="at line 2"):
        list(records.feed(b"a\n" + b'"' * (17 * 1024 * 1024)))


def test_blank_parts_count_as_lines() -> None:
    decoder = JsonLines()
    parts = (b"\n  ", b" \r\n\n", b" ", b'{"Item":{}}\n', b"\n")
    found = [record.line for part in parts for record in decoder.feed(part)]
    assert found == [4]
    assert list(decoder.end()) == []


def test_a_file_with_a_long_stretch_without_records_is_refused() -> None:
    blank = b"\n" * (8 * 1024 * 1024)
    decoder = Bounded(JsonLines())
    for part in (b'{"Item":{}}', *([blank] * 4), b'\n{"Item":{}}\n', *([blank] * 4)):
        list(decoder.feed(part))
    with pytest.raises(BadContent, match="33,554,432 bytes have no record, after the one at line"):
        list(decoder.feed(b"\n"))
