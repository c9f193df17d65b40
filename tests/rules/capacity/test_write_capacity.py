"""S50-S56: the cost of a write on a table with local secondary indexes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.local_indexes.thread import (
    KEYS,
    LAST_POST,
    Item,
    Units,
    key,
    last_post_index,
    padded,
    sized_thread,
    thread,
    units,
)
from tests.support.tables.tables import local_index, table

INDEXES = {"ReturnConsumedCapacity": "INDEXES"}


def put(client: Any, name: str, item: Item) -> Units:
    return units(client.put_item(TableName=name, Item=item, **INDEXES))


def delete(client: Any, name: str, item: Item) -> Units:
    return units(client.delete_item(TableName=name, Key=key(item), **INDEXES))


def update(client: Any, name: str, item: Item, expression: str, **values: str) -> Units:
    """Update an item; the names of ``values`` are the expression's placeholders without colon."""
    given = {f":{placeholder}": {"S": text} for placeholder, text in values.items()}
    return units(
        client.update_item(
            TableName=name,
            Key=key(item),
            UpdateExpression=expression,
            **({"ExpressionAttributeValues": given} if given else {}),
            **INDEXES,
        )
    )


@pytest.mark.differs_from_dynamodb_local("it counts the overhead of an entry")
def test_s50_a_write_costs_its_table_and_every_index_it_updates(client, wire):
    indexes = (
        last_post_index(),
        local_index("ByReplies", "ForumName", "Replies", "ALL"),
        local_index("ByLikes", "ForumName", "Likes", "KEYS_ONLY"),
    )
    with table(wire, *KEYS, "Replies:S", "Likes:S", indexes=indexes) as name:
        item = padded(thread("EC2", "a", "1", Replies="5"), "Tags", 1_500)
        inserted = put(client, name, item)
        changed = update(client, name, item, "SET Replies = :six, Likes = :one", six="6", one="1")
        removed = delete(client, name, item)

    assert inserted == (5.0, 2.0, {LAST_POST: 1.0, "ByReplies": 2.0})
    assert changed == (8.0, 2.0, {LAST_POST: 1.0, "ByReplies": 4.0, "ByLikes": 1.0})
    assert removed == (6.0, 2.0, {LAST_POST: 1.0, "ByReplies": 2.0, "ByLikes": 1.0})


@pytest.mark.differs_from_dynamodb_local("it counts the overhead of an entry")
def test_s50_a_batch_costs_the_sum_of_its_writes(client, threads, forum):
    old = sized_thread(forum, 1, entry=1_500, item=2_500)
    put(client, threads, old)
    requests = [
        {"PutRequest": {"Item": sized_thread(forum, 2, entry=200, item=300)}},
        {"PutRequest": {"Item": thread(forum, "never posted")}},
        {"DeleteRequest": {"Key": key(old)}},
        {"DeleteRequest": {"Key": key(thread(forum, "missing"))}},
    ]

    answer = client.batch_write_item(RequestItems={threads: requests}, **INDEXES)

    [consumed] = answer["ConsumedCapacity"]
    assert consumed["TableName"] == threads
    assert consumed["Table"]["CapacityUnits"] == 1.0 + 1.0 + 3.0 + 1.0
    assert consumed["LocalSecondaryIndexes"] == {LAST_POST: {"CapacityUnits": 1.0 + 2.0}}
    assert consumed["CapacityUnits"] == 9.0


def test_s51_defining_the_indexed_attribute_costs_one_index_write(client, threads, forum):
    new = put(client, threads, thread(forum, "a", "1"))
    put(client, threads, thread(forum, "b"))
    updated = update(client, threads, thread(forum, "b"), "SET LastPostDateTime = :t", t="1")
    put(client, threads, thread(forum, "c"))
    replaced = put(client, threads, thread(forum, "c", "1"))
    created = update(client, threads, thread(forum, "d"), "SET LastPostDateTime = :t", t="1")

    assert new == updated == replaced == created == (2.0, 1.0, {LAST_POST: 1.0})


def test_s52_changing_the_indexed_attribute_costs_two_index_writes(client, threads, forum):
    put(client, threads, thread(forum, "a", "1"))

    updated = update(client, threads, thread(forum, "a"), "SET LastPostDateTime = :t", t="2")
    replaced = put(client, threads, thread(forum, "a", "3"))

    assert updated == replaced == (3.0, 1.0, {LAST_POST: 2.0})


def test_s53_removing_the_indexed_attribute_costs_one_index_write(client, threads, forum):
    for subject in "abc":
        put(client, threads, thread(forum, subject, "1"))

    updated = update(client, threads, thread(forum, "a"), "REMOVE LastPostDateTime")
    replaced = put(client, threads, thread(forum, "b"))
    deleted = delete(client, threads, thread(forum, "c"))

    assert updated == replaced == deleted == (2.0, 1.0, {LAST_POST: 1.0})


def test_s54_an_item_absent_before_and_after_costs_the_index_nothing(client, threads, forum):
    inserted = put(client, threads, thread(forum, "a", Replies="5"))
    updated = update(client, threads, thread(forum, "a"), "SET Replies = :r", r="6")
    replaced = put(client, threads, thread(forum, "a", Tags="t"))
    deleted = delete(client, threads, thread(forum, "a"))
    missing = delete(client, threads, thread(forum, "a"))

    assert inserted == updated == replaced == deleted == missing == (1.0, 1.0, {})


def test_s55_changing_a_projected_attribute_costs_one_index_write(client, threads, forum):
    put(client, threads, thread(forum, "a", "1", Replies="5", Tags="t"))

    changed = update(client, threads, thread(forum, "a"), "SET Replies = :r", r="6")
    removed = update(client, threads, thread(forum, "a"), "REMOVE Replies")
    added = put(client, threads, thread(forum, "a", "1", Replies="7", Tags="t"))

    assert changed == removed == added == (2.0, 1.0, {LAST_POST: 1.0})


def test_s55_a_write_that_does_not_change_the_entry_costs_the_index_nothing(client, threads, forum):
    item = thread(forum, "a", "1", Replies="5", Tags="t")
    put(client, threads, item)

    not_projected = update(client, threads, item, "SET Tags = :t", t="u")
    same_value = update(client, threads, item, "SET LastPostDateTime = :t", t="1")
    same_item = put(client, threads, item | {"Tags": {"S": "u"}})

    assert not_projected == same_value == same_item == (1.0, 1.0, {})


@pytest.mark.differs_from_dynamodb_local("it counts the overhead of an entry")
@pytest.mark.parametrize(
    ("entry", "units_each"), [(1_024, 1.0), (1_025, 2.0), (2_048, 2.0), (2_049, 3.0)]
)
def test_s56_a_larger_entry_costs_its_size_rounded_up_to_1_kb(
    client, threads, forum, entry, units_each
):
    item = sized_thread(forum, 1, entry=entry, item=entry)
    removed = {name: value for name, value in item.items() if name != "LastPostDateTime"}

    inserted = put(client, threads, item)
    moved = put(client, threads, item | {"LastPostDateTime": {"S": "00002"}})
    changed = update(client, threads, item, "SET Replies = :r", r="y" * len(item["Replies"]["S"]))
    left = put(client, threads, removed)

    assert inserted.indexes == {LAST_POST: units_each}
    assert moved.indexes == {LAST_POST: 2 * units_each}
    assert changed.indexes == {LAST_POST: units_each}
    assert left.indexes == {LAST_POST: units_each}


def test_s56_the_costs_of_the_two_index_writes_are_rounded_separately(client, threads, forum):
    """Deleting the old entry of 2,500 bytes costs three units, inserting one of 500 bytes one."""
    put(client, threads, sized_thread(forum, 1, entry=2_500, item=2_500))
    small = sized_thread(forum, 1, entry=500, item=500)

    moved = put(client, threads, small | {"LastPostDateTime": {"S": "00002"}})

    assert moved == (7.0, 3.0, {LAST_POST: 4.0})
