"""Debezium's form of a change: the images before and after it, its source, its operation.

With a schema, Kafka Connect's JsonConverter reads a record like those of Debezium's own connectors.
ExtractNewRecordState extracts the row, which requires that images are structs. DynamoDB items have
no common schema, so each record's schema lists the attributes of its item. Source: Debezium's
documentation, "Data change events" and "New Record State Extraction". ``source.origin`` is an
addition. A gap is written as a truncation.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

from msgspec import json

from dynactor.model.keys.key import KeySchema
from dynactor.model.values import attribute_value
from dynactor.model.values import item as items
from dynactor.model.values.attribute_value import AttributeValue
from dynactor.model.values.item import Item
from dynactor.model.values.stored_item import StoredItem
from dynactor.streams.change_record import TransactionPlace
from dynactor.streams.kafka import plain_json
from dynactor.streams.kafka.consumer_event import KafkaEvent

DebeziumOperation: TypeAlias = Literal["c", "u", "d", "r", "t"]
_ConnectSchema: TypeAlias = dict[str, Any]
# The names and kinds of an item's attributes; a kind is a key of ``_KINDS``.
_Shape: TypeAlias = tuple[tuple[str, str], ...]

_OPERATIONS: Final[dict[str, DebeziumOperation]] = {
    "INSERT": "c",
    "MODIFY": "u",
    "REMOVE": "d",
    "GAP": "t",
}
_READ: Final[DebeziumOperation] = "r"
_MICROSECONDS_PER_MILLISECOND: Final = 1_000
# Number of cached schemas; a schema may be as large as an item.
_SCHEMAS_KEPT: Final = 64

_STRING: Final[_ConnectSchema] = {"type": "string", "optional": False}
_INT64: Final[_ConnectSchema] = {"type": "int64", "optional": False}
_OPTIONAL: Final[_ConnectSchema] = {"optional": True}
_KINDS: Final[dict[str, _ConnectSchema]] = {
    "string": {"type": "string"},
    "double": {"type": "double"},
    "bytes": {"type": "bytes"},
    "boolean": {"type": "boolean"},
    "json": {"type": "string", "name": "io.debezium.data.Json", "version": 1},
    "strings": {"type": "array", "items": _STRING},
    "doubles": {"type": "array", "items": {"type": "double", "optional": False}},
    "binaries": {"type": "array", "items": {"type": "bytes", "optional": False}},
}
# A list or map may have values of several types, which Connect's arrays don't allow, so both stay
# JSON.
_PLAIN_KINDS: Final = {
    "S": "string",
    "B": "bytes",
    "BOOL": "boolean",
    "NULL": "string",
    "SS": "strings",
    "BS": "binaries",
    "L": "json",
    "M": "json",
}


class DebeziumEnvelope:
    """Writes the keys and changes of one table."""

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
        self._template = (
            b'{"before":%%b,"after":%%b,"source":{"version":%b,"connector":"dynactor","name":%b,'
            b'"ts_ms":%%d,"snapshot":"%%b","db":%b,"table":%b,"sequence":%%b,"origin":"%%b"},'
            b'"op":"%%b","ts_ms":%%d,"transaction":%%b}'
        ) % tuple(
            json.encode(text).replace(b"%", b"%%")
            for text in (version, server_name, region, table_name)
        )
        self._image_schema = lru_cache(_SCHEMAS_KEPT)(self._make_image_schema)
        self._key_schema = lru_cache(_SCHEMAS_KEPT)(self._make_key_schema)
        self._envelope_name = json.encode(f"{self._schema_name}.Envelope")

    def key(self, keys: bytes) -> bytes:
        """The key of a record; ``keys`` is the primary or partition key as DynamoDB JSON."""
        if not (self._plain or self._schema):
            return keys
        key = items.decode(keys)
        if not self._schema:
            return json.encode(plain_json.plain_item(key))
        shape, payload = self._row(key)
        return b'{"schema":%b,"payload":%b}' % (self._key_schema(shape), json.encode(payload))

    def value(self, event: KafkaEvent) -> bytes:
        """The value of a record: a change, an item of a snapshot, or a gap."""
        if not self._schema:
            return self._payload(event, self._image(event.old), self._image(event.new))
        before_shape, before = self._struct(event.old)
        after_shape, after = self._struct(event.new)
        # A missing image has the schema of the other one, as in Debezium's records.
        return (
            b'{"schema":{"type":"struct","fields":[%b,%b,%b],"optional":false,"name":%b,'
            b'"version":2},"payload":%b}'
        ) % (
            self._image_schema("before", before_shape or after_shape),
            self._image_schema("after", after_shape or before_shape),
            _COMMON_FIELDS,
            self._envelope_name,
            self._payload(event, before, after),
        )

    def without_images(self, value: bytes) -> bytes:
        """The same value with only the key's attributes in its images."""
        decoded = json.decode(value)
        payload = decoded["payload"] if self._schema else decoded
        for name in ("before", "after"):
            if payload[name] is not None:
                payload[name] = {
                    name: content
                    for name, content in payload[name].items()
                    if name in self._key_names
                }
        if self._schema:
            for image in decoded["schema"]["fields"][:2]:
                image["fields"] = [
                    field for field in image["fields"] if field["field"] in self._key_names
                ]
        return json.encode(decoded)

    def _payload(self, event: KafkaEvent, before: bytes, after: bytes) -> bytes:
        is_snapshot = event.origin == "snapshot"
        time_ms = event.time_us // _MICROSECONDS_PER_MILLISECOND
        return self._template % (
            before,
            after,
            time_ms,
            b"true" if is_snapshot else b"false",
            b'"%b"' % event.sequence_number.encode() if event.sequence_number else b"null",
            event.origin.encode(),
            (_READ if is_snapshot else _OPERATIONS[event.name]).encode(),
            time_ms,
            _transaction(event.transaction),
        )

    def _image(self, stored: StoredItem | None) -> bytes:
        if stored is None:
            return b"null"
        return json.encode(plain_json.plain_item(stored.item)) if self._plain else stored.data

    def _struct(self, stored: StoredItem | None) -> tuple[_Shape, bytes]:
        if stored is None:
            return (), b"null"
        shape, payload = self._row(stored.item)
        return shape, json.encode(payload)

    def _row(self, item: Item) -> tuple[_Shape, dict[str, Any]]:
        shape, payload = [], {}
        for name, value in item.items():
            kind, payload[name] = _plain_field(value) if self._plain else ("json", _text(value))
            shape.append((name, kind))
        return tuple(shape), payload

    def _make_image_schema(self, field: str, shape: _Shape) -> bytes:
        fields = [
            {**_KINDS[kind], "optional": name not in self._key_names, "field": name}
            for name, kind in shape
        ]
        schema = _struct(fields, f"{self._schema_name}.Value")
        return json.encode({**schema, **_OPTIONAL, "field": field})

    def _make_key_schema(self, shape: _Shape) -> bytes:
        fields = [{**_KINDS[kind], "optional": False, "field": name} for name, kind in shape]
        return json.encode(_struct(fields, f"{self._schema_name}.Key"))


def _transaction(place: TransactionPlace | None) -> bytes:
    if place is None:
        return b"null"
    # Debezium counts from 1. The order within the table equals the order over all tables.
    order = place.ordinal + 1
    return b'{"id":"%b","total_order":%d,"data_collection_order":%d}' % (
        place.transaction_id.hex().encode(),
        order,
        order,
    )


def _plain_field(value: AttributeValue) -> tuple[str, Any]:
    """The kind of a plain value and its payload."""
    type_name = attribute_value.data_type(value)
    payload = plain_json.plain(value)
    if type_name == "N":
        return ("string" if isinstance(payload, str) else "double"), payload
    if type_name == "NS":
        return ("strings" if isinstance(payload[0], str) else "doubles"), payload
    kind = _PLAIN_KINDS[type_name]
    return kind, _text(payload) if kind == "json" else payload


def _text(content: Any) -> str:
    return json.encode(content).decode()


def _struct(fields: list[_ConnectSchema], name: str) -> _ConnectSchema:
    return {"type": "struct", "fields": fields, "optional": False, "name": name}


_SOURCE: Final = _struct(
    [
        {**_STRING, "field": "version"},
        {**_STRING, "field": "connector"},
        {**_STRING, "field": "name"},
        {**_INT64, "field": "ts_ms"},
        {
            **_STRING,
            **_OPTIONAL,
            "name": "io.debezium.data.Enum",
            "version": 1,
            "parameters": {"allowed": "true,last,false,incremental"},
            "default": "false",
            "field": "snapshot",
        },
        {**_STRING, "field": "db"},
        {**_STRING, "field": "table"},
        {**_STRING, **_OPTIONAL, "field": "sequence"},
        {**_STRING, "field": "origin"},
    ],
    "io.debezium.connector.dynactor.Source",
)
_TRANSACTION: Final = _struct(
    [
        {**_STRING, "field": "id"},
        {**_INT64, "field": "total_order"},
        {**_INT64, "field": "data_collection_order"},
    ],
    "event.block",
)
# The JSON of the schema's fields after the images, without the list's brackets.
_COMMON_FIELDS: Final = b",".join(
    json.encode(field)
    for field in (
        {**_SOURCE, "field": "source"},
        {**_STRING, "field": "op"},
        {**_INT64, **_OPTIONAL, "field": "ts_ms"},
        {**_TRANSACTION, **_OPTIONAL, "version": 1, "field": "transaction"},
    )
)
