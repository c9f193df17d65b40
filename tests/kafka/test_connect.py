"""Debezium's form is read by Kafka Connect: JsonConverter, then ExtractNewRecordState."""

import json
from typing import Any, Final

import pytest

from streams.kafka_message import (
    KafkaForm,
    KafkaMessage,
    change_messages,
    gap_message,
    snapshot_message,
    without_images,
)
from tests.support.changes import change
from tests.support.java_references import ConnectRecord, Described, read_as_connect
from tests.support.kafka_forms import (
    EXPIRED,
    IN_TRANSACTION,
    INSERT,
    KEY,
    MODIFY,
    NEW,
    NUMBER,
    REMOVE,
    SOURCE,
    TAKEN_US,
    stored,
)

SEQUENCE: Final = NUMBER.wire()
ADDED: Final = "op,source.origin,source.snapshot,source.sequence"
ALL_TYPES: Final[dict[str, Any]] = {
    "s": {"S": 'a"\\ü'},
    "n": {"N": "2.5"},
    "far": {"N": "1" + "0" * 30},
    "long": {"N": "9007199254740993"},
    "b": {"B": "AP8="},
    "t": {"BOOL": False},
    "z": {"NULL": True},
    "ss": {"SS": ["a", "b"]},
    "ns": {"NS": ["1", "2.5"]},
    "bs": {"BS": ["YQ==", "Yg=="]},
    "l": {"L": [{"S": "a"}, {"N": "1"}]},
    "m": {"M": {"x": {"N": "1"}}},
}
ALL_PLAIN: Final = {
    "s": 'a"\\ü',
    "n": 2.5,
    "far": 1e30,
    "long": "9007199254740993",
    "b": "AP8=",
    "t": False,
    "z": None,
    "ss": ["a", "b"],
    "ns": [1, 2.5],
    "bs": ["YQ==", "Yg=="],
}
DOCUMENTS: Final = {"l": ["a", 1], "m": {"x": 1}}
PLAIN_KEY: Final = {"Artist": "Björk", "Year": 1997}
PLAIN_NEW: Final = PLAIN_KEY | {"Plays": 42, "Tags": ["art", "pop"]}


def form(*, plain: bool, schema: bool) -> KafkaForm:
    return KafkaForm(format="debezium", plain_images=plain, schema=schema)


def connect(
    messages: list[KafkaMessage], chosen: KafkaForm, **settings: str
) -> list[ConnectRecord]:
    records = [(message.key, message.value) for message in messages]
    return read_as_connect(records, schemas=chosen.schema, **settings)


def row(passed: Described | str) -> dict[str, Any]:
    """What the transformation passed on."""
    assert isinstance(passed, Described)
    found: dict[str, Any] = passed.value
    return found


def decoded(found: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a struct with each as the text of its JSON."""
    return {name: json.loads(text) for name, text in found.items()}


@pytest.mark.parametrize("plain", [False, True])
def test_rows_are_extracted_from_every_kind_of_record(plain: bool):
    chosen = form(plain=plain, schema=True)
    messages = [
        *(
            message
            for record in (INSERT, MODIFY)
            for message in change_messages(record, SOURCE, chosen)
        ),
        snapshot_message(stored(MODIFY), SOURCE, chosen, taken_us=TAKEN_US),
    ]
    for record in connect(messages, chosen):
        found = row(record.passed)
        assert found == PLAIN_NEW if plain else decoded(found) == KEY | NEW
        key = record.read.key
        assert key == PLAIN_KEY if plain else decoded(key) == KEY
        assert record.read.key_schema == "dynactor.Music.Key"
        assert record.read.value_schema == "dynactor.Music.Envelope"


@pytest.mark.parametrize("plain", [False, True])
def test_a_removal_becomes_one_tombstone(plain: bool):
    chosen = form(plain=plain, schema=True)
    removal, tombstone = connect(change_messages(REMOVE, SOURCE, chosen), chosen)
    assert isinstance(removal.passed, Described)
    assert removal.passed.value is None
    assert removal.passed.key == removal.read.key
    assert tombstone.read.value is None
    assert tombstone.passed == "dropped"


@pytest.mark.parametrize("plain", [False, True])
def test_a_rewritten_removal_tells_whose_it_was(plain: bool):
    chosen = form(plain=plain, schema=True)
    messages = [change_messages(record, SOURCE, chosen)[0] for record in (REMOVE, EXPIRED, INSERT)]
    rows = [
        row(record.passed)
        for record in connect(
            messages,
            chosen,
            delete_tombstone_handling_mode="rewrite",
            add_fields=ADDED,
        )
    ]
    told = [(found["__deleted"], found["__op"], found["__source_origin"]) for found in rows]
    assert told == [("true", "d", "user"), ("true", "d", "ttl"), ("false", "c", "user")]
    assert {found["__source_sequence"] for found in rows} == {SEQUENCE}
    assert set(NEW) <= set(rows[0])


def test_a_row_of_a_snapshot_is_told_from_a_change():
    chosen = form(plain=True, schema=True)
    message = snapshot_message(stored(MODIFY), SOURCE, chosen, taken_us=TAKEN_US)
    (record,) = connect([message], chosen, add_fields=ADDED)
    found = row(record.passed)
    assert (found["__op"], found["__source_snapshot"]) == ("r", "true")


@pytest.mark.parametrize("plain", [False, True])
def test_a_gap_is_read_and_no_row_is_made_of_it(plain: bool):
    chosen = form(plain=plain, schema=True)
    (record,) = connect([gap_message(SOURCE, chosen, time_us=TAKEN_US)], chosen)
    assert (record.read.value["op"], record.read.key) == ("t", {})
    assert record.passed == "dropped"


@pytest.mark.parametrize("plain", [False, True])
def test_without_images_a_row_is_its_key(plain: bool):
    chosen = form(plain=plain, schema=True)
    messages = [
        without_images(change_messages(record, SOURCE, chosen)[0], SOURCE, chosen)
        for record in (MODIFY, REMOVE)
    ]
    modified, removed = connect(messages, chosen)
    found = row(modified.passed)
    assert found == PLAIN_KEY if plain else decoded(found) == KEY
    assert isinstance(removed.passed, Described)
    assert removed.passed.value is None


def test_every_type_arrives_in_a_struct():
    record = change(KEY, None, ALL_TYPES, NUMBER)
    exact, plain = form(plain=False, schema=True), form(plain=True, schema=True)
    (read,) = connect(change_messages(record, SOURCE, exact), exact)
    assert decoded(row(read.passed)) == KEY | ALL_TYPES
    (read,) = connect(change_messages(record, SOURCE, plain), plain)
    found = row(read.passed)
    assert {name: json.loads(found.pop(name)) for name in DOCUMENTS} == DOCUMENTS
    assert found == PLAIN_KEY | ALL_PLAIN


def test_a_transaction_arrives():
    chosen = form(plain=True, schema=True)
    (record,) = connect(change_messages(IN_TRANSACTION, SOURCE, chosen), chosen)
    assert record.read.value["transaction"] == {
        "id": "01ff",
        "total_order": 2,
        "data_collection_order": 2,
    }


@pytest.mark.parametrize("plain", [False, True])
def test_without_schemas_a_record_is_read_and_passed_on_whole(plain: bool):
    """ExtractNewRecordState knows an envelope by the name of its schema."""
    chosen = form(plain=plain, schema=False)
    record = change(KEY, None, ALL_TYPES, NUMBER)
    messages = [
        *change_messages(record, SOURCE, chosen),
        *change_messages(REMOVE, SOURCE, chosen),
        snapshot_message(stored(MODIFY), SOURCE, chosen, taken_us=TAKEN_US),
        gap_message(SOURCE, chosen, time_us=TAKEN_US),
    ]
    read = connect(messages, chosen)
    assert [one.read.value and one.read.value["op"] for one in read] == ["c", "d", None, "r", "t"]
    after = read[0].read.value["after"]
    assert after == (PLAIN_KEY | ALL_PLAIN | DOCUMENTS if plain else KEY | ALL_TYPES)
    assert read[0].passed == read[0].read
