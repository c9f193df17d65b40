"""S90-S93, S105, S107, S153, A4, A10: reading a global secondary index."""

from __future__ import annotations

import random
from contextlib import AbstractContextManager
from itertools import chain, groupby
from typing import Any

import pytest

from tests.rules.global_indexes.game_scores import (
    GAME_TITLE,
    Item,
    entries,
    eventually,
    game_title_index,
    global_index,
    provisioned,
    put_all,
    query,
    query_of,
    score,
    scores_table,
    texts,
)
from tests.rules.local_indexes.thread import padded, units
from tests.support.tables.tables import Call, table, unique_name

METEOR = "Meteor Blasters"
MIB = 1_048_576

A4_REQUEST = {
    "TableName": "GameScores",
    "IndexName": "GameTitleIndex",
    "KeyConditionExpression": "GameTitle = :v_title",
    "ExpressionAttributeValues": {":v_title": {"S": "Meteor Blasters"}},
    "ProjectionExpression": "UserId, TopScore",
    "ScanIndexForward": False,
}


def test_a4_an_index_gives_the_leaderboard_of_meteor_blasters(client, wire):
    """Scores are sorted as numbers, so 1000 is above 192."""
    scores = {"101": 1_000, "103": 192, "102": 24, "104": 0, "105": -5}
    with scores_table(wire, name="GameScores") as name:
        put_all(client, name, (score(user, METEOR, top) for user, top in sorted(scores.items())))
        put_all(client, name, [score("101", "Galaxy Invaders", 5_842), score("106", METEOR)])
        entries(client, name, 6)

        answer = client.query(**A4_REQUEST)

    assert answer["Items"] == [
        {"UserId": {"S": user}, "TopScore": {"N": str(top)}} for user, top in scores.items()
    ]


def test_s90_a_query_names_its_table_index_attributes_and_conditions(client, wire):
    with scores_table(wire) as name:
        put_all(client, name, (score(f"{n}", METEOR, n, Wins=n) for n in range(10)))
        put_all(client, name, [score("1", "Galaxy Invaders", 5)])
        entries(client, name, 11)
        values = {":game": {"S": METEOR}, ":low": {"N": "3"}, ":high": {"N": "6"}}
        ask = {
            "TableName": name,
            "IndexName": GAME_TITLE,
            "KeyConditionExpression": "GameTitle = :game AND TopScore BETWEEN :low AND :high",
            "ProjectionExpression": "UserId, Wins",
            "ExpressionAttributeValues": values,
        }

        ascending = client.query(**ask)
        descending = client.query(**ask, ScanIndexForward=False)

    wanted = [{"UserId": {"S": f"{n}"}, "Wins": {"N": f"{n}"}} for n in (3, 4, 5, 6)]
    assert ascending["Items"] == wanted
    assert ascending["ScannedCount"] == 4
    assert descending["Items"] == wanted[::-1]


def test_s90_a_query_of_a_missing_table_or_index_or_without_a_key_condition_is_refused(wire):
    with scores_table(wire) as name:
        request = query_of(name, where={"GameTitle": METEOR})
        no_condition = {"TableName": name, "IndexName": GAME_TITLE}
        sort_key_alone = query_of(name, where={"TopScore": 1})

        no_table = wire.refused("Query", request | {"TableName": unique_name("missing")})
        no_index = wire.refused("Query", request | {"IndexName": "missing"})
        refused = [wire.refused("Query", ask) for ask in (no_condition, sort_key_alone)]

    assert no_table.type == "ResourceNotFoundException"
    assert no_index.type == "ValidationException"
    assert [refusal.type for refusal in refused] == ["ValidationException"] * 2


def test_s91_a_query_in_descending_order_returns_the_highest_scores_first(client, wire):
    tops = list(range(-20, 200, 7))
    with scores_table(wire) as name:
        put_all(
            client, name, (score(f"{n}", METEOR, n) for n in random.Random(91).sample(tops, 32))
        )
        entries(client, name, len(tops))
        ask = {"where": {"GameTitle": METEOR}, "ScanIndexForward": False, "Limit": 10}

        first = query(client, name, **ask)
        second = query(client, name, **ask, ExclusiveStartKey=first["LastEvaluatedKey"])

    found = texts(first["Items"] + second["Items"], "TopScore")
    assert [int(top) for top in found] == sorted(tops, reverse=True)[:20]


def test_s92_a_scan_returns_the_entries_of_a_partition_key_consecutively(client, wire):
    with scores_table(wire) as name:
        put_all(
            client,
            name,
            (score(f"{user}", f"{game}", user) for user in range(6) for game in "abcde"),
        )

        found = entries(client, name, 30)

    runs = [(game, list(run)) for game, run in groupby(found, lambda i: i["GameTitle"]["S"])]
    assert sorted(game for game, _ in runs) == list("abcde")
    assert all(texts(run, "TopScore") == list("012345") for _, run in runs)


def test_s93_a_scan_of_an_index_reads_all_entries_before_it_filters(client, wire):
    index = game_title_index(include=("Wins",), throughput=(5, 5))
    members = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": provisioned(5, 5)}
    with scores_table(wire, index, **members) as name:
        put_all(client, name, (score(f"{n}", f"g{n}", n, Wins=n, Losses=n) for n in range(20)))
        put_all(client, name, (score(f"{n}", "without") for n in range(20)))
        entries(client, name, 20)
        ask = {"TableName": name, "IndexName": GAME_TITLE, "ReturnConsumedCapacity": "INDEXES"}
        seven = {"ExpressionAttributeValues": {":seven": {"N": "7"}}}

        whole = client.scan(**ask)
        filtered = client.scan(**ask, FilterExpression="Wins = :seven", **seven)
        segments = [
            client.scan(TableName=name, IndexName=GAME_TITLE, Segment=n, TotalSegments=4)["Items"]
            for n in range(4)
        ]
        no_table = wire.refused("Scan", ask | {"TableName": unique_name("missing")})
        no_index = wire.refused("Scan", ask | {"IndexName": "missing"})

    assert (whole["Count"], whole["ScannedCount"]) == (20, 20)
    assert (filtered["Count"], filtered["ScannedCount"]) == (1, 20)
    assert filtered["Items"] == [score("7", "g7", 7, Wins=7)]
    assert units(filtered) == units(whole) == (0.5, 0.0, {GAME_TITLE: 0.5})
    assert sorted(texts(chain(*segments), "TopScore")) == sorted(texts(whole["Items"], "TopScore"))
    assert no_table.type == "ResourceNotFoundException"
    assert no_index.type == "ValidationException"


@pytest.mark.parametrize("operation", ["Query", "Scan"])
def test_s105_a_strongly_consistent_read_of_a_global_index_is_refused(wire, operation):
    with scores_table(wire) as name:
        request = {"TableName": name, "IndexName": GAME_TITLE}
        if operation == "Query":
            request = query_of(name, where={"GameTitle": METEOR})

        refusal = wire.refused(operation, request | {"ConsistentRead": True})
        wire(operation, request | {"ConsistentRead": False})

    assert refusal.type == "ValidationException"
    assert "onsistent read" in (refusal.message or "")


# -- sizes: all attributes are strings --------------------------------------------------------

SIZED_KEYS = ("pk:S", "sk:S", "group:S", "mark:S")
SIZED_INDEX = global_index("ByMark", "group", "mark", include=("held",))


def sized(pk: str, number: int, *, entry: int, item: int) -> Item:
    """An item with an entry of this size in ByMark; the rest of the item is not projected."""
    text = f"{number:05}"
    keys = {name: {"S": text} for name in ("sk", "mark")}
    held = padded({"pk": {"S": pk}, "group": {"S": pk}, **keys}, "held", entry)
    return padded(held, "rest", item) if item > entry else held


def put_sized(client: Any, name: str, items: list[Item]) -> None:
    """Write items and wait for their entries."""
    put_all(client, name, items)
    entries(client, name, len(items), "ByMark")


@pytest.mark.parametrize(
    ("sizes", "read_units"),
    [
        ([4_096, 4_096], 1.0),
        ([4_096, 4_097], 1.5),
        ([1_000], 0.5),
        ([1_000] * 8, 1.0),
    ],
    ids=["8 KB", "8 KB and a byte", "one of 1,000 bytes", "eight of 1,000 bytes"],
)
def test_s105_one_unit_reads_8_kb(client, wire, pk, sizes, read_units):
    with table(wire, *SIZED_KEYS, GlobalSecondaryIndexes=[SIZED_INDEX]) as name:
        put_sized(client, name, [sized(pk, n, entry=s, item=s) for n, s in enumerate(sizes)])

        answer = query(
            client, name, "ByMark", where={"group": pk}, ReturnConsumedCapacity="INDEXES"
        )

    assert units(answer) == (read_units, 0.0, {"ByMark": read_units})


@pytest.mark.differs_from_dynamodb_local("it counts the items")
def test_s107_a_page_ends_with_the_entry_that_reaches_1_mb(client, wire, pk):
    """Entries of 8,192 bytes: 128 of them are 1 MB; unprojected attributes do not count."""
    entry_bytes = 8_192
    full = MIB // entry_bytes
    with table(wire, *SIZED_KEYS, GlobalSecondaryIndexes=[SIZED_INDEX]) as name:
        items = [sized(pk, n, entry=entry_bytes, item=entry_bytes + 500) for n in range(full + 2)]
        put_all(client, name, items)
        where = {"group": pk}
        last = {"group": pk, "mark": f"{full + 1:05}"}
        eventually(lambda: query(client, name, "ByMark", where=last)["Items"], bool)

        first = query(client, name, "ByMark", where=where)
        rest = query(
            client, name, "ByMark", where=where, ExclusiveStartKey=first["LastEvaluatedKey"]
        )
        counted = query(client, name, "ByMark", where=where, Select="COUNT")

    assert first["Count"] == counted["Count"] == full
    assert rest["Count"] == 2
    assert "LastEvaluatedKey" not in rest


SHARDS = 5


def invoices_table(call: Call) -> AbstractContextManager[str]:
    """A table of invoices, with an index whose partition key is a random number from 1 to 5."""
    keys = ("InvoiceNumber:S", "ClientTransactionId:S", "Prefix:N", "Country:S")
    by_country = global_index("ByCountry", "Prefix", "Country")
    return table(call, *keys, GlobalSecondaryIndexes=[by_country])


def invoice(number: str, prefix: int, country: str) -> Item:
    return {
        "InvoiceNumber": {"S": number},
        "ClientTransactionId": {"S": f"Client1_{number}"},
        "Prefix": {"N": str(prefix)},
        "Country": {"S": country},
    }


def invoices_of(client: Any, name: str, country: str) -> list[list[str]]:
    """The numbers of a country's invoices, as one list for each prefix."""
    pages = (
        query(client, name, "ByCountry", where={"Prefix": prefix, "Country": country})
        for prefix in range(1, SHARDS + 1)
    )
    return [texts(page["Items"], "InvoiceNumber") for page in pages]


def test_a10_the_invoices_of_a_country_are_the_union_over_all_prefixes(client, wire):
    chance = random.Random(10)
    countries = {"121212": "USA", "121213": "USA", "121214": "FRA"}
    with invoices_table(wire) as name:
        invoices = [invoice(n, chance.randint(1, SHARDS), c) for n, c in countries.items()]
        put_all(client, name, invoices)
        entries(client, name, 3, "ByCountry")

        found = invoices_of(client, name, "USA")

    assert sorted(chain(*found)) == ["121212", "121213"]


def test_s153_a_sharded_index_spreads_a_country_over_its_prefixes(client, wire):
    chance = random.Random(153)
    numbers = [f"{n:03}" for n in range(100)]
    with invoices_table(wire) as name:
        put_all(client, name, (invoice(n, chance.randint(1, SHARDS), "USA") for n in numbers))
        put_all(client, name, [invoice("other", 1, "FRA")])
        entries(client, name, 101, "ByCountry")

        found = invoices_of(client, name, "USA")

    assert sorted(chain(*found)) == numbers
    assert all(len(of_prefix) > 5 for of_prefix in found)
