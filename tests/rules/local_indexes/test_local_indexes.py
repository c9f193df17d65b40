"""S1-S15: properties of a local secondary index."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest

from tests.rules.local_indexes.thread import (
    KEYS,
    LAST_POST,
    last_post_index,
    put_all,
    query,
    texts,
    thread,
    thread_table,
    units,
)
from tests.support.clients.clients import WireClient
from tests.support.tables.tables import definition, local_index, table, unique_name


def refusal_of_definition(wire: WireClient, *keys: str, **members: Any) -> str:
    """The message of the ValidationException that refuses the table."""
    refusal = wire.refused("CreateTable", definition(*keys, **members))
    assert refusal.type == "ValidationException"
    assert refusal.message is not None
    return refusal.message


def test_s1_items_of_a_partition_key_are_consecutive_and_sorted_by_sort_key(client, wire):
    with thread_table(wire) as name:
        subjects = ("m", "c", "z", "a", "q")
        put_all(client, name, (thread(f"f{n}", s) for s in subjects for n in range(8)))

        items = client.scan(TableName=name)["Items"]

    runs = [(f, texts(run, "Subject")) for f, run in groupby(items, lambda i: i["ForumName"]["S"])]
    assert sorted(forum for forum, _ in runs) == [f"f{n}" for n in range(8)]
    assert all(run == sorted(subjects) for _, run in runs)


def test_s2_a_query_reads_one_partition_key_with_an_optional_sort_condition(client, threads, forum):
    subjects = ("abc", "a", "b", "ab", "A", "ba")
    put_all(client, threads, (thread(forum, subject) for subject in subjects))
    put_all(client, threads, [thread(unique_name("other"), "abc")])

    whole = query(client, threads, forum)
    narrow = query(client, threads, forum, "begins_with(Subject, :a)", values={":a": "a"})

    assert texts(whole["Items"], "Subject") == ["A", "a", "ab", "abc", "b", "ba"]
    assert whole["ScannedCount"] == 6
    assert texts(narrow["Items"], "Subject") == ["a", "ab", "abc"]
    assert narrow["ScannedCount"] == 3


def test_s4_an_index_gives_a_partition_key_a_second_sort_key(client, threads, forum):
    put_all(client, threads, [thread(forum, "a", "3"), thread(forum, "b", "1")])
    put_all(client, threads, [thread(forum, "c", "2"), thread(unique_name("other"), "d", "2")])

    by_subject = query(client, threads, forum)["Items"]
    by_last_post = query(client, threads, forum, IndexName=LAST_POST)["Items"]

    assert texts(by_subject, "Subject") == ["a", "b", "c"]
    assert texts(by_last_post, "Subject") == ["b", "c", "a"]


@pytest.mark.parametrize(
    ("projection", "held"),
    [
        ("KEYS_ONLY", {"ForumName", "Subject", "LastPostDateTime"}),
        ("INCLUDE", {"ForumName", "Subject", "LastPostDateTime", "Replies"}),
        ("ALL", {"ForumName", "Subject", "LastPostDateTime", "Replies", "Tags"}),
    ],
)
def test_s5_an_index_has_the_attributes_of_its_projection(client, wire, projection, held):
    with thread_table(wire, projection) as name:
        put_all(client, name, [thread("EC2", "a", "1", Replies="5", Tags="t")])

        [entry] = query(client, name, "EC2", IndexName=LAST_POST)["Items"]
        described = client.describe_table(TableName=name)["Table"]["LocalSecondaryIndexes"]

    assert set(entry) == held
    assert [index["Projection"]["ProjectionType"] for index in described] == [projection]


@pytest.mark.differs_from_dynamodb_local("its messages name neither attribute nor index")
def test_s6_a_table_has_at_most_five_local_indexes(client, wire):
    keys = ("ForumName:S", "Subject:S", *(f"k{n}:S" for n in range(6)))
    indexes = tuple(local_index(f"index-{n}", "ForumName", f"k{n}") for n in range(6))

    with table(wire, *keys[:7], indexes=indexes[:5]) as name:
        described = client.describe_table(TableName=name)["Table"]["LocalSecondaryIndexes"]
    message = refusal_of_definition(wire, *keys, indexes=indexes)

    assert {index["IndexName"] for index in described} == {f"index-{n}" for n in range(5)}
    assert "LocalSecondaryIndex" in message
    assert "5" in message


@pytest.mark.differs_from_dynamodb_local("its messages name neither attribute nor index")
def test_s7_an_index_has_its_tables_partition_key(wire):
    other = local_index(LAST_POST, "Author", "LastPostDateTime")

    message = refusal_of_definition(wire, *KEYS, "Author:S", indexes=(other,))

    assert LAST_POST in message
    assert "HASH" in message or "hash" in message


@pytest.mark.parametrize("sort_keys", [(), ("LastPostDateTime", "Replies")])
def test_s8_the_sort_key_of_an_index_is_exactly_one_attribute(wire, sort_keys):
    index = last_post_index() | {
        "KeySchema": [
            {"AttributeName": "ForumName", "KeyType": "HASH"},
            *({"AttributeName": name, "KeyType": "RANGE"} for name in sort_keys),
        ]
    }
    used = ("ForumName:S", "Subject:S", *(f"{name}:S" for name in sort_keys))

    refusal_of_definition(wire, *used, indexes=(index,))


def test_s9_the_tables_sort_key_is_a_non_key_attribute_of_the_index(client, wire):
    with thread_table(wire, "KEYS_ONLY") as name:
        put_all(client, name, [thread("EC2", "b", "1"), thread("EC2", "a", "2")])

        entries = query(client, name, "EC2", IndexName=LAST_POST)["Items"]
        filtered = query(
            client,
            name,
            "EC2",
            IndexName=LAST_POST,
            FilterExpression="Subject = :subject",
            values={":subject": "a"},
        )
        with pytest.raises(client.exceptions.ClientError, match="ValidationException"):
            query(
                client,
                name,
                "EC2",
                "Subject = :subject",
                IndexName=LAST_POST,
                values={":subject": "a"},
            )

    assert texts(entries, "Subject") == ["b", "a"]
    assert texts(filtered["Items"], "Subject") == ["a"]
    assert filtered["ScannedCount"] == 2


@pytest.mark.parametrize("forward", [True, False])
def test_s10_results_come_in_the_order_of_the_index_sort_key(client, threads, forum, forward):
    order = ["2015-03", "2014-12", "2015-11", "2015-01", "2016-02", "2015-02"]
    put_all(client, threads, (thread(forum, f"{n}", posted) for n, posted in enumerate(order)))

    answer = query(client, threads, forum, IndexName=LAST_POST, ScanIndexForward=forward)

    assert texts(answer["Items"], "LastPostDateTime") == sorted(order, reverse=not forward)


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("LastPostDateTime BETWEEN :b AND :d", "b c d"),
        ("LastPostDateTime = :b", "b"),
        ("LastPostDateTime < :b", "a"),
        ("LastPostDateTime <= :b", "a b"),
        ("LastPostDateTime > :d", "e"),
        ("LastPostDateTime >= :d", "d e"),
        ("begins_with(LastPostDateTime, :d)", "d"),
    ],
)
def test_s11_key_conditions_apply_to_the_index_sort_key(client, threads, forum, condition, found):
    put_all(client, threads, (thread(forum, f"s-{n}", n) for n in "ecadb"))
    values = {name: name[1:] for name in (":b", ":d") if name in condition}

    answer = query(client, threads, forum, condition, IndexName=LAST_POST, values=values)

    assert texts(answer["Items"], "LastPostDateTime") == found.split()
    assert answer["ScannedCount"] == len(found.split())


def test_s12_the_tables_keys_are_always_in_the_index(client, wire):
    with thread_table(wire, "KEYS_ONLY") as name:
        put_all(client, name, [thread("EC2", "a", "1", Replies="5")])

        [entry] = query(client, name, "EC2", IndexName=LAST_POST)["Items"]

    assert entry == thread("EC2", "a", "1")


def test_s13_attributes_that_are_not_projected_are_fetched_from_the_table(client, threads, forum):
    written = [
        thread(forum, f"{n}", f"{9 - n}", Replies=f"{n}", Tags=f"t{n}", Message=f"m{n}")
        for n in range(5)
    ]
    put_all(client, threads, written)

    whole = query(client, threads, forum, IndexName=LAST_POST, Select="ALL_ATTRIBUTES")
    some = query(
        client,
        threads,
        forum,
        IndexName=LAST_POST,
        ProjectionExpression="Replies, Tags",
    )

    assert whole["Items"] == written[::-1]
    assert some["Items"] == [
        {name: item[name] for name in ("Replies", "Tags")} for item in written[::-1]
    ]


@pytest.mark.differs_from_dynamodb_local("it charges fetches that are not made")
def test_s14_a_fetch_costs_more_than_reading_projected_attributes(client, threads, forum):
    put_all(client, threads, [thread(forum, "a", "1", Replies="5", Tags="t")])
    ask = {"IndexName": LAST_POST, "ReturnConsumedCapacity": "INDEXES"}

    projected = query(client, threads, forum, ProjectionExpression="Replies", **ask)
    fetched = query(client, threads, forum, ProjectionExpression="Replies, Tags", **ask)

    assert units(fetched).total > units(projected).total
    assert units(fetched).table > 0
    assert units(projected).table == 0
