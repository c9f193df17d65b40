"""S29-S36, S38, A1: reading a local secondary index."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.rules.local_indexes.thread import (
    LAST_POST,
    key,
    pages,
    put_all,
    query,
    texts,
    thread,
    thread_table,
    units,
)
from tests.support.tables.tables import unique_name


@pytest.mark.differs_from_dynamodb_local("its message for a key of the wrong schema is another")
def test_s29_query_and_scan_can_read_an_index_and_getitem_cannot(client, wire):
    with thread_table(wire) as name:
        item = thread("EC2", "a", "1")
        put_all(client, name, [item])
        index_key = {name: item[name] for name in ("ForumName", "LastPostDateTime")}

        queried = query(client, name, "EC2", IndexName=LAST_POST)["Items"]
        scanned = client.scan(TableName=name, IndexName=LAST_POST)["Items"]
        got = wire.refused("GetItem", {"TableName": name, "IndexName": LAST_POST, "Key": index_key})
        got_in_batch = wire.refused(
            "BatchGetItem",
            {"RequestItems": {name: {"IndexName": LAST_POST, "Keys": [index_key]}}},
        )

    assert queried == scanned == [item]
    assert got.type == got_in_batch.type == "ValidationException"
    assert "does not match the schema" in (got.message or "")
    assert "does not match the schema" in (got_in_batch.message or "")


def test_s30_primary_keys_are_unique_and_index_sort_keys_need_not_be(client, threads, forum):
    put_all(client, threads, (thread(forum, "a", "1", Replies=f"{n}") for n in range(3)))
    put_all(client, threads, [thread(forum, "b", "1", Replies="9")])

    items = query(client, threads, forum)["Items"]
    entries = query(
        client,
        threads,
        forum,
        "LastPostDateTime = :same",
        IndexName=LAST_POST,
        values={":same": "1"},
    )["Items"]

    assert texts(items, "Replies") == ["2", "9"]
    assert sorted(texts(entries, "Replies")) == ["2", "9"]


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_s31_pages_neither_skip_nor_repeat_entries_with_the_same_sort_key(
    client, threads, forum, limit, forward
):
    put_all(client, threads, (thread(forum, f"{n}", f"{n % 2}") for n in range(13)))
    ask = {"IndexName": LAST_POST, "Limit": limit, "ScanIndexForward": forward}

    answers = list(pages(client, threads, forum, **ask))

    items = [item for answer in answers for item in answer["Items"]]
    posted = texts(items, "LastPostDateTime")
    assert sorted(texts(items, "Subject")) == sorted(f"{n}" for n in range(13))
    assert posted == sorted(posted, reverse=not forward)
    assert all(len(answer["Items"]) <= limit for answer in answers)


@pytest.mark.parametrize("consistent", [True, False])
def test_s32_an_index_is_read_strongly_or_eventually_consistent(client, threads, forum, consistent):
    put_all(client, threads, [thread(forum, "a", "1")])

    answer = query(
        client,
        threads,
        forum,
        IndexName=LAST_POST,
        ConsistentRead=consistent,
        ReturnConsumedCapacity="TOTAL",
    )

    assert texts(answer["Items"], "Subject") == ["a"]
    assert answer["ConsumedCapacity"]["CapacityUnits"] == (1.0 if consistent else 0.5)


def test_s33_a_strongly_consistent_read_returns_the_latest_values(client, threads, forum):
    for n in range(100):
        latest = thread(forum, "a", f"{n:03}", Replies=f"{n}")
        put_all(client, threads, [latest])

        assert query(client, threads, forum, IndexName=LAST_POST, ConsistentRead=True)["Items"] == [
            latest
        ]
    client.delete_item(TableName=threads, Key=key(latest))

    assert query(client, threads, forum, IndexName=LAST_POST, ConsistentRead=True)["Items"] == []


@pytest.mark.parametrize("consistent", [True, False])
def test_s34_fetched_attributes_agree_with_their_index_entry(client, threads, forum, consistent):
    """LastPostDateTime alternates between "1" and "9" during queries below "5" with fetches."""
    subjects = [f"{n:03}" for n in range(400)]

    def write(posted: str) -> None:
        items = [thread(forum, subject, posted, Tags=posted) for subject in subjects]
        for at in range(0, len(items), 25):
            batch = [{"PutRequest": {"Item": item}} for item in items[at : at + 25]]
            client.batch_write_item(RequestItems={threads: batch})

    write("1")
    seen = []
    with ThreadPoolExecutor(1) as writer:
        writing = writer.submit(lambda: [write(posted) for posted in "9191919191"])
        while not writing.done():
            answer = query(
                client,
                threads,
                forum,
                "LastPostDateTime < :five",
                values={":five": "5"},
                IndexName=LAST_POST,
                Select="ALL_ATTRIBUTES",
                ConsistentRead=consistent,
            )
            seen.extend(answer["Items"])
        writing.result()

    assert seen
    assert {item["LastPostDateTime"]["S"] for item in seen} == {"1"}
    assert {item["Tags"]["S"] for item in seen} == {"1"}


A1_REQUEST = {
    "TableName": "Thread",
    "IndexName": "LastPostIndex",
    "ConsistentRead": False,
    "ProjectionExpression": "Subject, LastPostDateTime, Replies, Tags",
    "KeyConditionExpression": (
        "ForumName = :v_forum and LastPostDateTime between :v_start and :v_end"
    ),
    "ExpressionAttributeValues": {
        ":v_start": {"S": "2015-08-31T00:00:00.000Z"},
        ":v_end": {"S": "2015-11-31T00:00:00.000Z"},
        ":v_forum": {"S": "EC2"},
    },
}


def test_a1_a_query_returns_the_threads_of_ec2_in_a_period(client, wire):
    posted = {
        "too early": "2015-08-30T23:59:59.999Z",
        "c": "2015-08-31T00:00:00.000Z",
        "b": "2015-11-30T12:00:00.000Z",
        "d": "2015-11-31T00:00:00.000Z",
        "a": "2015-09-15T08:30:00.000Z",
        "too late": "2015-11-31T00:00:00.001Z",
    }
    written = {
        subject: thread(
            "EC2", subject, time, Replies=f"r-{subject}", Tags=f"t-{subject}", Message="m"
        )
        for subject, time in posted.items()
    }
    with thread_table(wire, name="Thread") as name:
        put_all(client, name, written.values())
        put_all(client, name, [thread("EC2", "never posted", Replies="r", Tags="t")])
        put_all(client, name, [thread("S3", "other forum", posted["a"], Replies="r", Tags="t")])

        answer = client.query(**A1_REQUEST)

    wanted = ("Subject", "LastPostDateTime", "Replies", "Tags")
    assert answer["Items"] == [
        {name: written[subject][name] for name in wanted} for subject in ("c", "a", "b", "d")
    ]
    assert "LastEvaluatedKey" not in answer


def test_s35_the_query_for_a_period_reads_no_entry_outside_it(client, threads, forum):
    put_all(
        client, threads, (thread(forum, f"{n}", f"2015-{n:02}", Tags="t") for n in range(1, 13))
    )

    answer = query(
        client,
        threads,
        forum,
        "LastPostDateTime BETWEEN :start AND :end",
        IndexName=LAST_POST,
        ProjectionExpression="Subject, LastPostDateTime, Replies, Tags",
        values={":start": "2015-08-31", ":end": "2015-11-31"},
    )

    assert texts(answer["Items"], "LastPostDateTime") == ["2015-09", "2015-10", "2015-11"]
    assert texts(answer["Items"], "Tags") == ["t"] * 3
    assert answer["ScannedCount"] == 3


@pytest.mark.differs_from_dynamodb_local("it charges fetches that are not made")
def test_s36_replies_cost_nothing_more_and_tags_are_fetched(client, threads, forum):
    posts = (thread(forum, f"{n}", f"{n}", Replies="r", Tags="t") for n in range(3))
    put_all(client, threads, posts)
    ask = {
        "IndexName": LAST_POST,
        "ConsistentRead": True,
        "ReturnConsumedCapacity": "INDEXES",
    }

    keys = query(client, threads, forum, ProjectionExpression="Subject", **ask)
    replies = query(client, threads, forum, ProjectionExpression="Subject, Replies", **ask)
    tags = query(client, threads, forum, ProjectionExpression="Subject, Replies, Tags", **ask)

    assert units(keys) == units(replies) == (1.0, 0.0, {LAST_POST: 1.0})
    assert units(tags) == (4.0, 3.0, {LAST_POST: 1.0})
    assert texts(tags["Items"], "Tags") == ["t"] * 3


def test_s38_a_scan_of_an_index_reads_all_entries_before_it_filters(client, wire):
    throughput = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
    provisioned = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": throughput}
    with thread_table(wire, **provisioned) as name:
        put_all(client, name, (thread(f"f{n}", "a", f"{n}", Replies=f"{n}") for n in range(20)))
        put_all(client, name, (thread(f"f{n}", "never posted") for n in range(20)))

        filtered = client.scan(
            TableName=name,
            IndexName=LAST_POST,
            FilterExpression="Replies = :seven",
            ExpressionAttributeValues={":seven": {"S": "7"}},
            ReturnConsumedCapacity="INDEXES",
        )
        whole = client.scan(TableName=name, IndexName=LAST_POST, ReturnConsumedCapacity="INDEXES")
        no_table = wire.refused(
            "Scan", {"TableName": unique_name("missing"), "IndexName": LAST_POST}
        )
        no_index = wire.refused("Scan", {"TableName": name, "IndexName": "missing"})

    assert (whole["Count"], whole["ScannedCount"]) == (20, 20)
    assert (filtered["Count"], filtered["ScannedCount"]) == (1, 20)
    assert texts(filtered["Items"], "Subject") == ["a"]
    assert units(filtered) == units(whole) == (0.5, 0.0, {LAST_POST: 0.5})
    assert no_table.type == "ResourceNotFoundException"
    assert no_index.type == "ValidationException"
