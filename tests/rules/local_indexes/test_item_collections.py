"""S15, S61-S74, A3: item collections and their limit.

On the server of these tests, the limit is 100,000 bytes instead of 10 GB.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from tests.rules.conftest import COLLECTION_LIMIT_BYTES
from tests.rules.global_indexes.game_scores import eventually, global_index
from tests.rules.local_indexes.thread import (
    KEYS,
    LAST_POST,
    item_bytes,
    key,
    last_post_index,
    put_all,
    query,
    sized_thread,
    texts,
    thread,
    thread_table,
)
from tests.support.clients.clients import WireClient, boto3_client
from tests.support.servers.server import running_server
from tests.support.tables.tables import (
    definition,
    local_index,
    table,
    unique_name,
    wait_until_active,
)

limited = pytest.mark.ours_alone("the limit of a collection is an option of the server")
EXCEEDED = "ItemCollectionSizeLimitExceededException"


@pytest.fixture
def limited_threads(limited_wire: WireClient) -> Iterator[str]:
    """The table Thread with collections of up to 100,000 bytes; its index projects everything."""
    with thread_table(limited_wire, "ALL") as name:
        yield name


def code_of(error: Any) -> str:
    return error.value.response["Error"]["Code"]


def fill(client: Any, name: str, forum: str, *, first: int = 0, posted: bool = True) -> int:
    """Put items of 2,000 bytes until the collection is full; returns their number.

    The items are numbered from ``first``. If ``posted`` is False, they have no index entries.
    """
    for n in range(2 * COLLECTION_LIMIT_BYTES // 2_000):
        item = sized_thread(forum, first + n, entry=2_000, item=2_000)
        if not posted:
            item["Replies"]["S"] += "x" * item_bytes({"LastPostDateTime": item["LastPostDateTime"]})
            del item["LastPostDateTime"]
        try:
            client.put_item(TableName=name, Item=item)
        except client.exceptions.ItemCollectionSizeLimitExceededException:
            return n
    raise AssertionError("the collection takes whatever it is given")


@limited
def test_s15_items_and_index_entries_of_a_partition_key_count_together(
    limited_client, limited_threads, forum
):
    """An entry is as large as its item, so with entries half as many items fit."""
    bare = fill(limited_client, limited_threads, forum, posted=False)
    doubled = fill(limited_client, limited_threads, unique_name("forum"))

    assert 48 <= bare <= 51
    assert 23 <= doubled <= 26


@limited
def test_s61_a_collection_is_the_items_of_a_key_in_the_table_and_all_its_indexes(
    limited_client, limited_wire
):
    """An item has 2,000 bytes, its entries 2,000 bytes in one index and 200 in the other."""
    indexes = (
        local_index(LAST_POST, "ForumName", "LastPostDateTime", "ALL"),
        local_index("BySubject", "ForumName", "Subject", "INCLUDE", ("LastPostDateTime",)),
        local_index("ByReplies", "ForumName", "Author", "ALL"),
    )
    with table(limited_wire, *KEYS, "Author:S", indexes=indexes) as name:
        taken = fill(limited_client, name, "EC2")

    overhead = 3 * 100
    entries = 2_000 + 2_000 + len("ForumNameEC2Subject00000LastPostDateTime00000")
    assert COLLECTION_LIMIT_BYTES // (entries + overhead) <= taken
    assert taken <= COLLECTION_LIMIT_BYTES // entries + 1


@pytest.mark.differs_from_dynamodb_local("it reports no item collection metrics")
def test_a3_an_update_reports_the_size_of_the_collection_of_ec2(client, wire):
    with thread_table(wire) as name:
        put_all(client, name, [thread("EC2", "a", "1")])

        answer = client.update_item(
            TableName=name,
            Key=key(thread("EC2", "a")),
            UpdateExpression="SET Replies = :replies",
            ExpressionAttributeValues={":replies": {"S": "6"}},
            ReturnItemCollectionMetrics="SIZE",
        )

    assert answer["ItemCollectionMetrics"] == {
        "ItemCollectionKey": {"ForumName": {"S": "EC2"}},
        "SizeEstimateRangeGB": [0.0, 1.0],
    }


@pytest.mark.differs_from_dynamodb_local("it reports no item collection metrics")
def test_s62_the_four_writing_operations_report_on_the_collection(client, threads, forum):
    item = thread(forum, "a", "1")
    other = unique_name("forum")
    size = {"ReturnItemCollectionMetrics": "SIZE"}
    batch = {
        threads: [
            {"PutRequest": {"Item": thread(forum, "b")}},
            {"PutRequest": {"Item": thread(forum, "c")}},
            {"DeleteRequest": {"Key": key(thread(other, "a"))}},
        ]
    }

    put = client.put_item(TableName=threads, Item=item, **size)
    updated = client.update_item(TableName=threads, Key=key(item), **size)
    deleted = client.delete_item(TableName=threads, Key=key(item), **size)
    batched = client.batch_write_item(RequestItems=batch, **size)

    for answer in (put, updated, deleted):
        metrics = answer["ItemCollectionMetrics"]
        assert metrics["ItemCollectionKey"] == {"ForumName": {"S": forum}}
        assert metrics["SizeEstimateRangeGB"] == [0.0, 1.0]
    reported = {
        metrics["ItemCollectionKey"]["ForumName"]["S"]
        for metrics in batched["ItemCollectionMetrics"][threads]
    }
    assert reported == {forum, other}


@pytest.mark.differs_from_dynamodb_local("it reports no item collection metrics")
def test_s62_a_transaction_reports_on_the_collections_it_wrote(client, threads, forum):
    other = unique_name("forum")
    actions = [
        {"Put": {"TableName": threads, "Item": thread(forum, "a", "1")}},
        {"Delete": {"TableName": threads, "Key": key(thread(other, "a"))}},
    ]

    answer = client.transact_write_items(TransactItems=actions, ReturnItemCollectionMetrics="SIZE")

    assert answer["ItemCollectionMetrics"][threads] == [
        {"ItemCollectionKey": {"ForumName": {"S": name}}, "SizeEstimateRangeGB": [0.0, 1.0]}
        for name in (forum, other)
    ]


@pytest.mark.parametrize("asked", [{}, {"ReturnItemCollectionMetrics": "NONE"}])
def test_s62_sizes_are_reported_only_on_request(client, threads, forum, asked):
    item = thread(forum, "a", "1")

    put = client.put_item(TableName=threads, Item=item, **asked)
    batched = client.batch_write_item(
        RequestItems={threads: [{"PutRequest": {"Item": item}}]}, **asked
    )

    assert "ItemCollectionMetrics" not in put
    assert not batched.get("ItemCollectionMetrics")


def test_s62_a_table_without_local_indexes_has_nothing_to_report(client, wire):
    size = {"ReturnItemCollectionMetrics": "SIZE"}
    with table(wire, *KEYS[:2]) as name:
        item = thread("EC2", "a")
        put = client.put_item(TableName=name, Item=item, **size)
        batched = client.batch_write_item(
            RequestItems={name: [{"PutRequest": {"Item": item}}]}, **size
        )

    assert "ItemCollectionMetrics" not in put
    assert not batched.get("ItemCollectionMetrics")


@pytest.mark.differs_from_dynamodb_local("it reports no item collection metrics")
def test_s63_the_report_has_the_collections_key_and_a_range_of_gb(client, threads, forum):
    answer = client.put_item(
        TableName=threads, Item=thread(forum, "a"), ReturnItemCollectionMetrics="SIZE"
    )

    metrics = answer["ItemCollectionMetrics"]
    assert set(metrics) == {"ItemCollectionKey", "SizeEstimateRangeGB"}
    assert metrics["ItemCollectionKey"] == {"ForumName": {"S": forum}}
    lower, upper = metrics["SizeEstimateRangeGB"]
    assert 0.0 <= lower < upper


@limited
def test_s65_a_table_without_local_indexes_has_no_limit(limited_client, limited_wire):
    with table(limited_wire, *KEYS[:2]) as name:
        items = (sized_thread("EC2", n, entry=10_000, item=10_000) for n in range(15))
        put_all(limited_client, name, items)

        answer = query(limited_client, name, "EC2", Select="COUNT")

    assert answer["Count"] * 10_000 > COLLECTION_LIMIT_BYTES


@limited
def test_s65_entries_of_a_global_index_with_one_key_have_no_limit(limited_client, limited_wire):
    """Entries of a global index belong to no item collection, even if there is a local index."""
    index = global_index("ByAuthor", "Author")
    members = {"indexes": (last_post_index(),), "GlobalSecondaryIndexes": [index]}
    with table(limited_wire, *KEYS, "Author:S", **members) as name:
        items = (sized_thread(f"f{n}", n, entry=10_000, item=10_000) for n in range(15))
        put_all(limited_client, name, (item | {"Author": {"S": "ann"}} for item in items))
        entries = eventually(
            lambda: limited_client.scan(TableName=name, IndexName="ByAuthor"),
            lambda answer: answer["Count"] == 15,
        )["Items"]
        one = (sized_thread("EC2", n, entry=4_000, item=4_000) for n in range(10))
        put_all(limited_client, name, (item | {"Author": {"S": "ann"}} for item in one))

    assert sum(map(item_bytes, entries)) > COLLECTION_LIMIT_BYTES


@limited
@pytest.mark.parametrize("operation", ["put", "replace", "update", "batch"])
def test_s66_a_full_collection_refuses_new_items_and_larger_items(
    limited_client, limited_threads, forum, operation
):
    taken = fill(limited_client, limited_threads, forum)
    item = sized_thread(forum, 0, entry=2_000, item=2_000)
    larger = sized_thread(forum, 0, entry=6_000, item=6_000)
    more = sized_thread(forum, taken, entry=6_000, item=6_000)
    requests: dict[str, tuple[str, dict[str, Any]]] = {
        "put": ("put_item", {"TableName": limited_threads, "Item": more}),
        "replace": ("put_item", {"TableName": limited_threads, "Item": larger}),
        "update": (
            "update_item",
            {
                "TableName": limited_threads,
                "Key": key(item),
                "UpdateExpression": "SET Tags = :tags",
                "ExpressionAttributeValues": {":tags": {"S": "t" * 6_000}},
            },
        ),
        "batch": (
            "batch_write_item",
            {"RequestItems": {limited_threads: [{"PutRequest": {"Item": more}}]}},
        ),
    }
    method, request = requests[operation]

    with pytest.raises(limited_client.exceptions.ClientError) as refused:
        getattr(limited_client, method)(**request)

    kept = query(limited_client, limited_threads, forum, ConsistentRead=True)["Items"]
    assert code_of(refused) == EXCEEDED
    assert len(kept) == taken
    assert kept[0] == item


@limited
def test_s67_a_full_collection_can_be_read_and_reduced(limited_client, limited_threads, forum):
    taken = fill(limited_client, limited_threads, forum)
    first, second, third = (sized_thread(forum, n, entry=2_000, item=2_000) for n in range(3))

    got = limited_client.get_item(TableName=limited_threads, Key=key(first))["Item"]
    queried = query(limited_client, limited_threads, forum, IndexName=LAST_POST)["Count"]
    limited_client.delete_item(TableName=limited_threads, Key=key(first))
    limited_client.update_item(
        TableName=limited_threads, Key=key(second), UpdateExpression="REMOVE Replies"
    )
    limited_client.put_item(TableName=limited_threads, Item=thread(forum, "00002", "00002"))

    kept = query(limited_client, limited_threads, forum, ConsistentRead=True)["Items"]
    assert got == first
    assert queried == taken
    assert len(kept) == taken - 1
    assert kept[0] == thread(forum, "00001", "00001")
    assert kept[1] == thread(forum, "00002", "00002") != third


@limited
def test_s67_a_collection_above_its_limit_can_be_reduced(tmp_path, forum):
    """The collection exceeds the limit because the server restarts with a lower limit."""
    option = "--item-collection-limit-bytes"
    with (
        running_server(option, "100000", data_dir=tmp_path) as server,
        closing(boto3_client(server.endpoint)) as client,
        closing(WireClient(server.endpoint)) as wire,
    ):
        request = definition(*KEYS, indexes=(last_post_index("ALL"),))
        name = request["TableName"]
        wire("CreateTable", request)
        wait_until_active(wire, name)
        items = [sized_thread(forum, n, entry=2_000, item=2_000) for n in range(10)]
        put_all(client, name, items)
        server.stop()
    with (
        running_server(option, "10000", data_dir=tmp_path) as server,
        closing(boto3_client(server.endpoint)) as client,
    ):
        put_all(client, name, [items[1], sized_thread(forum, 2, entry=1_500, item=1_500)])
        client.delete_item(TableName=name, Key=key(items[0]))
        with pytest.raises(client.exceptions.ItemCollectionSizeLimitExceededException):
            put_all(client, name, [sized_thread(forum, 3, entry=2_001, item=2_001)])

        kept = query(client, name, forum)["Items"]

    assert kept == [items[1], sized_thread(forum, 2, entry=1_500, item=1_500), *items[3:]]


@limited
def test_s68_other_collections_can_still_be_written(limited_client, limited_threads, forum):
    taken = fill(limited_client, limited_threads, forum)

    others = [fill(limited_client, limited_threads, unique_name("forum")) for _ in range(3)]

    assert others == [taken] * 3


@limited
def test_s69_a_deletion_reduces_the_collection_by_the_item_and_its_entries(
    limited_client, limited_threads, forum
):
    taken = fill(limited_client, limited_threads, forum)
    for n in range(10):
        item = sized_thread(forum, n, entry=2_000, item=2_000)
        limited_client.delete_item(TableName=limited_threads, Key=key(item))

    entries = query(limited_client, limited_threads, forum, IndexName=LAST_POST, Select="COUNT")
    again = fill(limited_client, limited_threads, forum)

    assert entries["Count"] == taken - 10
    assert again == taken


@limited
def test_s70_making_items_smaller_makes_their_entries_smaller(
    limited_client, limited_threads, forum
):
    """Ten items and their entries shrink by half, so five more items fit."""
    taken = fill(limited_client, limited_threads, forum)
    for n in range(10):
        item = sized_thread(forum, n, entry=1_000, item=1_000)
        limited_client.put_item(TableName=limited_threads, Item=item)

    entries = query(limited_client, limited_threads, forum, IndexName=LAST_POST, Limit=1)["Items"]
    more = fill(limited_client, limited_threads, forum, first=taken)

    assert entries == [sized_thread(forum, 0, entry=1_000, item=1_000)]
    assert 5 <= more <= 6


@limited
def test_s71_a_collection_below_its_limit_accepts_items_again(
    limited_client, limited_threads, forum
):
    taken = fill(limited_client, limited_threads, forum)
    refused = sized_thread(forum, taken, entry=2_000, item=2_000)
    room = [sized_thread(forum, n, entry=2_000, item=2_000) for n in range(2)]

    for item in room:
        limited_client.delete_item(TableName=limited_threads, Key=key(item))
    limited_client.put_item(TableName=limited_threads, Item=refused)

    kept = query(limited_client, limited_threads, forum, IndexName=LAST_POST)["Items"]
    assert refused in kept
    assert len(kept) == taken - 1


@limited
def test_s71_the_size_of_a_collection_is_right_after_many_concurrent_writes(
    limited_client, limited_threads, forum
):
    """If concurrent writes corrupted the size, the limit would apply too early or too late."""
    items = [sized_thread(forum, n % 8, entry=300 + n, item=900 + n) for n in range(160)]
    with ThreadPoolExecutor(8) as writers:
        list(writers.map(lambda item: put_all(limited_client, limited_threads, [item]), items))
    for n in range(8):
        item = sized_thread(forum, n, entry=300, item=300)
        limited_client.delete_item(TableName=limited_threads, Key=key(item))

    taken = fill(limited_client, limited_threads, forum)
    fresh = fill(limited_client, limited_threads, unique_name("forum"))

    assert taken == fresh


def test_s74_a_collection_is_in_exactly_one_partition(client, wire):
    """A scan's segments divide the hashes of partition keys, so none divides a collection."""
    with thread_table(wire) as name:
        put_all(
            client, name, (thread(f"f{n}", f"{s}", f"{s}") for n in range(20) for s in range(5))
        )
        for index in ({}, {"IndexName": LAST_POST}):
            segments = [
                client.scan(TableName=name, Segment=n, TotalSegments=7, **index)["Items"]
                for n in range(7)
            ]

            forums = [set(texts(items, "ForumName")) for items in segments]
            assert sum(map(len, segments)) == 100
            assert sum(map(len, forums)) == len(set().union(*forums)) == 20
            assert sum(map(bool, segments)) > 1
