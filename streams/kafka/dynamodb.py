"""The format of Kinesis Data Streams for DynamoDB, the default in Kafka.

Stored images are included unchanged. Source of the members and their names: "Using Kinesis Data
Streams to capture changes to DynamoDB". Additions are ``SequenceNumber``, which AWS leaves to
Kinesis, ``snapshot`` on rows of a snapshot, and the event name ``GAP``.
"""

from __future__ import annotations

from typing import Final

from msgspec import json

from dynactor.model.definitions.table import CreationTimePrecision
from dynactor.model.values import item as items
from dynactor.streams.kafka.consumer_event import KafkaEvent

_MICROSECONDS_PER_UNIT: Final = {"MILLISECOND": 1_000, "MICROSECOND": 1}
_SERVICE: Final = b'{"type":"Service","principalId":"dynamodb.amazonaws.com"}'


class DynamoDBEnvelope:
    """Writes the changes of one table."""

    def __init__(self, region: str, table_name: str, precision: CreationTimePrecision) -> None:
        self._time_unit_us = _MICROSECONDS_PER_UNIT[precision]
        self._template = (
            b'{"awsRegion":%b,"eventID":"%%b","eventName":"%%b","userIdentity":%%b,'
            b'"recordFormat":"application/json","tableName":%b,"dynamodb":{'
            b'"ApproximateCreationDateTime":%%d,"ApproximateCreationDateTimePrecision":"%b",'
            b'"Keys":%%b%%b,"SizeBytes":%%d},"eventSource":"aws:dynamodb"%%b}'
        ) % (_literal(region), _literal(table_name), precision.encode())

    def key(self, keys: bytes) -> bytes:
        """The key of a record: DynamoDB JSON, unchanged."""
        return keys

    def value(self, event: KafkaEvent) -> bytes:
        """The value of a record: a change, an item of a snapshot, or a gap."""
        members = b""
        size_bytes = items.size_bytes(items.decode(event.keys))
        if event.new is not None:
            members = b',"NewImage":' + event.new.data
            size_bytes += event.new.size_bytes
        if event.old is not None:
            members += b',"OldImage":' + event.old.data
            size_bytes += event.old.size_bytes
        if event.sequence_number:
            members += b',"SequenceNumber":"%b"' % event.sequence_number.encode()
        return self._template % (
            event.event_id.encode(),
            event.name.encode(),
            _SERVICE if event.origin == "ttl" else b"null",
            event.time_us // self._time_unit_us,
            event.keys,
            members,
            size_bytes,
            b',"snapshot":true' if event.origin == "snapshot" else b"",
        )

    def without_images(self, value: bytes) -> bytes:
        """The same value without images; ``SizeBytes`` still counts them."""
        decoded = json.decode(value)
        for image in ("NewImage", "OldImage"):
            decoded["dynamodb"].pop(image, None)
        return json.encode(decoded)


def _literal(text: str) -> bytes:
    return json.encode(text).replace(b"%", b"%%")
