"""Query and Scan on global secondary indexes, which follow their table shortly afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.lanes import LanesClient
from tests.support.tables.tables import global_index, table, unique_name, wait_until_indexes_active

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

INVALID = "One or more parameter values were invalid: "


@pytest.fixture(scope="module")
def games(wire: WireClient) -> Iterator[str]:
    """Scores by user and game; indexes by game and score, and by the game's league and country."""
    indexes = [
        global_index("by-score", "game", "score"),
        global_index("keys-by-score", "game", "score", projection="KEYS_ONLY"),
        global_index("some-by-score", "game", "score", projection="INCLUDE", include=("wins",)),
        global_index("by-league", "league:HASH", "country:HASH", "score:RANGE", "seed:RANGE"),
    ]
    keys = ("user:S", "game:S", "score:N", "league:S", "country:S", "seed:B")
    with table(wire, *keys, GlobalSecondaryIndexes=indexes) as name:
        wait_until_indexes_active(wire, name)
        yield name


def put(wire: WireClient, name: str, user: str, game: str, **attributes: Any) -> dict[str, Any]:
    item = {"user": {"S": user}, "game": {"S": game}, **attributes}
    wire("PutItem", {"TableName": name, "Item": item})
    return item


def query(wire: WireClient, name: str, game: str, index: str = "by-score", **members: Any) -> Any:
    values = {":game": {"S": game}} | members.pop("ExpressionAttributeValues", {})
    request = {
        "TableName": name,
        "IndexName": index,
        "KeyConditionExpression": "game = :game",
        "ExpressionAttributeValues": values,
    }
    return wire("Query", request | members)


def wait_for(wire: WireClient, name: str, game: str, count: int, index: str = "by-score") -> None:
    """Poll until the index holds this many entries of a game."""
    while query(wire, name, game, index, Select="COUNT")["Count"] != count:
        pass


@pytest.fixture(scope="module")
def scores(wire: WireClient, games: str) -> str:
    """A game that four users played, one of them without a score."""
    game = unique_name("Meteor Blasters")
    for user, score in (("101", 1_000), ("102", 24), ("103", 30_000)):
        put(
            wire,
            games,
            user,
            game,
            score={"N": str(score)},
            wins={"N": "1"},
            losses={"N": "2"},
        )
    put(wire, games, "104", game, wins={"N": "0"})
    for index in ("by-score", "keys-by-score", "some-by-score"):
        wait_for(wire, games, game, 3, index)
    return game


def users(answer: dict[str, Any]) -> list[str]:
    return [item["user"]["S"] for item in answer["Items"]]


def test_entries_come_in_the_order_of_the_sort_key(wire: WireClient, games: str, scores: str):
    assert users(query(wire, games, scores)) == ["102", "101", "103"]
    assert users(query(wire, games, scores, ScanIndexForward=False)) == ["103", "101", "102"]


def test_an_index_returns_its_projected_attributes(wire: WireClient, games: str, scores: str):
    keys = {"user", "game", "score"}
    for index, names in (
        ("by-score", keys | {"wins", "losses"}),
        ("keys-by-score", keys),
        ("some-by-score", keys | {"wins"}),
    ):
        for select in ({}, {"Select": "ALL_PROJECTED_ATTRIBUTES"}):
            answer = query(wire, games, scores, index, **select)
            assert all(item.keys() == names for item in answer["Items"])


def test_a_condition_on_the_sort_key_narrows(wire: WireClient, games: str, scores: str):
    answer = query(
        wire,
        games,
        scores,
        KeyConditionExpression="game = :game AND score >= :least",
        ExpressionAttributeValues={":least": {"N": "1000"}},
    )
    assert users(answer) == ["101", "103"]


def test_pages_continue_where_the_last_one_ended(wire: WireClient, games: str, scores: str):
    for forward in (True, False):
        found: list[str] = []
        start: dict[str, Any] = {}
        while True:
            answer = query(wire, games, scores, Limit=1, ScanIndexForward=forward, **start)
            found += users(answer)
            if "LastEvaluatedKey" not in answer:
                break
            assert answer["LastEvaluatedKey"].keys() == {"user", "game", "score"}
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
        assert found == (["102", "101", "103"] if forward else ["103", "101", "102"])


def test_entries_with_the_same_key_are_all_found(wire: WireClient, games: str):
    game = unique_name("Comet Quest")
    for user in ("123", "201", "301"):
        put(wire, games, user, game, score={"N": "0"})
    put(wire, games, "400", game)
    wait_for(wire, games, game, 3)
    answer = query(
        wire,
        games,
        game,
        KeyConditionExpression="game = :game AND score = :zero",
        ExpressionAttributeValues={":zero": {"N": "0"}},
    )
    assert sorted(users(answer)) == ["123", "201", "301"]
    first = query(wire, games, game, Limit=2)
    rest = query(wire, games, game, ExclusiveStartKey=first["LastEvaluatedKey"])
    assert sorted(users(first) + users(rest)) == ["123", "201", "301"]


def test_a_moved_and_a_deleted_item_leave_their_old_place(wire: WireClient, games: str):
    game = unique_name("moves")
    put(wire, games, "1", game, score={"N": "1"})
    put(wire, games, "2", game, score={"N": "2"})
    wait_for(wire, games, game, 2)
    put(wire, games, "1", game, score={"N": "3"})
    while users(query(wire, games, game)) != ["2", "1"]:
        pass
    wire("DeleteItem", {"TableName": games, "Key": {"user": {"S": "2"}, "game": {"S": game}}})
    while users(query(wire, games, game)) == ["2", "1"]:
        pass
    assert users(query(wire, games, game)) == ["1"]


def test_a_scan_reads_the_index(wire: WireClient, games: str, scores: str):
    request = {
        "TableName": games,
        "IndexName": "some-by-score",
        "FilterExpression": "game = :game",
        "ExpressionAttributeValues": {":game": {"S": scores}},
    }
    items = wire("Scan", request)["Items"]
    assert sorted(item["user"]["S"] for item in items) == ["101", "102", "103"]
    assert all(item.keys() == {"user", "game", "score", "wins"} for item in items)
    found: list[str] = []
    for segment in range(3):
        part = {**request, "TotalSegments": 3, "Segment": segment, "Limit": 1}
        while True:
            answer = wire("Scan", part)
            found += users(answer)
            if "LastEvaluatedKey" not in answer:
                break
            part["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
    assert sorted(found) == ["101", "102", "103"]


# -- keys of several attributes ---------------------------------------------------------------


@pytest.fixture(scope="module")
def league(wire: WireClient, games: str) -> dict[str, Any]:
    """The values of a partition of the index ``by-league``, which holds four entries."""
    name = unique_name("league")
    for user, country, score, seed in (
        ("1", "BR", "10", "AA=="),
        ("2", "BR", "10", "AQ=="),
        ("3", "BR", "9", "Ag=="),
        ("4", "BR", "11", "AA=="),
        ("5", "FR", "1", "AA=="),
    ):
        put(
            wire,
            games,
            user,
            name,
            league={"S": name},
            country={"S": country},
            score={"N": score},
            seed={"B": seed},
        )
    put(wire, games, "6", name, league={"S": name}, country={"S": "BR"}, score={"N": "1"})
    values = {":league": {"S": name}, ":country": {"S": "BR"}}
    while of_league(wire, games, values)["Count"] != 4:
        pass
    return values


def of_league(
    wire: WireClient, name: str, values: dict[str, Any], condition: str = "", **members: Any
) -> Any:
    return wire(
        "Query",
        {
            "TableName": name,
            "IndexName": "by-league",
            "KeyConditionExpression": f"league = :league AND country = :country{condition}",
            "ExpressionAttributeValues": values,
            **members,
        },
    )


@pytest.mark.parametrize(
    ("condition", "values", "expected"),
    [
        ("", {}, ["3", "1", "2", "4"]),
        (" AND score = :score", {":score": {"N": "10"}}, ["1", "2"]),
        (" AND score > :score", {":score": {"N": "9"}}, ["1", "2", "4"]),
        (
            " AND score = :score AND seed > :seed",
            {":score": {"N": "10"}, ":seed": {"B": "AA=="}},
            ["2"],
        ),
        (
            " AND score = :score AND begins_with(seed, :seed)",
            {":score": {"N": "10"}, ":seed": {"B": "AQ=="}},
            ["2"],
        ),
    ],
)
def test_conditions_on_several_attributes(
    wire: WireClient, games: str, league: Any, *, condition: str, values: Any, expected: list[str]
):
    assert users(of_league(wire, games, league | values, condition)) == expected


def test_pages_of_a_key_of_several_attributes(wire: WireClient, games: str, league: Any):
    found: list[str] = []
    start: dict[str, Any] = {}
    while True:
        answer = of_league(wire, games, league, Limit=1, **start)
        found += users(answer)
        if "LastEvaluatedKey" not in answer:
            break
        names = {"user", "game", "league", "country", "score", "seed"}
        assert answer["LastEvaluatedKey"].keys() == names
        start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
    assert found == ["3", "1", "2", "4"]


@differs_from_dynamodb_local("a full stop behind")
@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (
            "league = :v",
            "HASH key attributes country must have equality conditions specified in the query",
        ),
        (
            "league = :v AND country > :v",
            "HASH key attributes country must have equality conditions specified in the query",
        ),
        (
            "league = :v AND country = :v AND seed = :seed",
            (
                "RANGE key attributes score must have equality conditions specified in the query "
                "because a condition is present on key attribute seed"
            ),
        ),
        (
            "league = :v AND country = :v AND score > :n AND seed = :seed",
            (
                "RANGE key attributes score must have equality conditions specified in the query "
                "because a condition is present on key attribute seed"
            ),
        ),
    ],
)
def test_conditions_name_the_key_from_its_beginning(
    wire: WireClient, games: str, condition: str, message: str
):
    values = {":v": {"S": "v"}, ":n": {"N": "1"}, ":seed": {"B": "AA=="}}
    request = {
        "TableName": games,
        "IndexName": "by-league",
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": {
            name: value for name, value in values.items() if name in condition.split()
        },
    }
    assert wire.refused("Query", request) == ("ValidationException", message)


# -- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["Query", "Scan"])
@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"ConsistentRead": True},
            "Consistent reads are not supported on global secondary indexes",
        ),
        (
            {"ConsistentRead": True, "Select": "ALL_ATTRIBUTES"},
            "Consistent reads are not supported on global secondary indexes",
        ),
        (
            {"Select": "ALL_ATTRIBUTES"},
            (
                f"{INVALID}Select type ALL_ATTRIBUTES is not supported for global secondary index "
                "keys-by-score because its projection type is not ALL"
            ),
        ),
        (
            {"ProjectionExpression": "wins"},
            f"{INVALID}Global secondary index keys-by-score does not project [wins]",
        ),
        (
            {"ProjectionExpression": "wins.a[0], score"},
            f"{INVALID}Global secondary index keys-by-score does not project [wins]",
        ),
        ({"IndexName": "nothing"}, "The table does not have the specified index: nothing"),
    ],
)
def test_a_read_is_refused(
    wire: WireClient, games: str, *, operation: str, members: Any, message: str
):
    request = {"TableName": games, "IndexName": "keys-by-score", **members}
    if operation == "Query":
        request["KeyConditionExpression"] = "game = :game"
        request["ExpressionAttributeValues"] = {":game": {"S": "g"}}
    assert wire.refused(operation, request) == ("ValidationException", message)


@pytest.mark.parametrize(
    "start",
    [
        {"user": {"S": "u"}},
        {"user": {"S": "u"}, "game": {"S": "g"}},
        {"user": {"S": "u"}, "game": {"S": "g"}, "score": {"N": "1"}, "wins": {"N": "1"}},
    ],
)
def test_a_read_continues_after_exactly_the_keys_of_index_and_table(
    lanes: LanesClient, games: str, start: Any
):
    request = {"TableName": games, "IndexName": "keys-by-score", "ExclusiveStartKey": start}
    of_game = {
        "KeyConditionExpression": "game = :game",
        "ExpressionAttributeValues": {":game": {"S": "g"}},
    }
    invalid = "The provided starting key is invalid"
    assert lanes.refused("Query", request | of_game) == ("ValidationException", invalid)
    assert lanes.refused("Scan", request) == (
        "ValidationException",
        f"{invalid}: The provided key element does not match the schema",
    )


def test_all_attributes_are_read_of_an_index_that_holds_them(
    wire: WireClient, games: str, scores: str
):
    answer = query(wire, games, scores, Select="ALL_ATTRIBUTES")
    assert answer["Items"][0].keys() == {"user", "game", "score", "wins", "losses"}


@pytest.mark.parametrize("members", [{}, {"ProjectionExpression": "wins"}])
def test_a_filter_uses_attributes_of_the_index(wire: WireClient, games: str, members: Any):
    request = {
        "TableName": games,
        "IndexName": "some-by-score",
        "KeyConditionExpression": "game = :game",
        "FilterExpression": "losses = :game",
        "ExpressionAttributeValues": {":game": {"S": "g"}},
        **members,
    }
    assert wire.refused("Query", request) == (
        "ValidationException",
        (
            f"{INVALID}Secondary index some-by-score does not project one or more filter "
            "attributes: [losses]"
        ),
    )


@differs_from_dynamodb_local("filters whole items")
@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("losses = :two", 0),
        ("NOT losses = :two", 3),
        ("attribute_not_exists(losses)", 3),
        ("losses = :two OR wins = :one", 3),
        ("losses = :two AND wins = :one", 0),
    ],
)
def test_a_scans_filter_sees_the_projected_attributes(
    lanes: LanesClient, games: str, scores: str, condition: str, count: int
):
    request: dict[str, Any] = {
        "TableName": games,
        "IndexName": "some-by-score",
        "FilterExpression": f"game = :game AND ({condition})",
        "ExpressionAttributeValues": {
            name: value
            for name, value in ((":two", {"N": "2"}), (":one", {"N": "1"}))
            if name in condition
        }
        | {":game": {"S": scores}},
    }
    answer = lanes("Scan", request)
    assert answer["Count"] == count
    assert all(item.keys() == {"user", "game", "score", "wins"} for item in answer["Items"])


@differs_from_dynamodb_local("filters whole items")
def test_a_legacy_filter_of_a_scan_sees_the_projected_attributes(
    wire: WireClient, games: str, scores: str
):
    of_game = {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": scores}]}
    request = {"TableName": games, "IndexName": "some-by-score"}
    missing = {"game": of_game, "losses": {"ComparisonOperator": "NULL"}}
    assert wire("Scan", request | {"ScanFilter": missing})["Count"] == 3
    there = {"game": of_game, "losses": {"ComparisonOperator": "NOT_NULL"}}
    assert wire("Scan", request | {"ScanFilter": there})["Count"] == 0


def test_a_filter_may_name_the_tables_key_but_not_the_indexs(
    wire: WireClient, games: str, scores: str
):
    answer = query(
        wire,
        games,
        scores,
        FilterExpression="#user = :user",
        ExpressionAttributeNames={"#user": "user"},
        ExpressionAttributeValues={":user": {"S": "103"}},
    )
    assert users(answer) == ["103"]
    request = {
        "TableName": games,
        "IndexName": "by-score",
        "KeyConditionExpression": "game = :game",
        "FilterExpression": "score = :n",
        "ExpressionAttributeValues": {":game": {"S": "g"}, ":n": {"N": "1"}},
    }
    assert wire.refused("Query", request) == (
        "ValidationException",
        (
            "Filter Expression can only contain non-primary key attributes: "
            "Primary key attribute: score"
        ),
    )


@differs_from_dynamodb_local("other words")
def test_a_start_key_of_another_partition_is_refused(wire: WireClient, games: str):
    request = {
        "TableName": games,
        "IndexName": "by-score",
        "KeyConditionExpression": "game = :game",
        "ExpressionAttributeValues": {":game": {"S": "g"}},
        "ExclusiveStartKey": {"user": {"S": "u"}, "game": {"S": "other"}, "score": {"N": "1"}},
    }
    assert wire.refused("Query", request) == (
        "ValidationException",
        "The provided starting key is outside query boundaries based on provided conditions",
    )


def test_a_query_costs_the_index(wire: WireClient, games: str, scores: str):
    answer = query(wire, games, scores, ReturnConsumedCapacity="INDEXES")
    capacity = answer["ConsumedCapacity"]
    assert capacity["CapacityUnits"] == 0.5
    assert capacity["GlobalSecondaryIndexes"]["by-score"]["CapacityUnits"] == 0.5
    assert capacity["Table"]["CapacityUnits"] == 0
