"""The table GameScores of AWS's page on global secondary indexes, and reads of its indexes.

An index follows its table with a short delay, so tests poll for the expected result with
``eventually``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from time import monotonic
from typing import Any, TypeVar

from tests.support.environment.hanging import HANG_SECONDS
from tests.support.tables import tables
from tests.support.tables.tables import Call, table

Item = dict[str, dict[str, Any]]
T = TypeVar("T")

GAME_TITLE = "GameTitleIndex"
KEYS = ("UserId:S", "GameTitle:S", "TopScore:N")


def global_index(
    name: str,
    *keys: str,
    projection: str = "ALL",
    include: tuple[str, ...] = (),
    throughput: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """The definition of a global index; ``throughput`` is its read and write units."""
    members = {} if throughput is None else {"ProvisionedThroughput": provisioned(*throughput)}
    held = "INCLUDE" if include else projection
    return tables.global_index(name, *keys, projection=held, include=include, **members)


def provisioned(read: int, write: int) -> dict[str, int]:
    """A ProvisionedThroughput."""
    return {"ReadCapacityUnits": read, "WriteCapacityUnits": write}


def game_title_index(**members: Any) -> dict[str, Any]:
    """The definition of GameTitleIndex, which has the scores of a game in order."""
    return global_index(GAME_TITLE, "GameTitle", "TopScore", **members)


def scores_table(
    call: Call,
    *indexes: dict[str, Any],
    keys: tuple[str, ...] = KEYS,
    **members: Any,
) -> AbstractContextManager[str]:
    """The table GameScores under a unique name, with GameTitleIndex or other indexes."""
    members["GlobalSecondaryIndexes"] = list(indexes or (game_title_index(),))
    return table(call, *keys, **members)


def score(user: str, game: str, top_score: int | None = None, **others: str | int) -> Item:
    """A user's score in a game, with other attributes of type S or N."""
    item = {"UserId": value(user), "GameTitle": value(game)}
    if top_score is not None:
        item["TopScore"] = value(top_score)
    return item | {name: value(content) for name, content in others.items()}


def value(content: str | int) -> dict[str, str]:
    """An attribute value of type S or N."""
    return {"S": content} if isinstance(content, str) else {"N": str(content)}


def key(item: Item) -> Item:
    """The primary key of a score."""
    return {name: item[name] for name in ("UserId", "GameTitle")}


def put_all(client: Any, name: str, items: Iterable[Item]) -> list[Item]:
    """Write the items and return them."""
    written = list(items)
    for item in written:
        client.put_item(TableName=name, Item=item)
    return written


def query_of(name: str, index: str | None = GAME_TITLE, **request: Any) -> dict[str, Any]:
    """The request of a Query: equality with each value of ``where``, and the other arguments."""
    where: dict[str, str | int] = request.pop("where")
    request["TableName"] = name
    if index is not None:
        request["IndexName"] = index
    request["KeyConditionExpression"] = " AND ".join(f"#{n} = :{n}" for n in where)
    request["ExpressionAttributeNames"] = {f"#{n}": n for n in where} | request.get(
        "ExpressionAttributeNames", {}
    )
    request["ExpressionAttributeValues"] = {
        f":{n}": value(content) for n, content in where.items()
    } | request.get("ExpressionAttributeValues", {})
    return request


def query(client: Any, name: str, index: str | None = GAME_TITLE, **request: Any) -> dict[str, Any]:
    """One page of a Query; see ``query_of`` for the arguments."""
    answer: dict[str, Any] = client.query(**query_of(name, index, **request))
    return answer


def eventually(ask: Callable[[], T], is_there: Callable[[T], bool]) -> T:
    """Poll until the answer is as expected."""
    deadline = monotonic() + HANG_SECONDS
    while not is_there(answer := ask()):
        assert monotonic() < deadline, f"it never came; the last answer: {answer}"
    return answer


def entries(client: Any, name: str, count: int, index: str = GAME_TITLE) -> list[Item]:
    """All entries of an index, once there are this many; at most a page."""
    answer = eventually(
        lambda: client.scan(TableName=name, IndexName=index),
        lambda answer: answer["Count"] == count,
    )
    found: list[Item] = answer["Items"]
    return found


def settled_entries(client: Any, name: str, marker: Item, index: str = GAME_TITLE) -> list[Item]:
    """The entries of an index without the marker, once the marker is there.

    The marker is written here. With the same partition key as the tested items, it comes after
    them, because each index gets the changes of a partition in order.
    """
    client.put_item(TableName=name, Item=marker)
    found: list[Item] = eventually(
        lambda: client.scan(TableName=name, IndexName=index)["Items"],
        lambda items: marker in items,
    )
    return [item for item in found if item != marker]


def texts(items: Iterable[Item], name: str) -> list[str]:
    """The text of one attribute of each item that has it, a string or a number."""
    return [text for item in items if name in item for text in item[name].values()]
