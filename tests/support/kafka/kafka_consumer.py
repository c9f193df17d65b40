"""A consumer of a table's topic: it reads all records and rebuilds the table from them.

It reads the form ``dynamodb`` and checks that form's promises. An item's changes come in order and
without gaps, duplicates are equal, removals by time to live are marked, and Kafka's headers match
the value.
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
# The known state of an item: its image, or that the image was too large for the broker.
Known = Item | Literal["omitted"]

_SERVICE: Final = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
_EVENT_NAMES: Final = {"c": "INSERT", "r": "INSERT", "u": "MODIFY", "d": "REMOVE", "t": "GAP"}
_PATIENCE_SECONDS: Final = 60


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
    """All present records of a topic, partition by partition, each in order.

    With ``read_committed``, records of aborted transactions are skipped, and reading stops at an
    open one.
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
        deadline = monotonic() + _PATIENCE_SECONDS
        while [one for one in partitions if await consumer.position(one) < ends[one]]:
            read = await consumer.getmany(timeout_ms=200)
            for partition, records in read.items():
                kept = found[partition.partition]
                kept.extend(_consumed(record) for record in records)
                deadline = monotonic() + _PATIENCE_SECONDS
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
    """A table according to its topic.

    Invariant: ``items`` are the result of the applied records, by the primary key as canonical
    JSON.
    """

    def __init__(self) -> None:
        self.items: dict[str, Known] = {}
        # Changes by event name and origin, without duplicates.
        self.events: Counter[tuple[str, str]] = Counter()
        self.duplicates = 0
        # Changes that a snapshot already included.
        self.overlaps = 0
        self.gaps = 0
        self.tombstones = 0
        # By item key: the highest sequence number, that of a snapshot, and the values by number.
        self._last: dict[str, int] = {}
        self._snapshot: dict[str, int] = {}
        self._seen: dict[tuple[str, int], bytes] = {}
        self._partition_of: dict[str, int] = {}
        # A gap is sent to each Kafka partition; records before it there are void.
        self._after_gap: set[int] = set()

    @classmethod
    def of(cls, records: Iterable[Consumed]) -> Replica:
        """The result of these records; those of one Kafka partition are in order."""
        replica = cls()
        for record in records:
            replica.apply(record)
        return replica

    def apply(self, record: Consumed) -> None:
        """Apply a record.

        Raises:
            AssertionError: it breaks a promise; the message shows the record.
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
        # With any kind of record key, one item is in one Kafka partition.
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
        """A duplicate record: it is equal, or the order of the item's changes is broken."""
        if (name, number) not in self._seen and number <= self._snapshot.get(name, 0):
            self.overlaps += 1
            return
        assert (name, number) in self._seen, f"out of order: {record}"
        assert self._seen[name, number] == record.value, f"differs: {record}"
        self.duplicates += 1

    def _apply_snapshot(self, name: str, number: int, value: Any, record: Consumed) -> None:
        """An item of a snapshot, ignored if a later change of it is known."""
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
        """After a gap, the whole snapshot may come after the first changes."""
        return record.partition in self._after_gap

    def _note(self, name: str, number: int, record: Consumed) -> None:
        assert record.value is not None
        self._last[name] = number
        self._seen[name, number] = record.value


def as_dynamodb(record: Consumed) -> Consumed:
    """A record of the form ``debezium``, with the key of an item, in the form ``dynamodb``.

    Missing members are taken from its headers, so errors there show, too.
    """
    if record.value is None:
        return record
    told = msgspec.json.decode(record.value)
    source, op = told["source"], told["op"]
    assert (told["before"] is None, told["after"] is None) == {
        "c": (True, False),
        "r": (True, False),
        "u": (False, False),
        "d": (False, True),
        "t": (True, True),
    }[op], record
    assert (source["origin"] == record.headers["origin"]) or op in "rt", record
    images = {"OldImage": told["before"], "NewImage": told["after"]}
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
    """The items of a scan by key, in the same form as the consumer's replica."""
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
