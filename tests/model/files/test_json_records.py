"""Items in JSON files that people and tools write."""

from __future__ import annotations

import pytest

from dynactor.model.files.json_records import JsonDocument, MixedJsonLines
from dynactor.model.files.records import BadContent, Fault, Format, Record

KEY = {"pk": {"S": "a"}}


def read(decoder: Format, data: bytes, part_bytes: int = 7) -> list[Record | Fault]:
    found: list[Record | Fault] = []
    for at in range(0, len(data), part_bytes):
        found += decoder.feed(data[at : at + part_bytes])
    return [*found, *decoder.end()]


@pytest.mark.parametrize(
    ("line", "item"),
    [
        (b'{"Item": {"pk": {"S": "a"}}}', KEY),
        (b'{"pk": {"S": "a"}}', KEY),
        (b'{"pk": "a"}', KEY),
        # An attribute of this name is not the member of an export.
        (b'{"Item": "a"}', {"Item": {"S": "a"}}),
        (b'{"pk": "a", "m": {"S": "b"}}', {**KEY, "m": {"M": {"S": {"S": "b"}}}}),
        (
            b'{"n": 1, "f": 1.10, "e": 1e3}',
            {"n": {"N": "1"}, "f": {"N": "1.10"}, "e": {"N": "1e3"}},
        ),
        (
            b'{"l": [true, null, "x", {}]}',
            {"l": {"L": [{"BOOL": True}, {"NULL": True}, {"S": "x"}, {"M": {}}]}},
        ),
    ],
)
def test_a_line_is_dynamodb_json_or_plain_json(line: bytes, item: object):
    (record,) = read(MixedJsonLines(), line + b"\n")
    assert isinstance(record, Record)
    assert record.item == item


def test_a_number_keeps_all_its_digits():
    (record,) = read(MixedJsonLines(), b'{"n": 0.12345678901234567890123456789}')
    assert isinstance(record, Record)
    assert record.item == {"n": {"N": "0.12345678901234567890123456789"}}


def test_a_wrong_line_is_a_fault_with_its_number():
    found = read(MixedJsonLines(), b'{"pk": "a"}\n\nnope\n[1]\n{"pk": "b"}')
    assert [(type(each), each.line) for each in found] == [
        (Record, 1),
        (Fault, 3),
        (Fault, 4),
        (Record, 5),
    ]


def test_items_of_a_scan_have_their_lines():
    data = b'{\n  "Items": [\n    {"pk": {"S": "a"}},\n    {\n"pk": {"S": "a"}}, {"pk": 1}\n  ],\n'
    found = read(JsonDocument(), data + b'  "Count": 3, "LastEvaluatedKey": null\n}')
    assert [each.line for each in found] == [3, 4, 5]
    assert [each.item for each in found if isinstance(each, Record)] == [
        KEY,
        KEY,
        {"pk": {"N": "1"}},
    ]


def test_an_array_of_items_is_a_document():
    found = read(JsonDocument(), b'[{"pk": "a"},\n 7]')
    assert [(type(each), each.line) for each in found] == [(Record, 1), (Fault, 2)]


@pytest.mark.parametrize("data", [b'{"Items": [', b'{"Count": 1}', b"[", b'{"Items": 1}'])
def test_a_truncated_document_is_refused_whole(data: bytes):
    with pytest.raises(BadContent, match="not the output of a scan"):
        read(JsonDocument(), data)
