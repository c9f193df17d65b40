"""A consumer of a table's topic: it reads all records and rebuilds the table from them.

The records have the format ``dynamodb``. The consumer checks that an item's changes come in order
and without gaps, and that duplicates are equal. It also checks that deletions by time to live are
marked, and that Kafka's headers match the value.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from time import monotonic
from typing import Any, Final, Literal, NamedTuple

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition

from tests.support.kafka.kafka_broker import LARGEST_MESSAGE_BYTES, BrokerAddress
from tests.support.kafka.kafka_topics import partition_count

Item = dict[str, Any]
Isolation = Literal["read_committed", "read_uncommitted"]
# An item's image, or "omitted" if the image was too large for the broker.
Known = Item | Literal["omitted"]

_SERVICE: Final = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
_EVENT_NAMES: Final = {"c": "INSERT", "r": "INSERT", "u": "MODIFY", "d": "REMOVE", "t": "GAP"}
_TIMEOUT_SECONDS: Final = 60


class Consumed(NamedTuple):
    """A record of a topic; a value of None is a tombstone."""

    partition: int
    offset: int
    key: bytes
    value: bytes | None
    headers: dict[str, str]
    timestamp_ms: int

    @property
    def sequence_number(self) -> int:
        """The sequence number, which orders the changes of one item; 0 for a gap."""
        return int(self.headers.get("sequence-number", 0))


async def read_topic(
    broker: BrokerAddress, topic: str, isolation: Isolation = "read_uncommitted"
) -> list[Consumed]:
    """All present records of a topic, in order within each partition.

    With ``read_committed``, the records of aborted transactions are skipped, and reading stops at
    an open transaction.
    """
    consumer = AIOKafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers,
        isolation_level=isolation,
        enable_auto_commit=False,
        max_partition_fetch_bytes=LARGEST_MESSAGE_BYTES,
    )
    found: defaultdict[int, list[Consumed]] = defaultdict(list)
    try:
        await consumer.start()
        count = await partition_count(broker, topic)
        partitions = [TopicPartition(topic, number) for number in range(count)]
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        ends = await consumer.end_offsets(partitions)
        deadline = monotonic() + _TIMEOUT_SECONDS
        while [one for one in partitions if await consumer.position(one) < ends[one]]:
            read = await consumer.getmany(timeout_ms=200)
            for partition, records in read.items():
                kept = found[partition.partition]
                kept.extend(_consumed(record) for record in records)
                deadline = monotonic() + _TIMEOUT_SECONDS
            assert monotonic() < deadline, f"{topic} is not read up to {ends}"
    finally:
        await consumer.stop()
    return [record for number in sorted(found) for record in found[number]]


def _consumed(record: Any) -> Consumed:
    headers = {name: value.decode() for name, value in record.headers}
    return Consumed(
        record.partition, record.offset, record.key, record.value, headers, record.timestamp
    )


class Replica:
    """A table that is rebuilt from the records of its topic.

    Invariant: ``items`` are the result of the applied records, by the primary key as canonical
    JSON.
    """

    def __init__(self) -> None:
        self.items: dict[str, Known] = {}
        # The number of changes by event name and origin, without duplicates.
        self.events: Counter[tuple[str, str]] = Counter()
        self.duplicates = 0
        # The number of changes that a snapshot already included.
        self.overlaps = 0
        self.gaps = 0
        self.tombstones = 0
        # By item key: the highest sequence number, and the sequence number of the item's snapshot.
        self._last: dict[str, int] = {}
        self._snapshot: dict[str, int] = {}
        self._seen: dict[tuple[str, int], bytes] = {}
        self._partition_of: dict[str, int] = {}
        # The Kafka partitions with a gap. A gap invalidates all earlier records of its Kafka
        # partition.
        self._after_gap: set[int] = set()

    @classmethod
    def of(cls, records: Iterable[Consumed]) -> Replica:
        """Apply these records, which are in order within each Kafka partition."""
        replica = cls()
        for record in records:
            replica.apply(record)
        return replica

    def apply(self, record: Consumed) -> None:
        """Apply a record.

        Raises:
            AssertionError: the record is wrong, or comes out of order; the message shows the
            record.
        """
        if record.value is None:
            self._apply_tombstone(record)
            return
        value = msgspec.json.decode(record.value)
        _check_headers(record, value)
        if value["eventName"] == "GAP":
            self._forget(record.partition)
            return
        keys = value["dynamodb"]["Keys"]
        name = canonical(keys)
        key = msgspec.json.decode(record.key)
        assert key.items() <= keys.items(), record
        # All records of one item are in one Kafka partition, whatever the table's record key is.
        assert self._partition_of.setdefault(name, record.partition) == record.partition, record
        number = record.sequence_number
        if value.get("snapshot"):
            self._apply_snapshot(name, number, value, record)
        elif number <= self._last.get(name, 0):
            self._apply_again(name, number, record)
        else:
            self._apply_change(name, number, value, record)

    def _apply_change(self, name: str, number: int, value: Any, record: Consumed) -> None:
        images = value["dynamodb"]
        new, old = images.get("NewImage"), images.get("OldImage")
        is_cut = "images-omitted" in record.headers
        known = self.items.get(name)
        if not is_cut:
            assert (new is None, old is None) == {
                "INSERT": (False, True),
                "MODIFY": (False, False),
                "REMOVE": (True, False),
            }[value["eventName"]], record
            if known != "omitted" and not (known is None and self._may_be_unknown(record)):
                assert old == known, f"{record}\nis no change of\n{known}"
        if value["eventName"] == "REMOVE":
            self.items.pop(name, None)
        else:
            self.items[name] = "omitted" if is_cut else new
        self._note(name, number, record)
        self.events[value["eventName"], record.headers["origin"]] += 1

    def _apply_again(self, name: str, number: int, record: Consumed) -> None:
        """Apply a record with an old sequence number: a duplicate, or a change in a snapshot."""
        if (name, number) not in self._seen and number <= self._snapshot.get(name, 0):
            self.overlaps += 1
            return
        assert (name, number) in self._seen, f"out of order: {record}"
        assert self._seen[name, number] == record.value, f"differs: {record}"
        self.duplicates += 1

    def _apply_snapshot(self, name: str, number: int, value: Any, record: Consumed) -> None:
        """Apply an item of a snapshot, unless a later change of the item was applied before."""
        assert value["eventName"] == "INSERT", record
        if number < self._last.get(name, 0):
            return
        image = value["dynamodb"].get("NewImage", "omitted")
        if number == self._last.get(name) and name in self.items:
            assert self.items[name] in (image, "omitted"), record
        self.items[name] = image
        self._last[name] = self._snapshot[name] = number
        self.events["INSERT", "snapshot"] += 1

    def _apply_tombstone(self, record: Consumed) -> None:
        name = canonical(msgspec.json.decode(record.key))
        number = record.sequence_number
        assert number <= self._last.get(name, 0), f"a tombstone before its removal: {record}"
        if number == self._last[name]:
            assert name not in self.items, f"a tombstone of an item that is there: {record}"
        self.tombstones += 1

    def _forget(self, partition: int) -> None:
        self.gaps += 1
        self._after_gap.add(partition)
        for name in [name for name, at in self._partition_of.items() if at == partition]:
            self.items.pop(name, None)
            self._last.pop(name, None)
            self._snapshot.pop(name, None)

    def _may_be_unknown(self, record: Consumed) -> bool:
        """Whether the item's old image may be missing: after a gap, changes may precede the
        snapshot.
        """
        return record.partition in self._after_gap

    def _note(self, name: str, number: int, record: Consumed) -> None:
        assert record.value is not None
        self._last[name] = number
        self._seen[name, number] = record.value


def as_dynamodb(record: Consumed) -> Consumed:
    """Convert a record of an item from the format ``debezium`` to the format ``dynamodb``.

    Members that ``debezium`` lacks are taken from the headers, so wrong headers are found, too.
    """
    if record.value is None:
        return record
    value = msgspec.json.decode(record.value)
    source, op = value["source"], value["op"]
    assert (value["before"] is None, value["after"] is None) == {
        "c": (True, False),
        "r": (True, False),
        "u": (False, False),
        "d": (False, True),
        "t": (True, True),
    }[op], record
    assert (source["origin"] == record.headers["origin"]) or op in "rt", record
    images = {"OldImage": value["before"], "NewImage": value["after"]}
    value = {
        "eventName": _EVENT_NAMES[op],
        "eventID": record.headers["event-id"],
        "tableName": source["table"],
        "userIdentity": _SERVICE if source["origin"] == "ttl" else None,
        "snapshot": op == "r",
        "dynamodb": {
            "ApproximateCreationDateTime": source["ts_ms"],
            "Keys": {} if op == "t" else msgspec.json.decode(record.key),
            **{name: image for name, image in images.items() if image is not None},
            **({} if op == "t" else {"SequenceNumber": source["sequence"]}),
        },
    }
    return record._replace(value=msgspec.json.encode(value))


def canonical(keys: Item) -> str:
    """A primary key as text, independent of the order of its attributes."""
    return msgspec.json.encode(keys, order="sorted").decode()


def by_key(items: Iterable[Item], *key_names: str) -> dict[str, Item]:
    """The items of a scan by key, as in ``Replica.items``."""
    return {canonical({name: item[name] for name in key_names}): item for item in items}


def _check_headers(record: Consumed, value: Any) -> None:
    headers = record.headers
    assert headers["event-name"] == value["eventName"], record
    assert headers["event-id"] == value["eventID"], record
    assert headers["table"] == value["tableName"], record
    assert headers.get("sequence-number") == value["dynamodb"].get("SequenceNumber"), record
    is_marked = value["userIdentity"] == _SERVICE
    assert is_marked == (headers["origin"] == "ttl"), record
    assert is_marked or value["userIdentity"] is None, record
