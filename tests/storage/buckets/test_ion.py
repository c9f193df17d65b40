"""Items survive Amazon Ion, as text and as binary, whatever parts the file comes in."""

from __future__ import annotations

from typing import Any

import pytest
from amazon.ion import simpleion

from dynactor.model.files.ion_text import record_line
from dynactor.model.files.records import BadContent, Fault, Record, Records
from dynactor.model.values import item as items
from dynactor.storage.buckets.ion_records import IonDecoder

NAMES = ("plain", "$dollar", "$1", "null", "true", "with space", "it's", 'a"b', "Björk", "a\\b")
TEXTS = ("", "x", 'quo"te', "it's", "line\nbreak\r\t", "\x00\x1f\x7f\u2028", "日本語 🎸", "\\n")
NUMBERS = (
    "0",
    "103",
    "-1.5",
    "600",
    "1E-130",
    "9.9999E+125",
    "12345678901234567890123456789012345678",
)


def every_item() -> list[dict[str, Any]]:
    """Items with every type, and with difficult names and texts."""
    found: list[dict[str, Any]] = [
        {"pk": {"S": text}, name: {"M": {name: {"L": [{"S": text}, {"NULL": True}]}}}}
        for name in NAMES
        for text in TEXTS
    ]
    found += [{"pk": {"N": number}, "set": {"NS": [number, "7"]}} for number in NUMBERS]
    found.append(
        {
            "b": {"B": "AAEC"},
            "empty": {"B": ""},
            "yes": {"BOOL": True},
            "no": {"BOOL": False},
            "strings": {"SS": ["a", "b"]},
            "binaries": {"BS": ["AAA=", "AAE="]},
            "list": {"L": []},
            "map": {"M": {}},
        }
    )
    for item in found:
        items.check(item)
    return found


def read(data: bytes, part_bytes: int = 1 << 20) -> list[Record | Fault]:
    """The records of a file that comes in parts."""
    ion = IonDecoder()
    found: list[Record | Fault] = []

    def take(records: Records) -> None:
        found.extend(records)

    for at in range(0, len(data), part_bytes):
        take(ion.feed(data[at : at + part_bytes]))
    take(ion.end())
    return found


def items_of(records: list[Record | Fault]) -> list[dict[str, Any]]:
    found = []
    for record in records:
        assert isinstance(record, Record), record
        items.check(record.item)
        found.append(record.item)
    return found


@pytest.mark.parametrize("part_bytes", [1, 7, 1 << 20])
def test_items_survive_text(part_bytes: int) -> None:
    data = b"".join(record_line(Item=item) for item in every_item())
    assert items_of(read(data, part_bytes)) == every_item()


@pytest.mark.parametrize("part_bytes", [1, 7, 1 << 20])
def test_items_survive_binary(part_bytes: int) -> None:
    values = [simpleion.loads(record_line(Item=item)) for item in every_item()]
    # One symbol table for all values, and a new one for each value.
    whole = simpleion.dumps(values, binary=True, sequence_as_stream=True)
    apart = b"".join(simpleion.dumps(value, binary=True) for value in values)
    assert items_of(read(whole, part_bytes)) == every_item()
    assert items_of(read(apart, part_bytes)) == every_item()


def test_the_documented_example_is_read() -> None:
    # Source: Developer Guide, "DynamoDB table export output format".
    line = (
        b'$ion_1_0 {Item:{Authors:$dynamodb_SS::["Author1","Author2"],Dimensions:"8.5 x 11.0 x '
        b'1.5",ISBN:"333-3333333333",Id:103.,InPublication:false,PageCount:6d2,Price:2d3,'
        b'ProductCategory:"Book",Title:"Book 103 Title"}}\n'
    )
    assert items_of(read(line)) == [
        {
            "Authors": {"SS": ["Author1", "Author2"]},
            "Dimensions": {"S": "8.5 x 11.0 x 1.5"},
            "ISBN": {"S": "333-3333333333"},
            "Id": {"N": "103"},
            "InPublication": {"BOOL": False},
            "PageCount": {"N": "600"},
            "Price": {"N": "2000"},
            "ProductCategory": {"S": "Book"},
            "Title": {"S": "Book 103 Title"},
        }
    ]


def test_the_text_of_an_item_is_as_documented() -> None:
    item = {"Id": {"N": "103"}, "Authors": {"SS": ["A"]}, "In": {"BOOL": False}, "B": {"B": "AAEC"}}
    assert record_line(Item=item) == (
        b'$ion_1_0 {Item:{Id:103.,Authors:$dynamodb_SS::["A"],In:false,B:{{AAEC}}}}\n'
    )


@pytest.mark.parametrize(
    "line",
    [
        b"{Item:",
        b"{Item:1}",
        b"{Other:{}}",
        b"[1]",
        b'{Item:{at:2026-11-23T10:00:00Z,pk:"p"}}',
        b"{Item:{set:$dynamodb_SS::[1]}}",
        b'{Item:{a:"\xff"}}',
        # The library can read the first two, and their conversion nests too many calls.
        b"{Item:{a:" + b"[" * 900 + b"]" * 900 + b"}}",
        b"{Item:{},ExpressionAttributeValues:{a:" + b"[" * 900 + b"]" * 900 + b"}}",
        b"{Item:{a:" + b"[" * 5_000 + b"]" * 5_000 + b"}}",
    ],
)
def test_a_faulty_line_spoils_no_other(line: bytes) -> None:
    good = record_line(Item={"pk": {"S": "p"}})
    first, fault, last = read(good + line + b"\n" + good)
    assert isinstance(first, Record)
    assert isinstance(last, Record)
    assert isinstance(fault, Fault)
    assert fault.line == 2


def test_a_truncated_binary_is_refused() -> None:
    whole = simpleion.dumps(simpleion.loads(b'{Item:{pk:"p"}}'), binary=True)
    for end in (5, 6, len(whole) - 1):
        with pytest.raises(BadContent):
            read(whole[:end])
