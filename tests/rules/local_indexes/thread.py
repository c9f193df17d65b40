"""The table Thread of AWS's page on local secondary indexes, and items of exact sizes.

Sizes are computed here from AWS's page alone, for strings of ASCII: name and value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from tests.support.tables.tables import Call, local_index, table

Item = dict[str, dict[str, Any]]

LAST_POST = "LastPostIndex"
KEYS = ("ForumName:S", "Subject:S", "LastPostDateTime:S")


def thread_table(
    call: Call, projection: str = "INCLUDE", include: tuple[str, ...] = ("Replies",), **members: Any
) -> AbstractContextManager[str]:
    """The table Thread under a unique name, with its index LastPostIndex."""
    return table(call, *KEYS, indexes=(last_post_index(projection, include),), **members)


def last_post_index(
    projection: str = "INCLUDE", include: tuple[str, ...] = ("Replies",)
) -> dict[str, Any]:
    return local_index(
        LAST_POST,
        "ForumName",
        "LastPostDateTime",
        projection,
        include if projection == "INCLUDE" else (),
    )


def thread(forum: str, subject: str, posted: str | None = None, **others: str) -> Item:
    """A thread; without ``posted`` it has no entry in LastPostIndex."""
    texts = {"ForumName": forum, "Subject": subject, "LastPostDateTime": posted} | others
    return {name: {"S": text} for name, text in texts.items() if text is not None}


def key(item: Item) -> Item:
    """The primary key of a thread."""
    return {name: item[name] for name in ("ForumName", "Subject")}


def item_bytes(item: Item) -> int:
    """The size of an item of ASCII strings."""
    assert all(value["S"].isascii() for value in item.values())
    return sum(len(name) + len(value["S"]) for name, value in item.items())


def padded(item: Item, name: str, size_bytes: int, filler: str = "x") -> Item:
    """The item with another attribute that gives it exactly this size."""
    room = size_bytes - item_bytes(item) - len(name)
    assert room >= 0, "the item is larger already"
    return item | {name: {"S": filler * room}}


def sized_thread(forum: str, number: int, *, entry: int, item: int) -> Item:
    """A thread with an entry of this size, padded in Replies, and this size, padded in Tags.

    ``number`` orders the threads, by Subject and by LastPostDateTime.
    """
    keys = thread(forum, f"{number:05}", f"{number:05}")
    held = padded(keys, "Replies", entry)
    return padded(held, "Tags", item) if item > entry else held


def put_all(client: Any, name: str, items: Iterable[Item]) -> list[Item]:
    """Write the items and return them."""
    written = list(items)
    for item in written:
        client.put_item(TableName=name, Item=item)
    return written


def query(client: Any, name: str, forum: str, and_: str = "", **members: Any) -> dict[str, Any]:
    """One page of a forum; ``and_`` is the rest of the key condition.

    ``values`` are more values of expressions, all strings.
    """
    values = {":forum": forum} | members.pop("values", {})
    answer: dict[str, Any] = client.query(
        TableName=name,
        KeyConditionExpression="ForumName = :forum" + (f" AND {and_}" if and_ else ""),
        ExpressionAttributeValues={value: {"S": text} for value, text in values.items()},
        **members,
    )
    return answer


def pages(client: Any, name: str, forum: str, **members: Any) -> Iterator[dict[str, Any]]:
    """All pages of a forum; fails if a page leads back to an earlier one."""
    answer = query(client, name, forum, **members)
    yield answer
    starts: list[Item] = []
    while "LastEvaluatedKey" in answer:
        assert answer["LastEvaluatedKey"] not in starts, "the pages go round in a circle"
        starts.append(answer["LastEvaluatedKey"])
        answer = query(client, name, forum, ExclusiveStartKey=starts[-1], **members)
        yield answer


def texts(items: Iterable[Item], name: str) -> list[str]:
    """One attribute of each item that has it."""
    return [item[name]["S"] for item in items if name in item]


class Units(NamedTuple):
    """Consumed capacity with ReturnConsumedCapacity INDEXES."""

    total: float
    table: float
    indexes: dict[str, float]


def units(answer: dict[str, Any]) -> Units:
    """The consumed units in an answer; missing parts are zero."""
    return consumed_units(answer["ConsumedCapacity"])


def consumed_units(consumed: dict[str, Any]) -> Units:
    """The units of one entry of a batch's answer."""
    kinds = ("LocalSecondaryIndexes", "GlobalSecondaryIndexes")
    return Units(
        consumed["CapacityUnits"],
        consumed.get("Table", {}).get("CapacityUnits", 0.0),
        {
            name: index["CapacityUnits"]
            for kind in kinds
            for name, index in consumed.get(kind, {}).items()
        },
    )
