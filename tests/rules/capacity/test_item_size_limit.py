"""The 400 KB of an item on a table with local secondary indexes.

Source: Developer Guide, "Quotas in Amazon DynamoDB", item size for tables with local secondary
indexes: the item and its entries in all of them count together.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.local_indexes.thread import (
    KEYS,
    Item,
    key,
    last_post_index,
    padded,
    query,
    sized_thread,
    thread,
)
from tests.support.tables.tables import local_index, table

LIMIT = 400 * 1024


@pytest.fixture(scope="module")
def two_indexes(wire):
    """The table Thread with LastPostIndex, and an index on Author that projects everything."""
    indexes = (last_post_index(), local_index("ByAuthor", "ForumName", "Author", "ALL"))
    with table(wire, *KEYS, "Author:S", indexes=indexes) as name:
        yield name


def code(client: Any, method: str, **request: Any) -> str:
    """The error's code and message, or nothing without an error."""
    try:
        getattr(client, method)(**request)
    except client.exceptions.ClientError as error:
        return "{Code}: {Message}".format(**error.response["Error"])
    return ""


def put(client: Any, name: str, item: Item) -> str:
    return code(client, "put_item", TableName=name, Item=item)


TOO_LARGE = "ValidationException: Item size has exceeded the maximum allowed size"


def test_an_item_and_its_entries_may_have_400_kb_together(client, two_indexes, forum):
    """With one index that projects everything, item and entry may have 200 KB each."""
    of_author = thread(forum, "a", Author="x")
    in_both = thread(forum, "b", "1", Author="x")

    assert put(client, two_indexes, padded(of_author, "Replies", LIMIT // 2)) == ""
    assert put(client, two_indexes, padded(of_author, "Replies", LIMIT // 2 + 1)) == TOO_LARGE
    assert put(client, two_indexes, padded(in_both, "Replies", LIMIT // 3)) == ""
    assert put(client, two_indexes, padded(in_both, "Replies", LIMIT // 3 + 50)) == TOO_LARGE


def test_an_item_without_index_entries_may_have_400_kb(client, two_indexes, forum):
    assert put(client, two_indexes, padded(thread(forum, "a"), "Replies", LIMIT)) == ""
    assert put(client, two_indexes, padded(thread(forum, "a"), "Tags", LIMIT + 1)) == TOO_LARGE


def test_only_projected_attributes_count_in_an_entry(client, two_indexes, forum):
    small_entry = sized_thread(forum, 1, entry=1_000, item=LIMIT - 1_000)

    assert put(client, two_indexes, small_entry) == ""


def test_a_batch_with_a_too_large_item_writes_nothing(client, two_indexes, forum):
    large = padded(thread(forum, "b", Author="x"), "Replies", LIMIT // 2 + 1)
    requests = [{"PutRequest": {"Item": item}} for item in (thread(forum, "a"), large)]

    refused = code(client, "batch_write_item", RequestItems={two_indexes: requests})

    assert refused == TOO_LARGE
    assert query(client, two_indexes, forum)["Items"] == []


@pytest.mark.differs_from_dynamodb_local("it looks at the item alone in an update")
def test_an_update_may_not_exceed_400_kb_with_its_entries(client, two_indexes, forum):
    """Adding the index key doubles the item's size with entries."""
    item = padded(thread(forum, "a"), "Replies", LIMIT // 2 + 1)
    put(client, two_indexes, item)

    refused = code(
        client,
        "update_item",
        TableName=two_indexes,
        Key=key(item),
        UpdateExpression="SET Author = :author",
        ExpressionAttributeValues={":author": {"S": "x"}},
    )

    assert (
        refused == "ValidationException: Item size to update has exceeded the maximum allowed size"
    )
    assert query(client, two_indexes, forum)["Items"] == [item]
