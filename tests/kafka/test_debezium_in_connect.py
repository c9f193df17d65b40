"""Kafka Connect reads the format ``debezium`` with JsonConverter and ExtractNewRecordState."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.values.item import Item
from dynactor.model.values.stored_item import StoredItem
from dynactor.streams.change_record import ChangeRecord, Origin, TransactionPlace
from dynactor.streams.kafka.message import (
    KafkaForm,
    KafkaSource,
    change_messages,
    gap_message,
    snapshot_message,
    without_images,
)
from dynactor.streams.sequence_number import SequenceNumber
from tests.support.kafka.java_references import ConnectRecord, Described, read_as_connect
from tests.support.streams.changes import change

SOURCE = KafkaSource(
    region="eu-west-1",
    account_id="000000000000",
    table_name="Orders",
    key_schema=KeySchema((KeyAttribute("pk", "S"),), (KeyAttribute("sk", "N"),)),
    prefix="shop",
    version="0.1.0",
)
KEY: Item = {"pk": {"S": "grün"}, "sk": {"N": "7"}}
EVERYTHING: Item = {
    "text": {"S": 'a "quoted" line\n'},
    "whole": {"N": "42"},
    "fraction": {"N": "-0.125"},
    "long": {"N": "12345678901234567890123456789012345678"},
    "tiny": {"N": "0.0000000000000000000000000000000000000000000000000000000000000001"},
    "raw": {"B": "AP9/"},
    "yes": {"BOOL": True},
    "nothing": {"NULL": True},
    "texts": {"SS": ["a", "b"]},
    "numbers": {"NS": ["1", "2.5"]},
    "raws": {"BS": ["AQ==", "Ag=="]},
    "list": {"L": [{"N": "1"}, {"S": "two"}, {"L": []}]},
    "map": {"M": {"inner": {"M": {}}, "n": {"N": "3"}}},
    "a name with. dots-and $igns": {"S": "odd"},
}


def number(local: int) -> SequenceNumber:
    return SequenceNumber(1, local)


CHANGES: list[ChangeRecord] = [
    change(KEY, None, EVERYTHING, number(1)),
    change(KEY, EVERYTHING, {"whole": {"S": "now a text"}}, number(2)),
    change(KEY, {"a": {"N": "1"}}, {}, number(3), transaction=TransactionPlace(b"\x01" * 8, 1, 3)),
    change(KEY, {"a": {"N": "1"}}, None, number(4), origin=Origin.TTL),
]


def in_connect(form: KafkaForm, *records: ChangeRecord, **settings: str) -> list[ConnectRecord]:
    messages = [message for record in records for message in change_messages(record, SOURCE, form)]
    pairs = [(message.key, message.value) for message in messages]
    return read_as_connect(pairs, schemas=form.schema, **settings)


def passed(record: ConnectRecord) -> Described:
    assert isinstance(record.passed, Described)
    return record.passed


def with_key(item: Item) -> dict[str, Any]:
    return {**KEY, **item}


def decoded(row: dict[str, str]) -> dict[str, Any]:
    """Decode a struct in which each attribute is text in DynamoDB JSON."""
    return {name: json.loads(text) for name, text in row.items()}


def test_with_schemas_a_row_holds_each_attribute_as_json():
    form = KafkaForm(format="debezium", schema=True)
    inserted, modified, emptied, removed, tombstone = in_connect(form, *CHANGES)
    for record, item in ((inserted, EVERYTHING), (modified, {"whole": {"S": "now a text"}})):
        assert decoded(passed(record).value) == with_key(item)
        assert passed(record).value_schema == "shop.Orders.Value"
        assert record.read.value_schema == "shop.Orders.Envelope"
        assert passed(record).key_schema == "shop.Orders.Key"
        assert decoded(passed(record).key) == KEY
    assert decoded(passed(emptied).value) == KEY
    # By default ExtractNewRecordState converts a removal to a tombstone.
    assert (decoded(passed(removed).key), passed(removed).value) == (KEY, None)
    assert tombstone.passed == "dropped"


def test_with_schemas_and_plain_images_a_row_is_a_struct():
    form = KafkaForm(format="debezium", schema=True, plain_images=True)
    inserted, modified, emptied, removed, tombstone = in_connect(form, *CHANGES)
    assert passed(inserted).key == {"pk": "grün", "sk": 7.0}
    row = passed(inserted).value
    assert json.loads(row.pop("list")) == [1, "two", []]
    assert json.loads(row.pop("map")) == {"inner": {}, "n": 3}
    assert row == {
        "pk": "grün",
        "sk": 7.0,
        "text": 'a "quoted" line\n',
        "whole": 42.0,
        "fraction": -0.125,
        "long": "12345678901234567890123456789012345678",
        "tiny": 1e-64,
        "raw": "AP9/",
        "yes": True,
        "nothing": None,
        "texts": ["a", "b"],
        "numbers": [1.0, 2.5],
        "raws": ["AQ==", "Ag=="],
        "a name with. dots-and $igns": "odd",
    }
    assert passed(modified).value == {"pk": "grün", "sk": 7.0, "whole": "now a text"}
    assert passed(emptied).value == {"pk": "grün", "sk": 7.0}
    assert passed(removed).value is None
    assert tombstone.passed == "dropped"


def test_a_removal_can_be_converted_to_the_last_row_with_a_deleted_flag():
    form = KafkaForm(format="debezium", schema=True, plain_images=True)
    settings = {
        "delete_tombstone_handling_mode": "rewrite",
        "add_fields": "op,table,source.sequence,source.origin",
        "add_headers": "op,transaction.id",
    }
    _, _, emptied, removed, tombstone = in_connect(form, *CHANGES, **settings)
    assert passed(emptied).headers == {"__op": "u", "__transaction_id": "01" * 8}
    assert passed(emptied).value["__deleted"] == "false"
    assert passed(removed).value == {
        "pk": "grün",
        "sk": 7.0,
        "a": 1.0,
        "__deleted": "true",
        "__op": "d",
        "__table": "Orders",
        "__source_sequence": number(4).wire(),
        "__source_origin": "ttl",
    }
    assert tombstone.passed == "dropped"


@pytest.mark.parametrize("plain_images", [False, True])
def test_without_schemas_the_converter_reads_the_written_records(plain_images: bool):
    form = KafkaForm(format="debezium", plain_images=plain_images)
    written = [message for record in CHANGES for message in change_messages(record, SOURCE, form)]
    for message, record in zip(written, in_connect(form, *CHANGES), strict=True):
        assert record.read.key == json.loads(message.key)
        assert record.read.value == (message.value and json.loads(message.value))
        # ExtractNewRecordState recognizes an envelope by its schema, and passes other records
        # unchanged.
        assert record.passed == (record.read if message.value is not None else "dropped")


@pytest.mark.parametrize("plain_images", [False, True])
def test_an_item_of_a_snapshot_is_converted_to_a_row(plain_images: bool):
    form = KafkaForm(format="debezium", schema=True, plain_images=plain_images)
    stored = StoredItem.of({**KEY, "a": {"S": "b"}}, number(9).packed())
    message = snapshot_message(stored, SOURCE, form, taken_us=1_700_000_000_000_000)
    (record,) = read_as_connect([(message.key, message.value)], schemas=True)
    row = passed(record).value
    if plain_images:
        assert row == {"pk": "grün", "sk": 7.0, "a": "b"}
    else:
        assert decoded(row) == {**KEY, "a": {"S": "b"}}
    assert record.read.value["op"] == "r"
    assert record.read.value["source"]["snapshot"] == "true"


@pytest.mark.parametrize("plain_images", [False, True])
def test_a_gap_is_a_truncate_event_which_makes_no_row(plain_images: bool):
    form = KafkaForm(format="debezium", schema=True, plain_images=plain_images)
    message = gap_message(SOURCE, form, time_us=1_700_000_000_000_000)
    (record,) = read_as_connect([(message.key, message.value)], schemas=True)
    assert record.read.value["op"] == "t"
    assert record.passed == "dropped"


@pytest.mark.parametrize("plain_images", [False, True])
def test_a_change_without_images_is_converted_to_a_row_with_the_key_only(plain_images: bool):
    form = KafkaForm(format="debezium", schema=True, plain_images=plain_images)
    (message,) = change_messages(CHANGES[0], SOURCE, form)
    message = without_images(message, SOURCE, form)
    (record,) = read_as_connect([(message.key, message.value)], schemas=True)
    row = passed(record).value
    assert (row if plain_images else decoded(row)) == (
        {"pk": "grün", "sk": 7.0} if plain_images else KEY
    )
