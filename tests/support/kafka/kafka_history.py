"""Compares a topic with the writers' history, and checks which deletions are marked as expired."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from tests.support.histories.history import (
    TOKEN,
    Commit,
    Delete,
    Done,
    Expected,
    Found,
    History,
    Item,
    Operation,
    Read,
    State,
    check_key,
)
from tests.support.kafka.kafka_consumer import Consumed
from tests.support.writers.expiring_writers import EXPIRES, may_be_deleted, may_expire, place_name

_MILLISECONDS = 1_000


class Change(NamedTuple):
    """The change in a Kafka record; ``is_marked`` if it is marked as made by time to live."""

    keys: Item
    number: int
    old: State
    new: State
    is_marked: bool
    time_ms: int


def changes_of(records: Iterable[Consumed]) -> list[Change]:
    """The changes in order without duplicates, from records in the format ``dynamodb``."""
    seen: set[tuple[bytes, int]] = set()
    changes = []
    for record in records:
        if record.value is None or (record.key, record.sequence_number) in seen:
            continue
        seen.add((record.key, record.sequence_number))
        value: dict[str, Any] = msgspec.json.decode(record.value)
        images = value["dynamodb"]
        changes.append(
            Change(
                images["Keys"],
                int(images["SequenceNumber"]),
                images.get("OldImage"),
                images.get("NewImage"),
                value["userIdentity"] is not None,
                images["ApproximateCreationDateTime"],
            )
        )
    return changes


def violations(
    history: History, table: str, changes: Iterable[Change], items: Mapping[str, Item]
) -> list[str]:
    """The differences between the changes of a table and the answers to its writers.

    ``items`` are the table's present items by canonical key. The operations of a key must have an
    order in which their changes, and deletions by time to live, are the changes of the topic. The
    last change of a key must result in the present item.
    """
    by_name: defaultdict[str, list[Change]] = defaultdict(list)
    for change in changes:
        by_name[place_name(table, change.keys)].append(change)
    of_table = {name for name in history.operations if name.startswith(f"{table}/")}
    found: list[str] = []
    for name in of_table | by_name.keys():
        log = by_name[name]
        operations = list(history.operations.get(name, ()))
        found += _mark_violations(name, log, operations)
        swept = [_swept(change) for change in log if change.is_marked]
        now = items.get(name.removeprefix(f"{table}/"))
        last = Operation("scan", Read(), history.tick(), history.tick(), Found(now))
        commits = [Commit(change.old, change.new) for change in log]
        violation = check_key(name, None, [*swept, *operations, last], {}, commits)
        if violation is not None:
            found.append(str(violation))
    return found


def _swept(change: Change) -> Operation:
    """Time to live's deletion of the change's old item, at an unknown time."""
    assert change.old is not None
    return Operation("time to live", Delete(Expected(change.old[TOKEN]["S"])), 0)


def _mark_violations(name: str, log: list[Change], operations: list[Operation]) -> list[str]:
    """The changes that are wrongly marked as expired, and expired ones that are not marked."""
    outcomes = [each.outcome for each in operations if isinstance(each.request, Delete)]
    removed = {
        outcome.returned[TOKEN]["S"]
        for outcome in outcomes
        if isinstance(outcome, Done) and outcome.returned is not None
    }
    # The answers to deletes in a batch, and unanswered deletes, don't show the deleted item.
    is_known = all(isinstance(each, Done) and each.images == "ALL_OLD" for each in outcomes)
    found = []
    for change in log:
        if change.old is None or change.new is not None:
            if change.is_marked:
                found.append(f"{name}: marked, and no removal {change}")
            continue
        token = change.old[TOKEN]["S"]
        if change.is_marked:
            expires_ms = int(change.old.get(EXPIRES, {"N": "-1"})["N"]) * _MILLISECONDS
            # The record's time is in whole milliseconds.
            has_expired = 0 <= expires_ms <= change.time_ms
            if token in removed or not has_expired or not may_expire(change.keys):
                found.append(f"{name}: marked, and not time to live's {change}")
        elif not may_be_deleted(change.keys) or (is_known and token not in removed):
            found.append(f"{name}: time to live's, and not marked {change}")
    return found
