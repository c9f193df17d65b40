"""Debezium's form of a change: the images before and after it, its source, its operation.

With a schema around it Kafka Connect's JsonConverter reads it as Debezium's own connectors'
records, and ExtractNewRecordState takes the row out. Images are then text of the semantic type
``io.debezium.data.Json``, as those of the MongoDB connector; plain images are structs of the
attributes that the item has. Source: Debezium's documentation, "Data change events" and "New
Record State Extraction". ``source.origin`` is an addition; a gap is a truncation.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from msgspec import json

from model import attribute_value
from model import item as items
from model.attribute_value import AttributeValue
from model.key import KeySchema
from model.stored_item import StoredItem
from streams import plain_json
from streams.change_record import TransactionPlace
from streams.kafka_event import KafkaEvent

DebeziumOperation: TypeAlias = Literal["c", "u", "d", "r", "t"]
_ConnectSchema: TypeAlias = dict[str, Any]

_OPERATIONS: Final[dict[str, DebeziumOperation]] = {
    "INSERT": "c",
    "MODIFY": "u",
    "REMOVE": "d",
    "GAP": "t",
}
_READ: Final[DebeziumOperation] = "r"
_MICROSECONDS_PER_MILLISECOND: Final = 1_000
_ENVELOPE_VERSION: Final = 2

_TEXT: Final[_ConnectSchema] = {"type": "string", "optional": False}
_OPTIONAL_TEXT: Final[_ConnectSchema] = {"type": "string", "optional": True}
_LONG: Final[_ConnectSchema] = {"type": "int64", "optional": False}
_OPTIONAL_LONG: Final[_ConnectSchema] = {"type": "int64", "optional": True}
_JSON: Final[_ConnectSchema] = {
    "type": "string",
    "optional": True,
    "name": "io.debezium.data.Json",
    "version": 1,
}
_SNAPSHOT: Final[_ConnectSchema] = {
    "type": "string",
    "optional": True,
    "name": "io.debezium.data.Enum",
    "version": 1,
    "parameters": {"allowed": "true,last,false,incremental"},
    "default": "false",
}
_CONNECT_TYPES: Final = {"S": "string", "B": "bytes", "BOOL": "boolean", "NULL": "string"}
_MEMBER_TYPES: Final = {"SS": "string", "BS": "bytes"}


class DebeziumEnvelope:
    """How the keys and changes of one table are written."""

    def __init__(
        self,
        server_name: str,
        version: str,
        region: str,
        table_name: str,
        key_schema: KeySchema,
        *,
        plain_images: bool,
        schema: bool,
    ) -> None:
        self._plain = plain_images
        self._schema = schema
        self._key_names = frozenset(attribute.name for attribute in key_schema.attributes)
        self._schema_name = f"{server_name}.{table_name}"
        self._text_images_schema = json.encode(self._value_schema(_JSON, _JSON))
        self._template = (
            b'{"before":%%b,"after":%%b,"source":{"version":%b,"connector":"dynactor","name":%b,'
            b'"ts_ms":%%d,"snapshot":"%%b","db":%b,"table":%b,"sequence":%%b,"origin":"%%b"},'
            b'"op":"%%b","ts_ms":%%d,"transaction":%%b}'
        ) % tuple(
            json.encode(text).replace(b"%", b"%%")
            for text in (version, server_name, region, table_name)
        )

    def key(self, keys: bytes) -> bytes:
        """The key of a record, from the primary key as DynamoDB JSON, or a part of it."""
        if not (self._plain or self._schema):
            return keys
        key = items.decode(keys)
        if not self._schema:
            return json.encode(plain_json.plain_item(key))
        fields = [_field(name, _key_schema(value, self._plain)) for name, value in key.items()]
        schema = _struct(fields, f"{self._schema_name}.Key", optional=False)
        payload = plain_json.plain_item(key) if self._plain else key
        return json.encode({"schema": schema, "payload": payload})

    def value(self, event: KafkaEvent) -> bytes:
        """A change, an item of a snapshot, or a gap."""
        is_snapshot = event.origin == "snapshot"
        time_ms = event.time_us // _MICROSECONDS_PER_MILLISECOND
        payload = self._template % (
            self._image(event.old),
            self._image(event.new),
            time_ms,
            b"true" if is_snapshot else b"false",
            b'"%b"' % event.sequence_number.encode() if event.sequence_number else b"null",
            event.origin.encode(),
            (_READ if is_snapshot else _OPERATIONS[event.name]).encode(),
            time_ms,
            _transaction(event.transaction),
        )
        if not self._schema:
            return payload
        schema = self._structs_schema(event) if self._plain else self._text_images_schema
        return b'{"schema":%b,"payload":%b}' % (schema, payload)

    def without_images(self, value: bytes) -> bytes:
        """The same value with the key's attributes alone in its images."""
        told = json.decode(value)
        payload = told["payload"] if self._schema else told
        for name in ("before", "after"):
            image = payload[name]
            if isinstance(image, str):
                payload[name] = json.encode(self._cut(json.decode(image))).decode()
            elif image is not None:
                payload[name] = self._cut(image)
        if self._schema and self._plain:
            for image_schema in told["schema"]["fields"][:2]:
                image_schema["fields"] = [
                    field for field in image_schema["fields"] if field["field"] in self._key_names
                ]
        return json.encode(told)

    def _cut(self, image: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in image.items() if name in self._key_names}

    def _image(self, stored: StoredItem | None) -> bytes:
        if stored is None:
            return b"null"
        if not self._schema:
            return json.encode(plain_json.plain_item(stored.item)) if self._plain else stored.data
        if not self._plain:
            return json.encode(stored.data.decode())
        return json.encode({name: _connect(value)[1] for name, value in stored.item.items()})

    def _structs_schema(self, event: KafkaEvent) -> bytes:
        # Where there is no image the schema is that of the other one, as in Debezium's records.
        old, new = event.old or event.new, event.new or event.old
        return json.encode(self._value_schema(self._struct_schema(old), self._struct_schema(new)))

    def _struct_schema(self, stored: StoredItem | None) -> _ConnectSchema:
        item = stored.item if stored else {}
        fields = [
            _field(name, {**_connect(value)[0], "optional": name not in self._key_names})
            for name, value in item.items()
        ]
        return _struct(fields, f"{self._schema_name}.Value", optional=True)

    def _value_schema(self, before: _ConnectSchema, after: _ConnectSchema) -> _ConnectSchema:
        fields = [_field("before", before), _field("after", after), _SOURCE_FIELD, *_LAST_FIELDS]
        name = f"{self._schema_name}.Envelope"
        return _struct(fields, name, optional=False, version=_ENVELOPE_VERSION)


def _transaction(place: TransactionPlace | None) -> bytes:
    if place is None:
        return b"null"
    # Debezium counts from 1. The order within the table is the same as over all.
    order = place.ordinal + 1
    return b'{"id":"%b","total_order":%d,"data_collection_order":%d}' % (
        place.transaction_id.hex().encode(),
        order,
        order,
    )


def _connect(value: AttributeValue) -> tuple[_ConnectSchema, Any]:
    """A value's schema and payload; documents have members of many types and stay JSON."""
    type_name = attribute_value.type_of(value)
    payload = plain_json.plain(value)
    if type_name in ("L", "M"):
        return _JSON, json.encode(payload).decode()
    if type_name == "N":
        return {"type": _number_type(payload)}, payload
    if type_name == "NS":
        return _array(_number_type(payload[0])), payload
    if type_name in _MEMBER_TYPES:
        return _array(_MEMBER_TYPES[type_name]), payload
    return {"type": _CONNECT_TYPES[type_name]}, payload


def _number_type(payload: Any) -> str:
    return "string" if isinstance(payload, str) else "double"


def _array(member_type: str) -> _ConnectSchema:
    return {"type": "array", "items": {"type": member_type, "optional": False}}


def _key_schema(value: AttributeValue, plain: bool) -> _ConnectSchema:
    if plain:
        return {**_connect(value)[0], "optional": False}
    return _struct([_field(attribute_value.type_of(value), _TEXT)], None, optional=False)


def _struct(
    fields: list[_ConnectSchema], name: str | None, *, optional: bool, version: int | None = None
) -> _ConnectSchema:
    schema: _ConnectSchema = {"type": "struct", "fields": fields, "optional": optional}
    if name is not None:
        schema["name"] = name
    if version is not None:
        schema["version"] = version
    return schema


def _field(name: str, schema: _ConnectSchema) -> _ConnectSchema:
    return {**schema, "field": name}


_SOURCE_FIELD: Final = _field(
    "source",
    _struct(
        [
            _field("version", _TEXT),
            _field("connector", _TEXT),
            _field("name", _TEXT),
            _field("ts_ms", _LONG),
            _field("snapshot", _SNAPSHOT),
            _field("db", _TEXT),
            _field("table", _TEXT),
            _field("sequence", _OPTIONAL_TEXT),
            _field("origin", _TEXT),
        ],
        "io.debezium.connector.dynactor.Source",
        optional=False,
    ),
)
_LAST_FIELDS: Final = (
    _field("op", _TEXT),
    _field("ts_ms", _OPTIONAL_LONG),
    _field(
        "transaction",
        _struct(
            [
                _field("id", _TEXT),
                _field("total_order", _LONG),
                _field("data_collection_order", _LONG),
            ],
            "event.block",
            optional=True,
            version=1,
        ),
    ),
)
