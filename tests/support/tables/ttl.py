"""Enables and disables time to live through DynamoDB's API, and waits for deletions."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

from tests.support.environment.hanging import HANG_SECONDS
from tests.support.tables.tables import Call, unique_name

Item = dict[str, dict[str, Any]]


def wait_until(condition: Callable[[], bool]) -> None:
    """Poll until the condition is true."""
    deadline = monotonic() + HANG_SECONDS
    while not condition():
        assert monotonic() < deadline, "it did not become true"


def specification(attribute_name: str, *, enabled: bool = True) -> dict[str, Any]:
    """A TimeToLiveSpecification."""
    return {"Enabled": enabled, "AttributeName": attribute_name}


def status(call: Call, name: str) -> str:
    """The status of a table's time to live."""
    answer = call("DescribeTimeToLive", {"TableName": name})
    found: str = answer["TimeToLiveDescription"]["TimeToLiveStatus"]
    return found


def switch(call: Call, name: str, attribute_name: str, *, enabled: bool = True) -> None:
    """Enable or disable time to live, and wait until its status has changed."""
    asked = specification(attribute_name, enabled=enabled)
    call("UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": asked})
    wait_until(lambda: status(call, name) == ("ENABLED" if enabled else "DISABLED"))


def put_all(call: Call, name: str, *items: Item) -> None:
    """Put items, one after another."""
    for item in items:
        call("PutItem", {"TableName": name, "Item": item})


def found(call: Call, name: str, key: Item) -> Item | None:
    """The item with that key."""
    answer = call("GetItem", {"TableName": name, "Key": key, "ConsistentRead": True})
    item: Item | None = answer.get("Item")
    return item


def scanned(call: Call, name: str, **members: Any) -> list[Item]:
    """All items of a small table, or the entries of an index."""
    items: list[Item] = call("Scan", {"TableName": name, **members})["Items"]
    return items


def wait_swept(call: Call, name: str, partition: Item, sort_name: str, expired: Item) -> None:
    """Wait until the sweeper has processed a partition key's items that expired before ``expired``.

    The function puts an item with that partition key and expiry time, and waits for its deletion.
    The sweeper processes the items of a partition key in the order of their expiry times.
    """
    key = partition | {sort_name: {"S": unique_name("swept")}}
    put_all(call, name, key | expired)
    wait_until(lambda: found(call, name, key) is None)
