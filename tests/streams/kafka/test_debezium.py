"""Debezium's form of a change: byte for byte without a schema, and the schema's content."""

import json
from typing import Any

import pytest
from hypothesis import given

from dynactor.streams.change_record import ChangeRecord
from dynactor.streams.kafka.message import (
    KafkaForm,
    KafkaMessage,
    change_messages,
    gap_message,
    snapshot_message,
    without_images,
)
from tests.properties import strategies
from tests.support.kafka.kafka_forms import (
    EXPIRED,
    IN_TRANSACTION,
    INSERT,
    KEY,
    MODIFY,
    NEW,
    OLD,
    REMOVE,
    SOURCE,
    TAKEN_US,
    stored,
)
from tests.support.streams.changes import change

BARE = KafkaForm(format="debezium")
PLAIN = KafkaForm(format="debezium", plain_images=True)
SCHEMA = KafkaForm(format="debezium", schema=True)
PLAIN_SCHEMA = KafkaForm(format="debezium", plain_images=True, schema=True)
FORMS = [BARE, PLAIN, SCHEMA, PLAIN_SCHEMA]

KEY_JSON = '{"Artist":{"S":"Björk"},"Year":{"N":"1997"}}'
OLD_JSON = '{"Artist":{"S":"Björk"},"Year":{"N":"1997"},"Plays":{"N":"41"}}'
NEW_JSON = KEY_JSON[:-1] + ',"Plays":{"N":"42"},"Tags":{"SS":["art","pop"]}}'


def decoded(message: KafkaMessage, form: KafkaForm = BARE) -> Any:
    assert message.value is not None
    body = json.loads(message.value)
    return body["payload"] if form.schema else body


def of(record: ChangeRecord, form: KafkaForm = BARE) -> Any:
    return decoded(change_messages(record, SOURCE, form)[0], form)


def expected(
    operation: str, before: str, after: str, origin: str = "user", transaction: str = "null"
) -> bytes:
    return (
        f'{{"before":{before},"after":{after},"source":{{"version":"0.1.0",'
        '"connector":"dynactor","name":"dynactor","ts_ms":1700000000987,"snapshot":"false",'
        '"db":"eu-west-1","table":"Music","sequence":"000000000549755813893",'
        f'"origin":"{origin}"}},"op":"{operation}","ts_ms":1700000000987,'
        f'"transaction":{transaction}}}'
    ).encode()


@pytest.mark.parametrize(
    ("record", "value"),
    [
        (INSERT, expected("c", "null", NEW_JSON)),
        (MODIFY, expected("u", OLD_JSON, NEW_JSON)),
        (REMOVE, expected("d", NEW_JSON, "null")),
        (EXPIRED, expected("d", NEW_JSON, "null", "ttl")),
        (
            IN_TRANSACTION,
            expected(
                "u",
                OLD_JSON,
                NEW_JSON,
                "transaction",
                '{"id":"01ff","total_order":2,"data_collection_order":2}',
            ),
        ),
    ],
    ids=["insert", "modify", "remove", "expired", "transaction"],
)
def test_a_change_without_a_schema_has_the_documented_bytes(record: ChangeRecord, value: bytes):
    message = change_messages(record, SOURCE, BARE)[0]
    assert message.value == value
    assert message.key == KEY_JSON.encode()


def test_a_row_of_a_snapshot_is_published_as_a_read():
    body = decoded(snapshot_message(stored(MODIFY), SOURCE, BARE, taken_us=TAKEN_US))
    assert (body["op"], body["before"], body["after"]) == ("r", None, KEY | NEW)
    assert body["source"]["snapshot"] == "true"
    assert body["source"]["sequence"] == of(MODIFY)["source"]["sequence"]
    assert body["ts_ms"] == body["source"]["ts_ms"] == TAKEN_US // 1000


@pytest.mark.parametrize("form", FORMS)
def test_a_gap_is_published_as_a_truncation(form: KafkaForm):
    message = gap_message(SOURCE, form, time_us=TAKEN_US)
    body = decoded(message, form)
    assert (body["op"], body["before"], body["after"]) == ("t", None, None)
    assert (body["source"]["sequence"], body["source"]["origin"]) == (None, "gap")
    key = json.loads(message.key)
    assert (key["payload"] if form.schema else key) == {}


def test_plain_images_come_with_plain_keys():
    message = change_messages(MODIFY, SOURCE, PLAIN)[0]
    assert message.key == '{"Artist":"Björk","Year":1997}'.encode()
    key = {"Artist": "Björk", "Year": 1997}
    assert decoded(message)["before"] == key | {"Plays": 41}
    assert decoded(message)["after"] == key | {"Plays": 42, "Tags": ["art", "pop"]}


def test_images_in_a_schema_hold_each_attribute_as_json():
    body = of(MODIFY, SCHEMA)
    assert {name: json.loads(text) for name, text in body["before"].items()} == KEY | OLD
    assert {name: json.loads(text) for name, text in body["after"].items()} == KEY | NEW


def fields(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {field["field"]: field for field in schema["fields"]}


def test_the_schema_is_an_envelope_as_debezium_names_it():
    value = change_messages(MODIFY, SOURCE, SCHEMA)[0].value
    assert value is not None
    schema = json.loads(value)["schema"]
    assert schema["name"] == "dynactor.Music.Envelope"
    before, after = fields(schema)["before"], fields(schema)["after"]
    assert before["name"] == after["name"] == "dynactor.Music.Value"
    assert list(fields(before)) == ["Artist", "Year", "Plays"]
    assert list(fields(after)) == ["Artist", "Year", "Plays", "Tags"]
    assert {field["name"] for field in fields(after).values()} == {"io.debezium.data.Json"}


def test_the_key_has_a_schema_of_its_own():
    key = json.loads(change_messages(MODIFY, SOURCE, PLAIN_SCHEMA)[0].key)
    assert key == {
        "schema": {
            "type": "struct",
            "fields": [
                {"type": "string", "optional": False, "field": "Artist"},
                {"type": "double", "optional": False, "field": "Year"},
            ],
            "optional": False,
            "name": "dynactor.Music.Key",
        },
        "payload": {"Artist": "Björk", "Year": 1997},
    }


ALL_TYPES: dict[str, Any] = {
    "s": {"S": "a"},
    "n": {"N": "1"},
    "long": {"N": "9007199254740993"},
    "b": {"B": "YQ=="},
    "t": {"BOOL": True},
    "z": {"NULL": True},
    "ss": {"SS": ["a"]},
    "ns": {"NS": ["1"]},
    "longs": {"NS": ["1", "9007199254740993"]},
    "bs": {"BS": ["YQ=="]},
    "l": {"L": [{"S": "a"}, {"N": "1"}]},
    "m": {"M": {"x": {"N": "1"}}},
}


def test_plain_attributes_in_a_schema_have_types():
    value = change_messages(change(KEY, None, ALL_TYPES), SOURCE, PLAIN_SCHEMA)[0].value
    assert value is not None
    body = json.loads(value)
    found = fields(fields(body["schema"])["after"])
    assert {name: field["type"] for name, field in found.items() if name in ALL_TYPES} == {
        "s": "string",
        "n": "double",
        "long": "string",
        "b": "bytes",
        "t": "boolean",
        "z": "string",
        "ss": "array",
        "ns": "array",
        "longs": "array",
        "bs": "array",
        "l": "string",
        "m": "string",
    }
    assert [found[name]["items"]["type"] for name in ("ss", "ns", "longs", "bs")] == [
        "string",
        "double",
        "string",
        "bytes",
    ]
    assert all(found[name]["optional"] == (name not in KEY) for name in found)
    assert body["payload"]["after"]["l"] == '["a",1]'
    assert found["l"]["name"] == found["m"]["name"] == "io.debezium.data.Json"


@pytest.mark.parametrize("form", [SCHEMA, PLAIN_SCHEMA])
@pytest.mark.parametrize("record", [INSERT, REMOVE], ids=["insert", "remove"])
def test_a_missing_image_has_the_schema_of_the_other(record: ChangeRecord, form: KafkaForm):
    value = change_messages(record, SOURCE, form)[0].value
    assert value is not None
    found = fields(json.loads(value)["schema"])
    assert found["before"]["fields"] == found["after"]["fields"]
    assert "Tags" in fields(found["before"])


@given(strategies.items)
def test_the_schema_fits_any_item(item: dict[str, Any]):
    record = change(KEY, None, item)
    for form in (SCHEMA, PLAIN_SCHEMA):
        value = change_messages(record, SOURCE, form)[0].value
        assert value is not None
        body = json.loads(value)
        described = fields(fields(body["schema"])["after"])
        after = body["payload"]["after"]
        assert list(described) == list(after) == [*KEY, *item]
        for name, field in described.items():
            if field["type"] == "string":
                assert isinstance(after[name], str | None)
            elif field["type"] == "double":
                assert isinstance(after[name], float | int)
            if field.get("name"):
                json.loads(after[name])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("record", [INSERT, MODIFY, REMOVE], ids=["insert", "modify", "remove"])
def test_without_images_the_key_stays_in_them(record: ChangeRecord, form: KafkaForm):
    """Debezium's ExtractNewRecordState would read a missing image as a removal or truncation."""
    cut = without_images(change_messages(record, SOURCE, form)[0], SOURCE, form)
    bare = change(
        KEY,
        None if record.old is None else {},
        None if record.new is None else {},
        record.sequence_number,
    )
    assert decoded(cut, form) == of(bare, form)
    if form.schema:
        assert json.loads(cut.value or b"") == json.loads(
            change_messages(bare, SOURCE, form)[0].value or b""
        )


def test_the_key_of_an_item_collection_has_a_schema():
    form = KafkaForm(format="debezium", key="collection", plain_images=True, schema=True)
    key = json.loads(change_messages(MODIFY, SOURCE, form)[0].key)
    assert key["payload"] == {"Artist": "Björk"}
    assert [field["field"] for field in key["schema"]["fields"]] == ["Artist"]
