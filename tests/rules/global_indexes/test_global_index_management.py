"""S162-S167, S174-S178, S199-S202, S207, S208: creating, adding and deleting global indexes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.rules.global_indexes.game_scores import (
    GAME_TITLE,
    KEYS,
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
from tests.rules.global_indexes.online_index import (
    adding,
    deleting,
    states,
    throughput_of,
    updating,
)
from tests.support.clients.clients import WireClient
from tests.support.servers.server import running_server
from tests.support.tables.tables import (
    definition,
    local_index,
    table,
    unique_name,
    wait_until_active,
    wait_until_indexes_active,
)

COMET = "Comet Quest"
PROVISIONED = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": provisioned(5, 5)}
AN_HOUR = ("--table-transition-seconds", "3600")


@contextmanager
def serving(data_dir: Path, *options: str) -> Iterator[WireClient]:
    """A client of a server on that data directory.

    With the options ``AN_HOUR``, changes of indexes stay in progress. Without them, changes
    complete immediately.
    """
    with (
        running_server(*options, data_dir=data_dir) as server,
        closing(WireClient(server.endpoint)) as wire,
    ):
        yield wire
        assert server.stop() == 0, server.log


slowly = pytest.mark.ours_alone("how long an index takes to change is an option of the server")


def refusal_of_definition(wire: WireClient, *keys: str, **members: Any) -> str:
    """The message of the ValidationException that refuses the table."""
    refusal = wire.refused("CreateTable", definition(*keys, **members))
    assert refusal.type == "ValidationException"
    return refusal.message or ""


# -- indexes of a new table -------------------------------------------------------------------


@pytest.mark.differs_from_dynamodb_local("its message has no number")
def test_s162_a_table_is_created_with_up_to_twenty_indexes(client, wire):
    keys = (*KEYS[:2], *(f"k{n}:N" for n in range(21)))
    indexes = [global_index(f"index-{n}", f"k{n}") for n in range(21)]
    numbers = {f"k{n}": n for n in range(20)}

    with scores_table(wire, *indexes[:20], keys=keys[:-1]) as name:
        put_all(client, name, [score("1", COMET, **numbers)])
        for n in range(20):
            entries(client, name, 1, f"index-{n}")
        described = wait_until_active(wire, name)["GlobalSecondaryIndexes"]
    message = refusal_of_definition(wire, *keys, GlobalSecondaryIndexes=indexes)

    assert {index["IndexName"] for index in described} == {f"index-{n}" for n in range(20)}
    assert "20" in message


@pytest.mark.parametrize(
    ("index_keys", "where"),
    [
        (("TopScore", "TopScoreDateTime"), {"TopScore": 7}),
        (("GameTitle", "UserId"), {"GameTitle": COMET}),
        (("GameTitle", "TopScore"), {"GameTitle": COMET}),
        (("TopScore", "UserId"), {"TopScore": 7}),
        (("UserId", "GameTitle"), {"UserId": "1"}),
        (("UserId",), {"UserId": "1"}),
    ],
    ids=["no key of the table", "inverted", "partition", "sort", "the same", "partition alone"],
)
def test_s163_the_key_of_an_index_may_use_key_attributes_of_the_table_or_others(
    client, wire, index_keys, where
):
    every_key = (*KEYS, "TopScoreDateTime:S")
    keys = (*KEYS[:2], *(k for k in every_key[2:] if k.split(":")[0] in index_keys))
    found = score("1", COMET, 7, TopScoreDateTime="2026-01-01")
    other = score("2", "Alien", 8, TopScoreDateTime="2026-01-02")
    with scores_table(wire, global_index("Index", *index_keys), keys=keys) as name:
        put_all(client, name, [found, other])
        entries(client, name, 2, "Index")

        items = query(client, name, "Index", where=where)["Items"]

    assert items == [found]


@pytest.mark.parametrize("part", ["partition", "sort"])
@pytest.mark.parametrize("type_name", ["M", "L", "SS", "NS", "BS", "BOOL", "NULL"])
def test_s164_the_type_of_a_key_attribute_is_neither_a_document_nor_a_set(wire, type_name, part):
    index = global_index("Index", *(("x",) if part == "partition" else ("GameTitle", "x")))

    refusal_of_definition(wire, *KEYS[:2], f"x:{type_name}", GlobalSecondaryIndexes=[index])


@pytest.mark.parametrize("projection", ["INCLUDE", "ALL"])
def test_s165_attributes_of_any_type_can_be_projected(client, wire, projection):
    values = {
        "s": {"S": "text"},
        "n": {"N": "-1.5"},
        "b": {"B": b"\x00\xff"},
        "bool": {"BOOL": False},
        "null": {"NULL": True},
        "m": {"M": {"a": {"L": [{"M": {}}]}}},
        "l": {"L": [{"N": "1"}, {"S": ""}]},
        "ss": {"SS": ["a", "b"]},
        "ns": {"NS": ["1", "2"]},
        "bs": {"BS": [b"a", b"b"]},
    }
    include = tuple(values) if projection == "INCLUDE" else ()
    item = score("1", COMET, 7) | values
    with scores_table(wire, game_title_index(include=include)) as name:
        put_all(client, name, [item])

        found = entries(client, name, 1)

    assert found == [item]


@pytest.mark.differs_from_dynamodb_local("it answers 500 to an index added without throughput")
def test_s166_an_index_of_a_provisioned_table_needs_throughput_of_its_own(wire):
    without = game_title_index()
    given = game_title_index(throughput=(2, 3))

    message = refusal_of_definition(wire, *KEYS, GlobalSecondaryIndexes=[without], **PROVISIONED)
    with scores_table(wire, given, **PROVISIONED) as name:
        [described] = wait_until_active(wire, name)["GlobalSecondaryIndexes"]
        by_score = adding(name, "TopScore:N", global_index("ByScore", "TopScore"))
        refused_later = wire.refused("UpdateTable", by_score)

    assert GAME_TITLE in message
    assert throughput_of(described) == (2, 3)
    assert refused_later.type == "ValidationException"


@pytest.mark.differs_from_dynamodb_local("it takes throughput for indexes of an on-demand table")
def test_s167_an_index_has_the_billing_mode_of_its_table(wire):
    given = game_title_index(throughput=(2, 3))

    refusal_of_definition(wire, *KEYS, GlobalSecondaryIndexes=[given])
    with scores_table(wire) as on_demand:
        [of_on_demand] = wait_until_active(wire, on_demand)["GlobalSecondaryIndexes"]
    with scores_table(wire, given, **PROVISIONED) as name:
        [of_provisioned] = wait_until_active(wire, name)["GlobalSecondaryIndexes"]

    assert throughput_of(of_on_demand) == (0, 0)
    assert throughput_of(of_provisioned) == (2, 3)


# -- DescribeTable ----------------------------------------------------------------------------


def test_s174_the_table_is_described_with_all_its_indexes_and_their_status(wire):
    indexes = [game_title_index(), global_index("ByScore", "TopScore", include=("Wins",))]
    with scores_table(wire, *indexes) as name:
        described = wait_until_active(wire, name)
        shown = {index["IndexName"]: index for index in described["GlobalSecondaryIndexes"]}

    assert set(shown) == {GAME_TITLE, "ByScore"}
    for index in indexes:
        description = shown[index["IndexName"]]
        assert description["IndexStatus"] == "ACTIVE"
        assert description["KeySchema"] == index["KeySchema"]
        assert description["Projection"] == index["Projection"]
        assert description["IndexArn"] == f"{described['TableArn']}/index/{index['IndexName']}"


@slowly
def test_s175_an_index_is_creating_active_updating_or_deleting(tmp_path):
    """An index can be read in the states ACTIVE and UPDATING only."""
    request = query_of("", where={"GameTitle": COMET})
    made = definition(
        *KEYS, GlobalSecondaryIndexes=[game_title_index(throughput=(1, 1))], **PROVISIONED
    )
    name = made["TableName"]
    seen = []

    def look(wire: WireClient, *, readable: bool) -> None:
        answer = wire.send("Query", request | {"TableName": name})
        assert (answer.status == 200) == readable, (seen, answer.body)
        seen.append(states(wire, name)[GAME_TITLE])

    with serving(tmp_path, *AN_HOUR) as wire:
        wire("CreateTable", made)
        look(wire, readable=False)
    with serving(tmp_path) as wire:
        wait_until_indexes_active(wire, name)
        look(wire, readable=True)
    with serving(tmp_path, *AN_HOUR) as wire:
        wire("UpdateTable", updating(name, GAME_TITLE, 2, 2))
        look(wire, readable=True)
    with serving(tmp_path) as wire:
        wait_until_indexes_active(wire, name)
    with serving(tmp_path, *AN_HOUR) as wire:
        wire("UpdateTable", deleting(name, GAME_TITLE))
        look(wire, readable=False)
    with serving(tmp_path) as wire:
        assert "GlobalSecondaryIndexes" not in wait_until_indexes_active(wire, name)

    assert [status for status, _ in seen] == ["CREATING", "ACTIVE", "UPDATING", "DELETING"]


def test_s176_an_index_is_active_after_its_backfill(client, wire):
    with table(wire, *KEYS[:2]) as name:
        written = put_all(client, name, (score(f"{n}", COMET, n) for n in range(50)))
        answer = wire("UpdateTable", adding(name, "TopScore:N", game_title_index()))
        [answered] = answer["TableDescription"]["GlobalSecondaryIndexes"]
        wait_until_indexes_active(wire, name)
        found = query(client, name, where={"GameTitle": COMET})["Items"]

    assert answered["IndexStatus"] == "CREATING"
    assert found == written


# -- adding an index --------------------------------------------------------------------------


def test_s177_update_table_adds_an_index(client, wire):
    index = global_index("ByScore", "TopScore", "UserId", include=("Wins",), throughput=(3, 4))
    game = game_title_index(throughput=(1, 1))
    with scores_table(wire, game, **PROVISIONED) as name:
        put_all(client, name, [score("1", COMET, 7, Wins=1, Losses=2)])
        wire("UpdateTable", adding(name, "TopScore:N", index))
        described = wait_until_indexes_active(wire, name)["GlobalSecondaryIndexes"]
        found = entries(client, name, 1, "ByScore")

    [shown] = [each for each in described if each["IndexName"] == "ByScore"]
    assert len(described) == 2
    assert shown["KeySchema"] == index["KeySchema"]
    assert shown["Projection"] == index["Projection"]
    assert throughput_of(shown) == (3, 4)
    assert found == [score("1", COMET, 7, Wins=1)]


@pytest.mark.parametrize("taken", ["local", GAME_TITLE])
def test_s177_the_name_of_an_index_is_unique_among_all_indexes_of_its_table(wire, taken):
    members = {
        "indexes": (local_index("local", "UserId", "TopScore"),),
        "GlobalSecondaryIndexes": [game_title_index()],
    }
    with table(wire, *KEYS, **members) as name:
        refusal = wire.refused(
            "UpdateTable", adding(name, "TopScore:N", global_index(taken, "TopScore"))
        )
        wait_until_indexes_active(wire, name)

    assert refusal.type == "ValidationException"


@pytest.mark.parametrize("missing", ["KeySchema", "Projection", "IndexName"])
def test_s177_an_index_with_a_missing_required_member_is_refused(wire, missing):
    index = global_index("ByScore", "TopScore")
    del index[missing]
    with table(wire, *KEYS[:2]) as name:
        refusal = wire.refused("UpdateTable", adding(name, "TopScore:N", index))
        described = wait_until_active(wire, name)

    assert refusal.type == "ValidationException"
    assert "GlobalSecondaryIndexes" not in described


def test_s178_one_request_creates_at_most_one_index(wire):
    with table(wire, *KEYS[:2]) as name:
        request = adding(name, "TopScore:N", game_title_index())
        request["GlobalSecondaryIndexUpdates"].append(
            {"Create": global_index("ByScore", "TopScore")}
        )
        refusal = wire.refused("UpdateTable", request)
        described = wait_until_active(wire, name)

    assert refusal.type == "LimitExceededException"
    assert "GlobalSecondaryIndexes" not in described


# -- deleting an index ------------------------------------------------------------------------


def test_s199_one_request_deletes_at_most_one_index(client, wire):
    indexes = (game_title_index(), global_index("ByScore", "TopScore"))
    with scores_table(wire, *indexes) as name:
        put_all(client, name, [score("1", COMET, 7)])
        both = deleting(name, GAME_TITLE, "ByScore")
        refused = wire.refused("UpdateTable", both)
        wire("UpdateTable", deleting(name, GAME_TITLE))
        eventually(lambda: set(states(wire, name)), lambda names: names == {"ByScore"})
        gone = wire.refused("Query", query_of(name, where={"GameTitle": COMET}))
        kept = entries(client, name, 1, "ByScore")
        missing = wire.refused("UpdateTable", deleting(name, GAME_TITLE))

    assert refused.type == "LimitExceededException"
    assert gone.type == "ValidationException"
    assert kept == [score("1", COMET, 7)]
    assert missing.type == "ResourceNotFoundException"


def test_s199_a_recreated_index_holds_the_tables_present_items(client, wire):
    with scores_table(wire) as name:
        put_all(client, name, [score("1", COMET, 7), score("2", COMET, 8)])
        entries(client, name, 2)
        wire("UpdateTable", deleting(name, GAME_TITLE))
        eventually(lambda: states(wire, name), lambda left: not left)
        client.delete_item(TableName=name, Key={"UserId": {"S": "1"}, "GameTitle": {"S": COMET}})
        put_all(client, name, [score("2", COMET, 9)])
        wire("UpdateTable", adding(name, "TopScore:N", game_title_index()))
        wait_until_indexes_active(wire, name)

        found = query(client, name, where={"GameTitle": COMET})["Items"]

    assert found == [score("2", COMET, 9)]


@slowly
def test_s200_the_table_and_other_indexes_stay_usable_during_a_deletion(tmp_path):
    indexes = (
        game_title_index(throughput=(1, 1)),
        global_index("ByScore", "TopScore", throughput=(1, 1)),
    )
    item = score("1", COMET, 7)
    made = definition(*KEYS, GlobalSecondaryIndexes=list(indexes), **PROVISIONED)
    name = made["TableName"]
    key = {n: item[n] for n in ("UserId", "GameTitle")}
    with serving(tmp_path) as wire:
        wire("CreateTable", made)
        wait_until_indexes_active(wire, name)

    with serving(tmp_path, *AN_HOUR) as wire:
        wire("UpdateTable", deleting(name, GAME_TITLE))
        wire("PutItem", {"TableName": name, "Item": item})
        got = wire("GetItem", {"TableName": name, "Key": key})
        scan = {"TableName": name, "IndexName": "ByScore"}
        found = eventually(lambda: wire("Scan", scan)["Items"], bool)
        wire("UpdateTable", updating(name, "ByScore", 3, 3))
        during = states(wire, name)
    with serving(tmp_path) as wire:
        described = wait_until_indexes_active(wire, name)["GlobalSecondaryIndexes"]

    assert got["Item"] == item
    assert found == [item]
    assert during == {GAME_TITLE: ("DELETING", None), "ByScore": ("UPDATING", None)}
    assert [throughput_of(index) for index in described] == [(3, 3)]


def test_s201_deleting_a_table_deletes_its_indexes(client, wire):
    name = unique_name("scores")
    for _ in range(2):
        with scores_table(wire, name=name) as created:
            assert query(client, created, where={"GameTitle": COMET})["Items"] == []
            put_all(client, created, [score("1", COMET, 7)])
            entries(client, created, 1)
        while wire.send("DescribeTable", {"TableName": name}).status == 200:
            continue
        refusal = wire.refused("Query", query_of(name, where={"GameTitle": COMET}))
        assert refusal.type == "ResourceNotFoundException"


def test_s202_deleting_an_index_costs_nothing(client, wire):
    """Five hundred entries are deleted; the table and the index have one unit each."""
    one = provisioned(1, 1)
    members = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": one}
    with scores_table(wire, game_title_index()) as name:
        for at in range(0, 500, 25):
            scores = (score(f"{n}", COMET, n) for n in range(at, at + 25))
            requests = [{"PutRequest": {"Item": item}} for item in scores]
            client.batch_write_item(RequestItems={name: requests})
        entries(client, name, 500)
        update = {"Update": {"IndexName": GAME_TITLE, "ProvisionedThroughput": one}}
        wire("UpdateTable", members | {"TableName": name, "GlobalSecondaryIndexUpdates": [update]})
        wait_until_indexes_active(wire, name)

        answer = wire("UpdateTable", deleting(name, GAME_TITLE))
        eventually(lambda: states(wire, name), lambda left: not left)
        ask = {"TableName": name, "Item": score("1", COMET, 7), "ReturnConsumedCapacity": "INDEXES"}
        consumed = wire("PutItem", ask)["ConsumedCapacity"]

    assert "ConsumedCapacity" not in answer
    assert consumed == {"TableName": name, "CapacityUnits": 1.0, "Table": {"CapacityUnits": 1.0}}


# -- changing an index ------------------------------------------------------------------------


@pytest.mark.differs_from_dynamodb_local("it shows a new index ACTIVE at once")
def test_s207_an_index_created_with_its_table_is_never_described_as_backfilling(client, wire):
    request = definition(*KEYS, GlobalSecondaryIndexes=[game_title_index()])
    name = request["TableName"]
    created = wire("CreateTable", request)["TableDescription"]
    active = wait_until_indexes_active(wire, name)
    put_all(client, name, [score("1", COMET, 7)])
    entries(client, name, 1)
    later = wait_until_indexes_active(wire, name)
    wire("DeleteTable", {"TableName": name})

    for description in (created, active, later):
        [index] = description["GlobalSecondaryIndexes"]
        assert "Backfilling" not in index
    assert created["GlobalSecondaryIndexes"][0]["IndexStatus"] == "CREATING"


@pytest.mark.differs_from_dynamodb_local("it answers 500 to a mode without its throughput")
def test_s208_a_change_of_billing_mode_changes_the_indexes_too(client, wire):
    with scores_table(wire) as name:
        put_all(client, name, [score("1", COMET, 7)])
        to_provisioned = {"TableName": name, **PROVISIONED}
        refused = wire.refused("UpdateTable", to_provisioned)
        update = {"Update": {"IndexName": GAME_TITLE, "ProvisionedThroughput": provisioned(2, 3)}}
        wire("UpdateTable", to_provisioned | {"GlobalSecondaryIndexUpdates": [update]})
        as_provisioned = wait_until_indexes_active(wire, name)
        put_all(client, name, [score("2", COMET, 8)])
        wire("UpdateTable", {"TableName": name, "BillingMode": "PAY_PER_REQUEST"})
        as_on_demand = wait_until_indexes_active(wire, name)
        found = entries(client, name, 2)

    assert refused.type == "ValidationException"
    assert throughput_of(as_provisioned) == (5, 5)
    assert [throughput_of(i) for i in as_provisioned["GlobalSecondaryIndexes"]] == [(2, 3)]
    assert throughput_of(as_on_demand) == (0, 0)
    assert [throughput_of(i) for i in as_on_demand["GlobalSecondaryIndexes"]] == [(0, 0)]
    assert sorted(texts(found, "UserId")) == ["1", "2"]
