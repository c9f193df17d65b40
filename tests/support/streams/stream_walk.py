"""Reads all records of a stream, and compares them with the history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from tests.support.clients.wire import Connection
from tests.support.histories.history import Commit, Item, Operation, State, check_key

_SERVICE = "DynamoDBStreams"
_EVENT_NAMES = {(False, True): "INSERT", (True, True): "MODIFY", (True, False): "REMOVE"}

Shard: TypeAlias = dict[str, Any]


class Record(NamedTuple):
    """A stream record; ``name`` is the name of its item in the history."""

    name: str
    event_id: str
    event_name: str
    sequence_number: int
    old: State
    new: State

    @property
    def commit(self) -> Commit:
        """The record as an entry of the item's log."""
        return Commit(self.old, self.new)


async def walk(connection: Connection, arn: str, name_of: Callable[[Item], str]) -> list[Record]:
    """All records from TRIM_HORIZON on, each shard after its parent."""
    records: list[Record] = []
    for shard in parents_first(await _shards(connection, arn)):
        request = {
            "StreamArn": arn,
            "ShardId": shard["ShardId"],
            "ShardIteratorType": "TRIM_HORIZON",
        }
        answer = await _ask(connection, "GetShardIterator", request)
        iterator = answer["ShardIterator"]
        while iterator is not None:
            answer = await _ask(connection, "GetRecords", {"ShardIterator": iterator})
            records += [record_of(each, name_of) for each in answer["Records"]]
            iterator = answer.get("NextShardIterator")
            # An open shard has no end, so stop at the first empty page; no client writes meanwhile.
            if not answer["Records"] and "EndingSequenceNumber" not in shard["SequenceNumberRange"]:
                break
    return records


def parents_first(shards: Iterable[Shard]) -> list[Shard]:
    """The shards in an order in which each shard comes after its parent, if that still exists."""
    waiting = {shard["ShardId"]: shard for shard in shards}
    ordered: list[Shard] = []
    while waiting:
        ready = [each for each in waiting.values() if each.get("ParentShardId") not in waiting]
        assert ready, f"shards are parents of each other: {sorted(waiting)}"
        ordered += ready
        for shard in ready:
            del waiting[shard["ShardId"]]
    return ordered


async def _shards(connection: Connection, arn: str) -> list[Shard]:
    shards: list[Shard] = []
    request = {"StreamArn": arn}
    while True:
        answer = await _ask(connection, "DescribeStream", request)
        shards += answer["StreamDescription"]["Shards"]
        if "LastEvaluatedShardId" not in answer["StreamDescription"]:
            return shards
        request["ExclusiveStartShardId"] = answer["StreamDescription"]["LastEvaluatedShardId"]


async def _ask(connection: Connection, operation: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await connection.call(operation, body, _SERVICE)
    assert answer.status == 200, answer
    return answer.body


def record_of(record: dict[str, Any], name_of: Callable[[Item], str]) -> Record:
    """A record as GetRecords returns it."""
    change = record["dynamodb"]
    return Record(
        name_of(change["Keys"]),
        record["eventID"],
        record["eventName"],
        int(change["SequenceNumber"]),
        change.get("OldImage"),
        change.get("NewImage"),
    )


def stream_violations(records: Sequence[Record], items: Mapping[str, Item]) -> list[str]:
    """The contradictions within a whole stream, and between its last images and these items."""
    found: list[str] = []
    if len({record.event_id for record in records}) != len(records):
        found.append("two records have one event id")
    last: dict[str, Record] = {}
    for record in records:
        before = last.get(record.name)
        last[record.name] = record
        if record.old == record.new:
            found.append(f"{record.name}: a record of no change {record}")
        elif record.event_name != _EVENT_NAMES[record.old is not None, record.new is not None]:
            found.append(f"{record.name}: not what its images say {record}")
        if record.old != (before.new if before else None):
            found.append(f"{record.name}: {record} does not follow {before}")
        if before is not None and record.sequence_number <= before.sequence_number:
            found.append(f"{record.name}: the sequence number of {record} does not rise")
    for name in last.keys() | items.keys():
        image = last[name].new if name in last else None
        if image != items.get(name):
            found.append(f"{name}: the last image is {image}, the item {items.get(name)}")
    return found


class Ledger:
    """Compares the records of a stream with the history, and with its records before a restart.

    ``projections`` are the index projections of the reads in the history.
    """

    def __init__(self, projections: Mapping[str, Callable[[Item], State]] | None = None) -> None:
        self._projections = dict(projections or {})
        self._known: dict[str, list[Record]] = {}

    def violations(
        self,
        records: Sequence[Record],
        initial: Mapping[str, State],
        operations: Mapping[str, Sequence[Operation]],
        items: Mapping[str, Item],
    ) -> list[str]:
        """The differences between a whole stream, the history, and the records of the last call.

        ``initial`` and ``operations`` are the history since the last call, ``items`` the present
        items.
        """
        found = stream_violations(records, items)
        by_name: defaultdict[str, list[Record]] = defaultdict(list)
        for record in records:
            by_name[record.name].append(record)
        for name in by_name.keys() | self._known.keys() | operations.keys():
            known, now = self._known.get(name, []), by_name[name]
            if now[: len(known)] != known:
                found.append(f"{name}: the stream showed {known} and now {now}")
            log = [record.commit for record in now[len(known) :]]
            of_item = operations.get(name, ())
            violation = check_key(name, initial.get(name), of_item, self._projections, log)
            if violation is not None:
                found.append(f"not in the stream's order: {violation}")
        self._known = dict(by_name)
        return found
