"""S94, S95, S97: global secondary indexes follow the writes to their table."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.rules.global_indexes.game_scores import (
    GAME_TITLE,
    Item,
    entries,
    eventually,
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
    value,
)
from tests.support.clients.clients import WireClient
from tests.support.servers.server import running_server

COMET = "Comet Quest"
USERS = [f"u{n}" for n in range(8)]
GAMES = [f"g{n}" for n in range(4)]


@pytest.fixture(scope="module")
def lagging() -> Iterator[WireClient]:
    """A server whose global indexes stay two seconds behind."""
    with (
        running_server("--gsi-lag", "fixed:2") as server,
        closing(WireClient(server.endpoint)) as wire,
    ):
        yield wire


def random_score(chance: random.Random) -> Item:
    """A random item; each attribute that an index uses may be missing."""
    others: dict[str, str | int] = {}
    if chance.random() < 0.6:
        others["Country"] = chance.choice(["BR", "FR"])
    if chance.random() < 0.6:
        others["Wins"] = chance.randrange(3)
    top = chance.choice([None, 1, 2, 3])
    return score(chance.choice(USERS), chance.choice(GAMES), top, **others)


def random_write(client, name: str, chance: random.Random) -> None:
    """A put, update, delete or batch of them."""
    kind = chance.choice(["put", "put", "update", "update", "delete", "batch"])
    item = random_score(chance)
    if kind == "put":
        client.put_item(TableName=name, Item=item)
    elif kind == "delete":
        client.delete_item(TableName=name, Key=key(item))
    elif kind == "update":
        names = ("TopScore", "Country", "Wins")
        changed = [f"{n} = :{n}" for n in names if n in item]
        removed = [n for n in names if n not in item]
        clauses = ["SET " + ", ".join(changed)] if changed else []
        clauses += ["REMOVE " + ", ".join(removed)] if removed else []
        values = {f":{n}": item[n] for n in names if n in item}
        client.update_item(
            TableName=name,
            Key=key(item),
            UpdateExpression=" ".join(clauses),
            **({"ExpressionAttributeValues": values} if values else {}),
        )
    else:
        of_key = {str(key(item)): item for item in (random_score(chance) for _ in range(6))}
        requests = [
            {"PutRequest": {"Item": item}}
            if chance.random() < 0.6
            else {"DeleteRequest": {"Key": key(item)}}
            for item in of_key.values()
        ]
        client.batch_write_item(RequestItems={name: requests})


def rebuilt(items: list[Item], keys: set[str], held: set[str] | None) -> list[Item]:
    """The expected entries of an index; if ``held`` is None, they have all attributes."""
    return in_order(
        item if held is None else {n: v for n, v in item.items() if n in keys | held}
        for item in items
        if keys <= item.keys()
    )


def in_order(items) -> list[Item]:
    return sorted(items, key=lambda item: (item["UserId"]["S"], item["GameTitle"]["S"]))


def test_s94_an_index_follows_every_kind_of_write_to_its_table(client, wire):
    """A thousand random writes; then each index has the entries of the table's items."""
    chance = random.Random(94)
    by_country = global_index("ByCountry", "Country", "GameTitle", include=("Wins",))
    by_wins = global_index("ByWins", "Wins", projection="KEYS_ONLY")
    indexes = (game_title_index(), by_country, by_wins)
    with scores_table(
        wire, *indexes, keys=("UserId:S", "GameTitle:S", "TopScore:N", "Country:S", "Wins:N")
    ) as name:
        for _ in range(1_000):
            random_write(client, name, chance)

        items = client.scan(TableName=name, ConsistentRead=True)["Items"]
        keys = {"UserId", "GameTitle"}
        for index, wanted in (
            (GAME_TITLE, rebuilt(items, keys | {"TopScore"}, None)),
            ("ByCountry", rebuilt(items, keys | {"Country"}, {"Wins"})),
            ("ByWins", rebuilt(items, keys | {"Wins"}, set())),
        ):
            assert 0 < len(wanted) < len(items)
            eventually(
                lambda index=index: in_order(client.scan(TableName=name, IndexName=index)["Items"]),
                lambda found, wanted=wanted: found == wanted,
            )


@pytest.mark.ours_alone("the lag of an index is an option of the server")
def test_s94_a_write_does_not_wait_for_its_indexes(lagging):
    item = score("1", COMET, 7)
    with scores_table(lagging) as name:
        lagging("PutItem", {"TableName": name, "Item": item})
        request = query_of(name, where={"GameTitle": COMET})
        at_once = lagging("Query", request)["Items"]
        in_table = lagging("GetItem", {"TableName": name, "Key": key(item)})["Item"]
        later = eventually(lambda: lagging("Query", request)["Items"], bool)

    assert at_once == []
    assert in_table == item
    assert later == [item]


def test_s94_no_request_writes_to_an_index_directly(wire):
    """A write cannot name an index, either as its table or in another member."""
    with scores_table(wire) as name:
        item = score("1", COMET, 7)
        refused = wire.refused("PutItem", {"TableName": GAME_TITLE, "Item": item})
        wire("PutItem", {"TableName": name, "IndexName": GAME_TITLE, "Item": item})
        written = wire("GetItem", {"TableName": name, "Key": key(item)})["Item"]

    assert refused.type == "ResourceNotFoundException"
    assert written == item


WRONG = {
    "type": {"S": "7"},
    "set": {"NS": ["7"]},
    "null": {"NULL": True},
}


@pytest.mark.differs_from_dynamodb_local("its messages name neither attribute nor index")
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("operation", ["put_item", "update_item", "batch_write_item"])
def test_s95_an_index_key_of_another_type_refuses_the_write(client, wire, operation, wrong):
    item = score("1", COMET) | {"TopScore": wrong}
    with scores_table(wire) as name:
        requests = {
            "put_item": {"TableName": name, "Item": item},
            "update_item": {
                "TableName": name,
                "Key": key(item),
                "UpdateExpression": "SET TopScore = :top",
                "ExpressionAttributeValues": {":top": wrong},
            },
            "batch_write_item": {
                "RequestItems": {
                    name: [
                        {"PutRequest": {"Item": score("2", COMET, 1)}},
                        {"PutRequest": {"Item": item}},
                    ]
                }
            },
        }

        with pytest.raises(client.exceptions.ClientError) as refused:
            getattr(client, operation)(**requests[operation])
        kept = client.scan(TableName=name, ConsistentRead=True)["Items"]

    assert refused.value.response["Error"]["Code"] == "ValidationException"
    assert "TopScore" in refused.value.response["Error"]["Message"]
    assert kept == []


@pytest.mark.parametrize("operation", ["put", "update"])
def test_s97_an_item_without_the_sort_key_is_written_and_not_in_the_index(client, wire, operation):
    without = score("1", COMET, Wins=3)
    with scores_table(wire) as name:
        if operation == "put":
            put_all(client, name, [without])
        else:
            client.update_item(
                TableName=name,
                Key=key(without),
                UpdateExpression="SET Wins = :three",
                ExpressionAttributeValues={":three": value(3)},
            )
        in_index = settled_entries(client, name, score("1", "marker", 1))
        got = client.get_item(TableName=name, Key=key(without), ConsistentRead=True)["Item"]
        put_all(client, name, [score("1", COMET, 5)])
        entries(client, name, 2)
        of_game = query(client, name, where={"GameTitle": COMET})["Items"]

    assert got == without
    assert in_index == []
    assert texts(of_game, "TopScore") == ["5"]
