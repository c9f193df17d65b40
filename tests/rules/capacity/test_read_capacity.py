"""S41-S47, S49, A2: the cost of reading a local secondary index, and the ends of its pages."""

from __future__ import annotations

import pytest

from tests.rules.local_indexes.thread import (
    LAST_POST,
    item_bytes,
    pages,
    put_all,
    query,
    sized_thread,
    thread_table,
    units,
)

INDEXES = {"ReturnConsumedCapacity": "INDEXES"}
MIB = 1_048_576


def test_s41_the_sum_of_the_entries_is_rounded_up_once(client, threads, forum):
    """Ten entries of 500 bytes are 5,000 bytes, two units; separately they would be ten."""
    items = (sized_thread(forum, n, entry=500, item=3_000) for n in range(10))
    put_all(client, threads, items)
    ask = {"IndexName": LAST_POST, "ConsistentRead": True, **INDEXES}

    whole = query(client, threads, forum, **ask)
    filtered = query(
        client,
        threads,
        forum,
        FilterExpression="Replies = :none",
        values={":none": "none"},
        **ask,
    )
    counted = query(client, threads, forum, Select="COUNT", **ask)
    limited = query(client, threads, forum, Limit=8, **ask)

    assert units(whole) == (2.0, 0.0, {LAST_POST: 2.0})
    assert filtered["Count"] == 0
    assert units(filtered) == units(counted) == units(whole)
    assert units(limited) == (1.0, 0.0, {LAST_POST: 1.0})


@pytest.mark.parametrize(("entry", "strong"), [(1_024, 1.0), (1_025, 2.0), (2_048, 2.0)])
def test_s41_the_bound_of_a_unit_is_4096_bytes(client, threads, forum, entry, strong):
    """Four entries; names count, but the JSON around them does not."""
    put_all(client, threads, (sized_thread(forum, n, entry=entry, item=entry) for n in range(4)))

    answer = query(client, threads, forum, IndexName=LAST_POST, ConsistentRead=True, **INDEXES)

    assert units(answer) == (strong, 0.0, {LAST_POST: strong})


def test_s42_an_eventually_consistent_read_costs_half(client, threads, forum):
    put_all(client, threads, (sized_thread(forum, n, entry=1_800, item=1_800) for n in range(5)))
    ask = {"IndexName": LAST_POST, **INDEXES}

    strong = query(client, threads, forum, ConsistentRead=True, **ask)
    eventual = query(client, threads, forum, ConsistentRead=False, **ask)
    unsaid = query(client, threads, forum, **ask)

    assert units(strong) == (3.0, 0.0, {LAST_POST: 3.0})
    assert units(eventual) == units(unsaid) == (1.5, 0.0, {LAST_POST: 1.5})


@pytest.mark.differs_from_dynamodb_local("it charges fetches that are not made")
@pytest.mark.parametrize(
    ("ask", "fetches"),
    [
        ({}, False),
        ({"Select": "ALL_PROJECTED_ATTRIBUTES"}, False),
        ({"Select": "COUNT"}, False),
        ({"Select": "ALL_ATTRIBUTES"}, True),
        ({"ProjectionExpression": "Replies"}, False),
        ({"ProjectionExpression": "ForumName, Subject, LastPostDateTime"}, False),
        ({"ProjectionExpression": "Tags"}, True),
        ({"ProjectionExpression": "Replies, Tags"}, True),
        ({"Select": "SPECIFIC_ATTRIBUTES", "ProjectionExpression": "Replies"}, False),
        ({"Select": "SPECIFIC_ATTRIBUTES", "ProjectionExpression": "Tags"}, True),
    ],
)
def test_s43_attributes_that_are_not_projected_cause_a_fetch(client, threads, forum, ask, fetches):
    put_all(client, threads, [sized_thread(forum, 1, entry=200, item=300)])

    answer = query(client, threads, forum, IndexName=LAST_POST, **ask, **INDEXES)

    assert units(answer).table == (0.5 if fetches else 0.0)
    assert units(answer).indexes == {LAST_POST: 0.5}
    if "Items" in answer:
        [item] = answer["Items"]
        assert ("Tags" in item) == fetches


def test_s44_the_cost_of_each_fetched_item_is_its_whole_size_rounded_separately(
    client, threads, forum
):
    """Items of 5,000 bytes cost two units each, with any projection."""
    put_all(client, threads, (sized_thread(forum, n, entry=200, item=5_000) for n in range(3)))
    put_all(client, threads, [sized_thread(forum, 3, entry=200, item=300)])
    ask = {"IndexName": LAST_POST, "ConsistentRead": True, **INDEXES}

    little = query(client, threads, forum, ProjectionExpression="Subject, Tags[0]", **ask)
    everything = query(client, threads, forum, Select="ALL_ATTRIBUTES", **ask)

    assert units(little) == (8.0, 7.0, {LAST_POST: 1.0})
    assert units(everything) == units(little)


@pytest.mark.parametrize("index", [None, LAST_POST])
def test_s45_the_item_that_passes_1_mb_is_the_last_of_its_page(client, threads, forum, index):
    """Eleven items of 100 KB: ten are less than 1 MB, the eleventh passes it."""
    items = (sized_thread(forum, n, entry=102_400, item=102_400) for n in range(12))
    put_all(client, threads, items)
    ask = {"IndexName": index} if index else {}

    answers = list(pages(client, threads, forum, **ask))

    assert [answer["Count"] for answer in answers] == [11, 1]


@pytest.mark.differs_from_dynamodb_local("its pages go on when they reach 1 MB exactly")
def test_s45_the_item_that_reaches_1_mb_is_the_last_of_its_page(client, threads, forum):
    """Four items of 262,144 bytes are 1 MB exactly: the page ends with the fourth."""
    put_all(client, threads, (sized_thread(forum, n, entry=200, item=MIB // 4) for n in range(4)))

    answers = list(
        pages(client, threads, forum, ConsistentRead=True, ReturnConsumedCapacity="TOTAL")
    )

    assert [answer["Count"] for answer in answers] == [4, 0]
    assert answers[0]["ConsumedCapacity"]["CapacityUnits"] == 256.0


def test_s45_a_byte_less_than_1_mb_leaves_the_page_open(client, threads, forum):
    """Four items are a byte short of 1 MB: the fifth is still on the page, the sixth is not."""
    sizes = (MIB // 4, MIB // 4, MIB // 4, MIB // 4 - 1, 200, 200)
    put_all(
        client, threads, (sized_thread(forum, n, entry=200, item=s) for n, s in enumerate(sizes))
    )

    answers = list(pages(client, threads, forum))

    assert [answer["Count"] for answer in answers] == [5, 1]


@pytest.mark.differs_from_dynamodb_local("its pages do not count fetches")
def test_s46_each_fetched_item_counts_as_4_kb_of_its_page(client, threads, forum):
    """244 entries are 48,800 bytes, rounded 49,152; 244 items rounded 999,424; together 1 MB."""
    put_all(client, threads, (sized_thread(forum, n, entry=200, item=300) for n in range(250)))
    ask = {"IndexName": LAST_POST, "ConsistentRead": True, **INDEXES}

    fetched = list(pages(client, threads, forum, Select="ALL_ATTRIBUTES", **ask))
    projected = list(pages(client, threads, forum, **ask))

    assert [answer["Count"] for answer in fetched] == [244, 6]
    assert units(fetched[0]) == (256.0, 244.0, {LAST_POST: 12.0})
    assert units(fetched[1]) == (7.0, 6.0, {LAST_POST: 1.0})
    assert [answer["Count"] for answer in projected] == [250]


@pytest.mark.differs_from_dynamodb_local("it charges fetches that are not made")
@pytest.mark.parametrize(
    ("projection", "costs"),
    [
        ("Subject, Replies, Tags", {True: (5.0, 4.0, 1.0), False: (2.5, 2.0, 0.5)}),
        ("Subject, Replies", {True: (1.0, 0.0, 1.0), False: (0.5, 0.0, 0.5)}),
    ],
)
def test_a2_four_items_of_300_bytes_with_200_projected_bytes_cost_as_aws_says(
    client, threads, forum, projection, costs
):
    items = [sized_thread(forum, n, entry=200, item=300) for n in range(4)]
    put_all(client, threads, items)
    assert {item_bytes(item) for item in items} == {300}

    for consistent, (total, table, index) in costs.items():
        answer = query(
            client,
            threads,
            forum,
            IndexName=LAST_POST,
            ProjectionExpression=projection,
            ConsistentRead=consistent,
            **INDEXES,
        )
        assert units(answer) == (total, table, {LAST_POST: index})


def test_s47_the_result_of_four_fetched_items_is_20_kb(client, threads, forum):
    """20 KB, read strongly consistent, are five units of 4 KB."""
    put_all(client, threads, (sized_thread(forum, n, entry=200, item=300) for n in range(4)))

    answer = query(
        client,
        threads,
        forum,
        IndexName=LAST_POST,
        Select="ALL_ATTRIBUTES",
        ConsistentRead=True,
        ReturnConsumedCapacity="TOTAL",
    )

    assert answer["ConsumedCapacity"]["CapacityUnits"] * 4_096 == 20 * 1_024
    assert "Table" not in answer["ConsumedCapacity"]


@pytest.mark.differs_from_dynamodb_local("it counts the overhead of an entry")
def test_s49_a_local_index_uses_the_throughput_of_its_table(client, wire):
    throughput = {"ReadCapacityUnits": 7, "WriteCapacityUnits": 3}
    provisioned = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": throughput}
    with thread_table(wire, **provisioned) as name:
        item = sized_thread("EC2", 1, entry=2_000, item=3_000)
        written = client.put_item(TableName=name, Item=item, **INDEXES)
        read = query(client, name, "EC2", IndexName=LAST_POST, **INDEXES)
        described = client.describe_table(TableName=name)["Table"]

    [index] = described["LocalSecondaryIndexes"]
    assert "ProvisionedThroughput" not in index
    assert described["ProvisionedThroughput"]["ReadCapacityUnits"] == 7
    assert written["ConsumedCapacity"]["TableName"] == read["ConsumedCapacity"]["TableName"] == name
    assert units(written) == (5.0, 3.0, {LAST_POST: 2.0})
    assert units(read) == (0.5, 0.0, {LAST_POST: 0.5})
