"""S77-S88, A5: the definition and content of global secondary indexes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.global_indexes.game_scores import (
    GAME_TITLE,
    KEYS,
    entries,
    game_title_index,
    global_index,
    key,
    put_all,
    query,
    query_of,
    score,
    scores_table,
    settled_entries,
    texts,
)
from tests.support.clients.clients import WireClient
from tests.support.tables.tables import definition, table

COMET = "Comet Quest"


def refusal_of_definition(wire: WireClient, *keys: str, index: dict[str, Any]) -> str:
    """The message of the ValidationException that refuses a table with this index."""
    refusal = wire.refused("CreateTable", definition(*keys, GlobalSecondaryIndexes=[index]))
    assert refusal.type == "ValidationException"
    assert refusal.message is not None
    return refusal.message


def test_s77_the_key_of_an_index_needs_no_key_attribute_of_the_table(client, wire):
    """The table's keys are strings; the index's keys are a number and a binary."""
    index = global_index("ByMedal", "Year", "Medal")
    with scores_table(wire, index, keys=(*KEYS[:2], "Year:N", "Medal:B")) as name:
        for n, medal in enumerate((b"\xff", b"\x00", b"\x7f")):
            item = score(f"{n}", COMET, Year=2026) | {"Medal": {"B": medal}}
            put_all(client, name, [item])
        entries(client, name, 3, "ByMedal")

        found = query(client, name, "ByMedal", where={"Year": 2026})["Items"]

    assert [item["Medal"]["B"] for item in found] == [b"\x00", b"\x7f", b"\xff"]


def test_s78_a_sort_key_is_optional(client, wire):
    with scores_table(wire, global_index("ByScore", "TopScore")) as name:
        put_all(client, name, [score("1", COMET, 7), score("2", COMET, 7), score("3", COMET, 8)])
        entries(client, name, 3, "ByScore")

        found = query(client, name, "ByScore", where={"TopScore": 7})["Items"]

    assert sorted(texts(found, "UserId")) == ["1", "2"]


@pytest.mark.parametrize(
    "key_schema", [[], [{"AttributeName": "TopScore", "KeyType": "RANGE"}]], ids=["none", "sort"]
)
def test_s78_an_index_has_a_partition_key(wire, key_schema):
    index = game_title_index() | {"KeySchema": key_schema}

    refusal_of_definition(wire, *KEYS, index=index)


def test_s79_a_table_with_a_simple_key_may_have_a_composite_index(client, wire):
    index = game_title_index()
    schema = [{"AttributeName": "UserId", "KeyType": "HASH"}]
    with scores_table(wire, index, KeySchema=schema) as name:
        put_all(client, name, (score(f"{n}", COMET, n) for n in (2, 1, 3)))
        entries(client, name, 3)

        found = query(client, name, where={"GameTitle": COMET})["Items"]

    assert texts(found, "TopScore") == ["1", "2", "3"]


def test_s79_a_table_with_a_composite_key_may_have_a_simple_index(client, wire):
    with scores_table(wire, global_index("ByGame", "GameTitle"), keys=KEYS[:2]) as name:
        put_all(client, name, (score(f"{n}", COMET) for n in range(3)))
        entries(client, name, 3, "ByGame")

        found = query(client, name, "ByGame", where={"GameTitle": COMET})["Items"]

    assert sorted(texts(found, "UserId")) == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("type_name", "low", "high"),
    [("S", "a", "b"), ("N", "9", "10"), ("B", b"\x7f", b"\x80")],
)
def test_s80_index_keys_may_be_strings_numbers_and_binaries(client, wire, type_name, low, high):
    keys = (*KEYS[:2], f"Group:{type_name}", f"Mark:{type_name}")
    with scores_table(wire, global_index("ByMark", "Group", "Mark"), keys=keys) as name:
        for n, mark in enumerate((high, low)):
            item = score(f"{n}", COMET) | {"Group": {type_name: low}, "Mark": {type_name: mark}}
            put_all(client, name, [item])
        entries(client, name, 2, "ByMark")

        found = client.query(
            TableName=name,
            IndexName="ByMark",
            KeyConditionExpression="#g = :g",
            ExpressionAttributeNames={"#g": "Group"},
            ExpressionAttributeValues={":g": {type_name: low}},
        )["Items"]

    assert texts(found, "UserId") == ["1", "0"]


@pytest.mark.parametrize("type_name", ["BOOL", "NULL", "M", "L", "SS", "NS", "BS"])
def test_s80_index_keys_of_other_types_are_refused(wire, type_name):
    refusal_of_definition(wire, *KEYS[:2], f"TopScore:{type_name}", index=game_title_index())


def test_s80_key_attributes_are_top_level_ones(client, wire):
    """A dot is part of an attribute's name, rather than a path into a map."""
    index = global_index("ByRating", "Info.Rating")
    with scores_table(wire, index, keys=(*KEYS[:2], "Info.Rating:N")) as name:
        nested = score("1", COMET) | {"Info": {"M": {"Rating": {"N": "5"}}}}
        put_all(client, name, [nested])
        marker = score("1", "marker", **{"Info.Rating": 5})

        found = settled_entries(client, name, marker, "ByRating")

    assert found == []


def test_s81_the_tables_key_is_always_in_the_index(client, wire):
    index = global_index("ByScore", "TopScore", projection="KEYS_ONLY")
    with scores_table(wire, index) as name:
        put_all(client, name, [score("1", COMET, 7, Wins=1)])

        [entry] = entries(client, name, 1, "ByScore")

    assert entry == score("1", COMET, 7)


@pytest.mark.differs_from_dynamodb_local("its messages name neither attribute nor index")
@pytest.mark.parametrize(
    "asked",
    [
        {"ProjectionExpression": "UserId, Wins"},
        {"AttributesToGet": ["UserId", "Wins"]},
        {"Select": "ALL_ATTRIBUTES"},
        {
            "FilterExpression": "Wins > :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        },
    ],
    ids=lambda asked: next(iter(asked)),
)
def test_s82_an_index_can_not_fetch_from_its_table(wire, asked):
    legacy = "AttributesToGet" in asked
    with scores_table(wire, game_title_index(include=("Losses",))) as name:
        request = query_of(name, where={"GameTitle": COMET}, **asked)
        if legacy:
            for member in [member for member in request if "Expression" in member]:
                del request[member]
            of_comet = {"AttributeValueList": [{"S": COMET}], "ComparisonOperator": "EQ"}
            request["KeyConditions"] = {"GameTitle": of_comet}
        queried = wire.refused("Query", request)
        scan = {"TableName": name, "IndexName": GAME_TITLE, **asked}
        if "FilterExpression" in asked:
            # A Scan's filter may name an attribute that is not projected, which no entry has.
            assert wire("Scan", scan)["Items"] == []
        else:
            assert GAME_TITLE in (wire.refused("Scan", scan).message or "")
        held = wire(
            "Query", query_of(name, where={"GameTitle": COMET}, ProjectionExpression="Losses")
        )

    assert queried.type == "ValidationException"
    assert GAME_TITLE in (queried.message or "")
    assert held["Items"] == []


@pytest.mark.parametrize("limit", [1, 3, 20])
def test_s83_key_values_need_not_be_unique(client, wire, limit):
    """Paging through entries with the same key neither skips nor repeats an entry."""
    users = [f"{n}" for n in range(13)]
    with scores_table(wire) as name:
        put_all(client, name, (score(user, COMET, 7) for user in users))
        entries(client, name, len(users))
        found = []
        start: dict[str, Any] = {}
        while True:
            answer = query(
                client, name, where={"GameTitle": COMET, "TopScore": 7}, Limit=limit, **start
            )
            found += texts(answer["Items"], "UserId")
            if "LastEvaluatedKey" not in answer:
                break
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
            assert set(answer["LastEvaluatedKey"]) == {"UserId", "GameTitle", "TopScore"}
            assert len(found) <= len(users)

    assert sorted(found) == sorted(users)


COMET_SCORES = [
    score("123", COMET, 0),
    score("201", COMET, 0),
    score("301", COMET, 0),
    score("400", COMET),
]


def test_a5_three_of_four_users_have_a_score_in_comet_quest(client, wire):
    with scores_table(wire) as name:
        put_all(client, name, COMET_SCORES)
        entries(client, name, 3)

        of_game = query(client, name, where={"GameTitle": COMET})["Items"]
        of_score = query(client, name, where={"GameTitle": COMET, "TopScore": 0})["Items"]
        of_table = client.scan(
            TableName=name,
            FilterExpression="GameTitle = :game",
            ExpressionAttributeValues={":game": {"S": COMET}},
        )["Items"]

    assert sorted(texts(of_game, "UserId")) == ["123", "201", "301"]
    assert sorted(texts(of_score, "UserId")) == ["123", "201", "301"]
    assert sorted(texts(of_table, "UserId")) == ["123", "201", "301", "400"]


def test_s84_users_with_the_same_score_are_all_found(client, wire):
    others = [score("123", "Meteor Blasters", 0), score("500", COMET, 1)]
    with scores_table(wire) as name:
        put_all(client, name, COMET_SCORES + others)
        entries(client, name, 5)

        found = query(client, name, where={"GameTitle": COMET, "TopScore": 0})["Items"]

    assert sorted(texts(found, "UserId")) == ["123", "201", "301"]


def test_s85_an_item_has_an_index_entry_while_it_has_the_key_attributes(client, wire):
    item = score("1", COMET, 7)
    with scores_table(wire) as name:
        put_all(client, name, [score("1", COMET)])
        without = settled_entries(client, name, score("1", "marker", 1))
        put_all(client, name, [item])
        having = entries(client, name, 2)
        client.update_item(TableName=name, Key=key(item), UpdateExpression="REMOVE TopScore")
        removed = entries(client, name, 1)

    assert without == []
    assert item in having
    assert item not in removed


def test_s86_a_user_without_a_score_is_in_the_table_alone(client, wire):
    with scores_table(wire) as name:
        put_all(client, name, COMET_SCORES)

        in_index = settled_entries(client, name, score("400", "marker", 1))
        in_table = client.scan(TableName=name)["Items"]

    assert sorted(texts(in_index, "UserId")) == ["123", "201", "301"]
    assert sorted(texts(in_table, "UserId")) == ["123", "201", "301", "400", "400"]


@pytest.mark.parametrize(
    ("projection", "held"),
    [
        ({"projection": "KEYS_ONLY"}, score("1", COMET, 7)),
        ({"include": ("Wins", "Missing")}, score("1", COMET, 7, Wins=3)),
        ({"projection": "ALL"}, score("1", COMET, 7, Wins=3, Losses=2)),
    ],
    ids=["KEYS_ONLY", "INCLUDE", "ALL"],
)
def test_s87_an_index_holds_its_projected_attributes(client, wire, projection, held):
    with scores_table(wire, game_title_index(**projection)) as name:
        put_all(client, name, [score("1", COMET, 7, Wins=3, Losses=2)])

        found = entries(client, name, 1)

    assert found == [held]


@pytest.mark.parametrize("projection", [None, {}])
def test_s87_an_index_without_a_projection_is_refused(wire, projection):
    index = game_title_index()
    del index["Projection"]
    if projection is not None:
        index["Projection"] = projection

    assert "rojection" in refusal_of_definition(wire, *KEYS, index=index)


@pytest.mark.differs_from_dynamodb_local("its messages name neither attribute nor index")
def test_s88_an_index_that_projects_wins_and_losses_returns_them(client, wire):
    scores = [
        score("1", COMET, 9, Wins=3, Losses=3),
        score("2", COMET, 7, Wins=8, Losses=1),
        score("3", COMET, 8, Wins=1, Losses=4),
    ]
    keys_only = global_index("KeysOnly", "GameTitle", "TopScore", projection="KEYS_ONLY")
    with_wins = global_index("WithWins", "GameTitle", "TopScore", include=("Wins", "Losses"))
    with scores_table(wire, keys_only, with_wins) as name:
        put_all(client, name, scores)
        entries(client, name, 3, "KeysOnly")
        entries(client, name, 3, "WithWins")
        where = {"GameTitle": COMET}

        [top] = query(client, name, "KeysOnly", where=where, ScanIndexForward=False, Limit=1)[
            "Items"
        ]
        ask = {"where": where, "ProjectionExpression": "UserId, Wins, Losses"}
        refused = wire.refused("Query", query_of(name, "KeysOnly", **ask))
        found = query(client, name, "WithWins", **ask)["Items"]

    best = max(found, key=lambda item: int(item["Wins"]["N"]) / int(item["Losses"]["N"]))
    assert top["UserId"] == {"S": "1"}
    assert refused.type == "ValidationException"
    assert best["UserId"] == {"S": "2"}


def test_s79_a_table_may_have_local_and_global_indexes(client, wire):
    """A local index of the same key attributes in another order."""
    local = {
        "IndexName": "LocalIndex",
        "KeySchema": [
            {"AttributeName": "UserId", "KeyType": "HASH"},
            {"AttributeName": "TopScore", "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "ALL"},
    }
    members = {"LocalSecondaryIndexes": [local], "GlobalSecondaryIndexes": [game_title_index()]}
    with table(wire, *KEYS, **members) as name:
        put_all(client, name, [score("1", COMET, 7), score("1", "Alien", 9)])
        entries(client, name, 2)

        by_user = query(client, name, "LocalIndex", where={"UserId": "1"})["Items"]
        by_game = query(client, name, where={"GameTitle": COMET})["Items"]

    assert texts(by_user, "TopScore") == ["7", "9"]
    assert texts(by_game, "TopScore") == ["7"]
