"""An event for Kafka's consumers, before it is written in one of the formats.

An event is a change of an item, an item of a snapshot, or a gap, where changes are missing.
"""

from __future__ import annotations

from hashlib import md5
from typing import Final, Literal, NamedTuple, TypeAlias

from dynactor.model.keys.key import KeySchema
from dynactor.model.values import item as items
from dynactor.model.values.stored_item import StoredItem
from dynactor.streams import sequence_number, stream_record
from dynactor.streams.change_record import ChangeRecord, Origin, TransactionPlace

KafkaEventName: TypeAlias = Literal["INSERT", "MODIFY", "REMOVE", "GAP"]
# The origin of a change. Items of a snapshot and gaps have none, but names of their own.
KafkaOrigin: TypeAlias = Literal["user", "ttl", "transaction", "backfill", "snapshot", "gap"]

_ORIGINS: Final[dict[Origin, KafkaOrigin]] = {
    Origin.USER: "user",
    Origin.TTL: "ttl",
    Origin.TRANSACTION: "transaction",
    Origin.BACKFILL: "backfill",
}
# The key of events without an item: compacted topics refuse a record without a key.
_NO_KEYS: Final = b"{}"


class KafkaEvent(NamedTuple):
    """One event, independent of the format.

    ``sequence_number`` is in its public form, empty for a gap. ``keys`` is the primary key as
    compact DynamoDB JSON, in the order of the key schema.
    """

    name: KafkaEventName
    event_id: str
    origin: KafkaOrigin
    sequence_number: str
    time_us: int
    keys: bytes
    old: StoredItem | None
    new: StoredItem | None
    transaction: TransactionPlace | None = None
    # The access key of the caller; empty if it is unknown.
    author: str = ""


def change_event(record: ChangeRecord) -> KafkaEvent:
    """A change, with the event id that DynamoDB Streams gives it."""
    return KafkaEvent(
        stream_record.event_name(record),
        stream_record.event_id(record),
        _ORIGINS[record.origin],
        record.sequence_number.wire(),
        record.commit_time_us,
        record.keys,
        record.old,
        record.new,
        record.transaction,
        record.author,
    )


def snapshot_event(item: StoredItem, key_schema: KeySchema, taken_us: int) -> KafkaEvent:
    """An item in its present state, with the sequence number of the change that made it."""
    number = sequence_number.unpack(item.version).wire()
    keys = items.encode(key_schema.extract_key(item.item))
    event_id = _digest(f"snapshot {number} {taken_us} {keys.hex()}")
    return KafkaEvent("INSERT", event_id, "snapshot", number, taken_us, keys, None, item)


def gap_event(table_name: str, time_us: int) -> KafkaEvent:
    """A gap: changes of the table are missing."""
    event_id = _digest(f"gap {table_name} {time_us}")
    return KafkaEvent("GAP", event_id, "gap", "", time_us, _NO_KEYS, None, None)


def _digest(text: str) -> str:
    return md5(text.encode(), usedforsecurity=False).hexdigest()
