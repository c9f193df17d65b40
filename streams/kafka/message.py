"""The Kafka records of a table's changes and items, by pure functions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Final, Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from dynactor.model.configuration_error import ConfigurationError
from dynactor.model.definitions.table import CreationTimePrecision
from dynactor.model.keys.key import KeySchema
from dynactor.model.option import Option, OptionGroup
from dynactor.model.values import item as items
from dynactor.model.values.stored_item import StoredItem
from dynactor.streams.change_record import ChangeRecord
from dynactor.streams.kafka import consumer_event
from dynactor.streams.kafka.consumer_event import KafkaEvent
from dynactor.streams.kafka.debezium import DebeziumEnvelope
from dynactor.streams.kafka.dynamodb import DynamoDBEnvelope

KafkaFormat: TypeAlias = Literal["dynamodb", "debezium"]
KafkaKey: TypeAlias = Literal["item", "collection"]
Headers: TypeAlias = tuple[tuple[str, bytes], ...]

_CONTENT_TYPE: Final = ("content-type", b"application/json")
_IMAGES_OMITTED: Final = ("images-omitted", b"true")
_CLOUD_EVENT_TYPES: Final = {
    "INSERT": "item.insert",
    "MODIFY": "item.modify",
    "REMOVE": "item.remove",
    "GAP": "table.gap",
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS_PER_MILLISECOND: Final = 1_000


class KafkaForm(Struct, frozen=True, cache_hash=True):
    """The form of published records; ``plain_images`` and ``schema`` apply only to debezium.

    Raises ``ConfigurationError`` if tombstones are combined with the key of an item collection.
    """

    format: Annotated[KafkaFormat, Option("--kafka-format", OptionGroup.KAFKA_RECORDS)] = "dynamodb"
    """Format of records: as in Kinesis Data Streams for DynamoDB, or as Debezium's change
    events."""

    key: Annotated[KafkaKey, Option("--kafka-key", OptionGroup.KAFKA_RECORDS)] = "item"
    """Key of records: the primary key of the item, or the partition key only (collection)."""

    tombstones: Annotated[
        bool | None, Option("--kafka-tombstones", OptionGroup.KAFKA_RECORDS, has_negative=True)
    ] = None
    """Publish a record without a value after a removal, for compacted topics. Default: with the
    debezium format only."""

    cloud_events: Annotated[bool, Option("--kafka-cloud-events", OptionGroup.KAFKA_RECORDS)] = False
    """Add the headers of CloudEvents (ce_id, ce_source, …)."""

    plain_images: Annotated[
        bool,
        Option(
            "--kafka-debezium-images",
            OptionGroup.KAFKA_RECORDS,
            parse=lambda images: images == "plain",
            given=Literal["dynamodb", "plain"],
            default="dynamodb",
        ),
    ] = False
    """Form of items in Debezium's events: DynamoDB's JSON with types, or plain JSON."""

    schema: Annotated[bool, Option("--kafka-debezium-schema", OptionGroup.KAFKA_RECORDS)] = False
    """Publish Debezium's events with their schema, for Kafka Connect."""

    def __post_init__(self) -> None:
        if self.tombstones and self.key == "collection":
            raise ConfigurationError(
                "--kafka-tombstones with --kafka-key collection would make compacted topics "
                "delete all items of an item collection with one of them: give one of the options"
            )

    @property
    def has_tombstones(self) -> bool:
        """Whether a tombstone, a record with a null value, follows each REMOVE."""
        if self.tombstones is None:
            return self.format == "debezium" and self.key == "item"
        return self.tombstones


class KafkaSource(Struct, frozen=True, cache_hash=True):
    """The source of changes: a table, and its public names.

    ``prefix`` is the prefix of topics, and Debezium's logical name of the server. ``version`` is
    the version of dynactor.
    """

    region: str
    account_id: str
    table_name: str
    key_schema: KeySchema
    prefix: str
    version: str
    precision: CreationTimePrecision = "MILLISECOND"


class KafkaMessage(NamedTuple):
    """A Kafka record; a value of None is a tombstone.

    ``timestamp_ms`` is the time of the change, of the start of a snapshot, or of the gap, by the
    clock that recorded it. With a virtual clock, Kafka's retention can't use this time.
    """

    key: bytes
    value: bytes | None
    headers: Headers
    timestamp_ms: int


def change_messages(
    record: ChangeRecord, source: KafkaSource, form: KafkaForm
) -> list[KafkaMessage]:
    """The Kafka records of a change: one record, and a tombstone after a REMOVE."""
    event = consumer_event.change_event(record)
    writer = _writer(source, form)
    message = writer.message(event)
    if event.new is None and form.has_tombstones:
        return [message, writer.tombstone(event, message.key)]
    return [message]


def snapshot_message(
    item: StoredItem, source: KafkaSource, form: KafkaForm, *, taken_us: int
) -> KafkaMessage:
    """The Kafka record of an item in a snapshot; ``taken_us`` is the start of the snapshot.

    Its sequence number is that of the change that made the item, so any later change of the item
    has a higher one.
    """
    return _writer(source, form).message(
        consumer_event.snapshot_event(item, source.key_schema, taken_us)
    )


def gap_message(source: KafkaSource, form: KafkaForm, *, time_us: int) -> KafkaMessage:
    """A record that says that changes are missing, so consumers must drop the table's state.

    The caller sends it to every Kafka partition of the topic, and then a snapshot of all items.
    """
    return _writer(source, form).message(consumer_event.gap_event(source.table_name, time_us))


def without_images(message: KafkaMessage, source: KafkaSource, form: KafkaForm) -> KafkaMessage:
    """The same record without its images, for a broker that finds it too large.

    The key and all other data of the change stay; the header ``images-omitted`` marks the omission.
    A record without images is returned unchanged: a tombstone, or one that was cut before.
    """
    if message.value is None or _IMAGES_OMITTED in message.headers:
        return message
    value = _writer(source, form).without_images(message.value)
    return message._replace(value=value, headers=(*message.headers, _IMAGES_OMITTED))


class _KafkaEnvelope(Protocol):
    """Encodes keys and values in one format."""

    def key(self, keys: bytes) -> bytes: ...

    def value(self, event: KafkaEvent) -> bytes: ...

    def without_images(self, value: bytes) -> bytes: ...


class _Writer:
    """Makes the Kafka records of one source in one form, from precomputed parts."""

    def __init__(self, source: KafkaSource, form: KafkaForm) -> None:
        self._source = source
        self._form = form
        self._table = ("table", source.table_name.encode())
        self._arn = (
            f"arn:aws:dynamodb:{source.region}:{source.account_id}:table/{source.table_name}"
        ).encode()
        self._envelope = _envelope(source, form)

    def message(self, event: KafkaEvent) -> KafkaMessage:
        return KafkaMessage(
            self._key(event),
            self._envelope.value(event),
            self._headers(event),
            event.time_us // _MICROSECONDS_PER_MILLISECOND,
        )

    def tombstone(self, event: KafkaEvent, key: bytes) -> KafkaMessage:
        headers = (self._table, ("sequence-number", event.sequence_number.encode()))
        return KafkaMessage(key, None, headers, event.time_us // _MICROSECONDS_PER_MILLISECOND)

    def without_images(self, value: bytes) -> bytes:
        return self._envelope.without_images(value)

    def _key(self, event: KafkaEvent) -> bytes:
        keys = event.keys
        if self._form.key == "collection" and event.name != "GAP":
            key = items.decode(keys)
            schema = self._source.key_schema
            keys = items.encode({part.name: key[part.name] for part in schema.partition})
        return self._envelope.key(keys)

    def _headers(self, event: KafkaEvent) -> Headers:
        headers: Headers = (
            _CONTENT_TYPE,
            ("event-name", event.name.encode()),
            ("event-id", event.event_id.encode()),
            ("origin", event.origin.encode()),
            self._table,
        )
        if event.sequence_number:
            headers += (("sequence-number", event.sequence_number.encode()),)
        if event.transaction is not None:
            transaction_id = event.transaction.transaction_id.hex().encode()
            headers += (("transaction-id", transaction_id),)
        if event.author:
            headers += (("access-key-id", event.author.encode()),)
        if self._form.cloud_events:
            headers += self._cloud_event(event)
        return headers

    def _cloud_event(self, event: KafkaEvent) -> Headers:
        kind = "item.snapshot" if event.origin == "snapshot" else _CLOUD_EVENT_TYPES[event.name]
        time = _EPOCH + timedelta(microseconds=event.time_us)
        return (
            ("ce_specversion", b"1.0"),
            ("ce_id", event.event_id.encode()),
            ("ce_source", self._arn),
            ("ce_type", f"dynactor.{kind}".encode()),
            ("ce_subject", event.keys),
            ("ce_time", time.isoformat(timespec="microseconds").replace("+00:00", "Z").encode()),
        )


def _envelope(source: KafkaSource, form: KafkaForm) -> _KafkaEnvelope:
    if form.format == "dynamodb":
        return DynamoDBEnvelope(source.region, source.table_name, source.precision)
    return DebeziumEnvelope(
        source.prefix,
        source.version,
        source.region,
        source.table_name,
        source.key_schema,
        plain_images=form.plain_images,
        schema=form.schema,
    )


@lru_cache(maxsize=1024)
def _writer(source: KafkaSource, form: KafkaForm) -> _Writer:
    return _Writer(source, form)
