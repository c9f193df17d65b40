"""A table and its changes, for tests of the formats of Kafka records."""

from __future__ import annotations

from typing import Final

from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.values.item import Item
from dynactor.model.values.stored_item import StoredItem
from dynactor.streams.change_record import ChangeRecord, Origin, TransactionPlace
from dynactor.streams.kafka.message import KafkaSource
from dynactor.streams.sequence_number import SequenceNumber
from tests.support.streams.changes import change

KEY_SCHEMA: Final = KeySchema((KeyAttribute("Artist", "S"),), (KeyAttribute("Year", "N"),))
SOURCE: Final = KafkaSource(
    region="eu-west-1",
    account_id="000000000000",
    table_name="Music",
    key_schema=KEY_SCHEMA,
    prefix="dynactor",
    version="0.1.0",
)
KEY: Final[Item] = {"Artist": {"S": "Björk"}, "Year": {"N": "1997"}}
OLD: Final[Item] = {"Plays": {"N": "41"}}
NEW: Final[Item] = {"Plays": {"N": "42"}, "Tags": {"SS": ["art", "pop"]}}
NUMBER: Final = SequenceNumber(2, 5)
TAKEN_US: Final = 1_700_000_100_000_001

INSERT: Final = change(KEY, None, NEW, NUMBER)
MODIFY: Final = change(KEY, OLD, NEW, NUMBER)
REMOVE: Final = change(KEY, NEW, None, NUMBER)
EXPIRED: Final = change(KEY, NEW, None, NUMBER, origin=Origin.TTL)
IN_TRANSACTION: Final = change(
    KEY,
    OLD,
    NEW,
    NUMBER,
    origin=Origin.TRANSACTION,
    transaction=TransactionPlace(b"\x01\xff", 1, 3),
)


def stored(record: ChangeRecord) -> StoredItem:
    """The item after a change."""
    assert record.new is not None
    return record.new
