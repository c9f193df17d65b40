"""S58-S60: the storage of a table and its local secondary indexes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.local_indexes.thread import (
    LAST_POST,
    key,
    put_all,
    query,
    sized_thread,
    thread,
    thread_table,
)

OVERHEAD = 100


def storage(client: Any, name: str) -> tuple[int, int, int, int]:
    """Items and bytes of the table, entries and bytes of LastPostIndex, as described."""
    described = client.describe_table(TableName=name)["Table"]
    [index] = described["LocalSecondaryIndexes"]
    return (
        described["ItemCount"],
        described["TableSizeBytes"],
        index["ItemCount"],
        index["IndexSizeBytes"],
    )


@pytest.mark.differs_from_dynamodb_local("it counts the item in the place of its entry")
def test_s58_an_entry_has_the_size_of_its_attributes_and_100_bytes(client, wire):
    with thread_table(wire) as name:
        before = storage(client, name)
        put_all(client, name, [sized_thread("EC2", 1, entry=200, item=300)])
        one = storage(client, name)
        put_all(client, name, [sized_thread("EC2", 2, entry=1_000, item=5_000)])
        two = storage(client, name)
        put_all(client, name, [thread("EC2", "never posted")])
        sparse = storage(client, name)

    assert before == (0, 0, 0, 0)
    assert one == (1, 300, 1, 200 + OVERHEAD)
    assert two == (2, 5_300, 2, 1_200 + 2 * OVERHEAD)
    assert sparse[2:] == two[2:]
    assert sparse[0] == 3


@pytest.mark.differs_from_dynamodb_local("it counts the item in the place of its entry")
def test_s59_the_size_of_an_index_is_its_average_entry_times_its_entries(client, wire):
    with thread_table(wire, "KEYS_ONLY") as name:
        items = put_all(
            client, name, (sized_thread("EC2", n, entry=100 + n, item=500) for n in range(20))
        )
        entries = query(client, name, "EC2", IndexName=LAST_POST)["Items"]
        _, _, entry_count, index_bytes = storage(client, name)

    keys_bytes = sum(
        len(name) + len(items[0][name]["S"])
        for name in ("ForumName", "Subject", "LastPostDateTime")
    )
    assert entry_count == len(entries) == 20
    assert index_bytes == 20 * (keys_bytes + OVERHEAD)


@pytest.mark.differs_from_dynamodb_local("it counts the item in the place of its entry")
def test_s60_storage_is_counted_for_the_table_and_for_each_index(client, wire):
    with thread_table(wire) as name:
        items = [sized_thread("EC2", n, entry=200, item=300) for n in range(5)]
        put_all(client, name, items)
        full = storage(client, name)
        put_all(client, name, [sized_thread("EC2", 0, entry=150, item=180)])
        shrunk = storage(client, name)
        client.update_item(
            TableName=name, Key=key(items[1]), UpdateExpression="REMOVE LastPostDateTime"
        )
        unindexed = storage(client, name)
        for item in items:
            client.delete_item(TableName=name, Key=key(item))
        emptied = storage(client, name)

    posted = len("LastPostDateTime") + 5
    assert full == (5, 1_500, 5, 1_000 + 5 * OVERHEAD)
    assert shrunk == (5, 1_380, 5, 950 + 5 * OVERHEAD)
    assert unindexed == (5, 1_380 - posted, 4, 750 + 4 * OVERHEAD)
    assert emptied == (0, 0, 0, 0)
