"""S179-S191, S196, S203-S206, A12: a global secondary index is added to a table in use.

On one server, an index stays in its first phase, because allocation takes an hour. On others, an
index stays in its second phase, because writes reach the index with a delay.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from itertools import count
from threading import Barrier, Event
from typing import Any, Final

import pytest

from tests.rules.global_indexes.game_scores import (
    GAME_TITLE,
    KEYS,
    Item,
    entries,
    eventually,
    game_title_index,
    global_index,
    key,
    provisioned,
    put_all,
    query,
    query_of,
    score,
    scores_table,
    texts,
)
from tests.rules.global_indexes.online_index import (
    ACTIVE,
    PHASE_1,
    PHASE_2,
    State,
    adding,
    deleting,
    states,
    throughput_of,
    updating,
)
from tests.support.clients.clients import WireClient, boto3_client
from tests.support.servers.server import PROJECT, Server, running_server
from tests.support.tables.tables import (
    definition,
    table,
    wait_until_active,
    wait_until_indexes_active,
)

COMET = "Comet Quest"
AN_HOUR = "3600"
LAG_SECONDS = "2"
# The backfill of OTHERS items takes longer than one write, and less time than WRITES_BEHIND writes.
OTHERS = 500
WRITES_BEHIND = 100
PROVISIONED = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": provisioned(5, 5)}
ADDED = game_title_index()
held = pytest.mark.ours_alone("how long an index stays in a phase is an option of the server")


@contextmanager
def wire_to(*options: str) -> Iterator[WireClient]:
    """A client of a server with these options."""
    with running_server(*options) as server, closing(WireClient(server.endpoint)) as wire:
        yield wire


@pytest.fixture(scope="module")
def allocating() -> Iterator[WireClient]:
    """A server on which an index never leaves its first phase."""
    with wire_to("--index-allocation-seconds", AN_HOUR) as wire:
        yield wire


@pytest.fixture(scope="module")
def filling() -> Iterator[WireClient]:
    """A server on which an index never leaves its second phase."""
    with wire_to("--gsi-lag", f"fixed:{AN_HOUR}") as wire:
        yield wire


@pytest.fixture(scope="module")
def lagging() -> Iterator[WireClient]:
    """A server on which an index stays in its second phase for two seconds."""
    with wire_to("--gsi-lag", f"fixed:{LAG_SECONDS}") as wire:
        yield wire


def other_index(**members: Any) -> dict[str, Any]:
    """The definition of ByUser, an index that is created with the table."""
    return global_index("ByUser", "GameTitle", "UserId", **members)


def begin(wire: WireClient, *, others: int = 0, **members: Any) -> str:
    """A table with ten scores and the index ByUser, to which GameTitleIndex is being added.

    ``others`` are more scores, in another game.
    """
    units = (1, 1) if "BillingMode" in members else None
    request = definition(
        *KEYS[:2], GlobalSecondaryIndexes=[other_index(throughput=units)], **members
    )
    name: str = request["TableName"]
    wire("CreateTable", request)
    wait_until_indexes_active(wire, name)
    for n in range(10):
        wire("PutItem", {"TableName": name, "Item": score(f"{n}", COMET, n)})
    for at in range(0, others, 25):
        items = (score(f"{n}", "Alien", n) for n in range(at, at + 25))
        requests = [{"PutRequest": {"Item": item}} for item in items]
        wire("BatchWriteItem", {"RequestItems": {name: requests}})
    wire("UpdateTable", adding(name, "TopScore:N", game_title_index(throughput=units)))
    return name


def begin_filling(wire: WireClient, **members: Any) -> str:
    """A table as ``begin`` creates it, whose index stays in its second phase.

    The index waits for a write that was made during its backfill. If the backfill ends before the
    first write, the function retries with another table.
    """
    while True:
        name = begin(wire, others=OTHERS, **members)
        if held_by_writes(wire, name):
            return name


def held_by_writes(wire: WireClient, name: str) -> bool:
    """Write until the index is ACTIVE, or stays in its second phase after the backfill's end.

    Returns whether the index waits for a write, because it is in its second phase.
    """
    ended = WRITES_BEHIND
    for n in count():
        # Each put changes the item, because the index does not wait for a put without a change.
        wire("PutItem", {"TableName": name, "Item": score("0", COMET, 0, Wins=n)})
        state = states(wire, name)[GAME_TITLE]
        if state == PHASE_1:
            ended = n + WRITES_BEHIND
        elif state == ACTIVE:
            return False
        elif n > ended:
            return True
    raise AssertionError


def refusals(wire: WireClient, name: str, *requests: dict[str, Any]) -> list[str]:
    """The errors that refuse UpdateTable requests."""
    return [wire.refused("UpdateTable", {"TableName": name, **ask}).type for ask in requests]


def is_in_use(wire: WireClient, name: str) -> None:
    """Send requests that the table must accept in every phase."""
    item = score("in use", COMET, 5)
    wire("PutItem", {"TableName": name, "Item": item})
    got = wire("GetItem", {"TableName": name, "Key": key(item), "ConsistentRead": True})
    assert got["Item"] == item
    wire(
        "UpdateItem",
        {
            "TableName": name,
            "Key": key(item),
            "UpdateExpression": "SET Wins = :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        },
    )
    assert wire("Query", query_of(name, None, where={"UserId": "in use"}))["Count"] == 1
    found = wire("Scan", {"TableName": name, "ConsistentRead": True})["Items"]
    assert item | {"Wins": {"N": "1"}} in found
    wire("BatchWriteItem", {"RequestItems": {name: [{"DeleteRequest": {"Key": key(item)}}]}})
    assert "Item" not in wire("GetItem", {"TableName": name, "Key": key(item)})


@held
@pytest.mark.parametrize("phase", [PHASE_1, PHASE_2], ids=["allocating", "filling"])
def test_s179_the_table_stays_available_while_an_index_is_built(allocating, filling, phase):
    wire = allocating if phase == PHASE_1 else filling
    name = begin(wire) if phase == PHASE_1 else begin_filling(wire)

    is_in_use(wire, name)

    assert states(wire, name)[GAME_TITLE] == phase


@held
@pytest.mark.parametrize("phase", [PHASE_1, PHASE_2], ids=["allocating", "filling"])
def test_s180_an_index_is_not_read_before_it_is_active(allocating, filling, phase):
    wire = allocating if phase == PHASE_1 else filling
    name = begin(wire) if phase == PHASE_1 else begin_filling(wire)

    queried = wire.refused("Query", query_of(name, where={"GameTitle": COMET}))
    scanned = wire.refused("Scan", {"TableName": name, "IndexName": GAME_TITLE})

    assert queried.type == scanned.type == "ValidationException"
    assert states(wire, name)[GAME_TITLE] == phase


@held
def test_s182_in_its_first_phase_an_index_is_creating_and_not_backfilling(allocating):
    name = begin(allocating)

    assert states(allocating, name) == {"ByUser": ACTIVE, GAME_TITLE: PHASE_1}


@held
def test_s183_the_first_phase_refuses_some_changes_and_allows_others(allocating):
    name = begin(allocating, **PROVISIONED)
    another = adding(name, "TopScore:N", global_index("Another", "TopScore", throughput=(1, 1)))

    refused = refusals(
        allocating,
        name,
        deleting(name, GAME_TITLE),
        updating(name, GAME_TITLE, 2, 2),
        {"ProvisionedThroughput": provisioned(6, 6)},
        another,
        deleting(name, "ByUser"),
    )
    table_refused = allocating.refused("DeleteTable", {"TableName": name})
    allocating("UpdateTable", updating(name, "ByUser", 3, 4))
    eventually(lambda: states(allocating, name)["ByUser"], lambda state: state == ACTIVE)
    described = allocating("DescribeTable", {"TableName": name})["Table"]

    in_use, limit = "ResourceInUseException", "LimitExceededException"
    assert refused == [in_use, in_use, in_use, limit, limit]
    assert table_refused.type == in_use
    assert throughput_of(described) == (5, 5)
    units = {i["IndexName"]: throughput_of(i) for i in described["GlobalSecondaryIndexes"]}
    assert units == {"ByUser": (3, 4), GAME_TITLE: (1, 1)}
    assert states(allocating, name)[GAME_TITLE] == PHASE_1


@pytest.mark.parametrize(
    ("projection", "held_names"),
    [
        ({"projection": "KEYS_ONLY"}, {"UserId", "GameTitle", "TopScore"}),
        ({"include": ("Wins",)}, {"UserId", "GameTitle", "TopScore", "Wins"}),
        ({}, {"UserId", "GameTitle", "TopScore", "Wins", "Losses"}),
    ],
    ids=["KEYS_ONLY", "INCLUDE", "ALL"],
)
@pytest.mark.differs_from_dynamodb_local("it answers 500 to some requests after an index was added")
def test_s184_the_projected_attributes_of_every_item_are_written(
    client, wire, projection, held_names
):
    with table(wire, *KEYS[:2]) as name:
        scores = [score(f"{n}", f"g{n % 7}", n, Wins=n, Losses=n) for n in range(400)]
        batch_put(client, name, scores)
        put_all(client, name, [score("none", COMET)])
        wire("UpdateTable", adding(name, "TopScore:N", game_title_index(**projection)))
        wait_until_indexes_active(wire, name)

        found = client.scan(TableName=name, IndexName=GAME_TITLE)["Items"]

    wanted = [{n: v for n, v in item.items() if n in held_names} for item in scores]
    assert in_order(found) == in_order(wanted)


def batch_put(client: Any, name: str, items: list[Item]) -> None:
    for at in range(0, len(items), 25):
        requests = [{"PutRequest": {"Item": item}} for item in items[at : at + 25]]
        client.batch_write_item(RequestItems={name: requests})


def in_order(items: list[Item]) -> list[Item]:
    return sorted(items, key=lambda item: (item["UserId"]["S"], item["GameTitle"]["S"]))


# The time in which each thread has begun.
_BEGIN_SECONDS: Final = 30.0


class Writers:
    """Threads that put, change and delete the scores of a table at random until stopped."""

    def __init__(self, endpoint: str, name: str, users: int) -> None:
        self._endpoint = endpoint
        self._name = name
        self._users = users
        self._enough = Event()

    @contextmanager
    def writing(self, threads: int = 3) -> Iterator[None]:
        """Write within the context, which begins after the first write of each thread."""
        begun = Barrier(threads + 1, timeout=_BEGIN_SECONDS)
        with ThreadPoolExecutor(threads) as pool:
            writing = [pool.submit(self._write, seed, begun) for seed in range(threads)]
            try:
                begun.wait()
                yield
            finally:
                self._enough.set()
            for written in writing:
                written.result()

    def _write(self, seed: int, begun: Barrier) -> None:
        chance = random.Random(seed)
        with closing(boto3_client(self._endpoint)) as client:
            self._write_one(client, chance)
            begun.wait()
            while not self._enough.is_set():
                self._write_one(client, chance)

    def _write_one(self, client: Any, chance: random.Random) -> None:
        item = score(
            f"{chance.randrange(self._users)}",
            COMET,
            chance.randrange(1_000),
            Country=chance.choice(["BR", "FR"]),
        )
        match chance.choice(["put", "without", "delete", "change"]):
            case "put":
                client.put_item(TableName=self._name, Item=item)
            case "without":
                client.put_item(TableName=self._name, Item=score(item["UserId"]["S"], COMET))
            case "delete":
                client.delete_item(TableName=self._name, Key=key(item))
            case "change":
                client.update_item(
                    TableName=self._name,
                    Key=key(item),
                    UpdateExpression="SET TopScore = :top, Country = :country ADD Wins :one",
                    ExpressionAttributeValues={
                        ":top": item["TopScore"],
                        ":country": item["Country"],
                        ":one": {"N": "1"},
                    },
                )


def whole(client: Any, name: str, **members: Any) -> list[Item]:
    """All items of a table or entries of an index, in order."""
    pages = client.get_paginator("scan").paginate(TableName=name, **members)
    return in_order([item for page in pages for item in page["Items"]])


@pytest.mark.differs_from_dynamodb_local("it answers 500 to some writes while an index is added")
def test_s185_writes_during_the_backfill_are_neither_lost_nor_reverted(client, wire, endpoint):
    """Three threads write before, during and after the backfill; then the index is compared."""
    users = 1_500
    with table(wire, *KEYS[:2]) as name:
        batch_put(client, name, [score(f"{n}", COMET, n) for n in range(users)])
        with Writers(endpoint, name, users).writing():
            wire("UpdateTable", adding(name, "TopScore:N", ADDED))
            wait_until_indexes_active(wire, name)
        items = whole(client, name, ConsistentRead=True)
        wanted = [item for item in items if "TopScore" in item]

        assert 0 < len(wanted) < len(items)
        eventually(lambda: whole(client, name, IndexName=GAME_TITLE), lambda found: found == wanted)


@held
def test_s185_items_deleted_during_the_backfill_are_not_in_the_index(lagging):
    """The backfill puts an entry that a pending deletion removes."""
    name = begin_filling(lagging)
    lagging("DeleteItem", {"TableName": name, "Key": key(score("1", COMET))})
    lagging("PutItem", {"TableName": name, "Item": score("2", COMET, 222)})
    lagging("PutItem", {"TableName": name, "Item": score("3", COMET)})
    lagging("PutItem", {"TableName": name, "Item": score("new", COMET, 99)})
    while states(lagging, name)[GAME_TITLE] != ACTIVE:
        continue

    wanted = ["0", "2", "4", "5", "6", "7", "8", "9", "new"]
    request = query_of(name, where={"GameTitle": COMET})
    found = eventually(
        lambda: lagging("Query", request)["Items"],
        lambda items: sorted(texts(items, "UserId")) == wanted,
    )
    assert found[-1] == score("2", COMET, 222)


@held
def test_s186_a_backfill_prevents_deleting_the_table_and_allows_new_throughput(filling):
    name = begin_filling(filling, **PROVISIONED)

    refused = filling.refused("DeleteTable", {"TableName": name})
    filling("UpdateTable", {"TableName": name, "ProvisionedThroughput": provisioned(7, 8)})
    wait_until_active(filling, name)
    filling("UpdateTable", updating(name, "ByUser", 3, 4))
    wait_until_active(filling, name)
    filling("UpdateTable", updating(name, GAME_TITLE, 5, 6))
    eventually(lambda: states(filling, name)["ByUser"], lambda state: state == ACTIVE)
    described = filling("DescribeTable", {"TableName": name})["Table"]

    assert refused.type == "ResourceInUseException"
    assert throughput_of(described) == (7, 8)
    units = {i["IndexName"]: throughput_of(i) for i in described["GlobalSecondaryIndexes"]}
    assert units == {"ByUser": (3, 4), GAME_TITLE: (5, 6)}


VIOLATIONS = {
    "wrong type": {"TopScore": {"S": "7"}},
    "document": {"TopScore": {"M": {}}},
    "null": {"TopScore": {"NULL": True}},
}


@pytest.mark.differs_from_dynamodb_local("it can build no index over violations")
def test_s187_after_the_backfill_every_violating_write_is_refused(client, wire):
    with table(wire, *KEYS[:2]) as name:
        for user, violation in VIOLATIONS.items():
            put_all(client, name, [score(user, COMET) | violation])
        wire("UpdateTable", adding(name, "TopScore:N", ADDED))
        wait_until_indexes_active(wire, name)
        for user, violation in VIOLATIONS.items():
            item = score(user, COMET) | violation
            updated = {
                "TableName": name,
                "Key": key(item),
                "UpdateExpression": "SET TopScore = :top",
                "ExpressionAttributeValues": {":top": item["TopScore"]},
            }
            put_refused = wire.refused("PutItem", {"TableName": name, "Item": item})
            update_refused = wire.refused("UpdateItem", updated)
            assert put_refused.type == update_refused.type == "ValidationException"
            assert GAME_TITLE in (put_refused.message or "")
        wire("PutItem", {"TableName": name, "Item": score("null", COMET, 7)})
        mended = entries(client, name, 1)

    assert mended == [score("null", COMET, 7)]


@held
def test_s187_before_the_backfill_violating_writes_succeed(allocating):
    name = begin(allocating)
    item = score("1", COMET) | VIOLATIONS["wrong type"]

    allocating("PutItem", {"TableName": name, "Item": item})

    got = allocating("GetItem", {"TableName": name, "Key": key(item)})["Item"]
    assert got == item


@held
def test_s187_during_the_backfill_violating_writes_are_refused(filling):
    """DynamoDB refuses some of them and accepts others; this server refuses all."""
    name = begin_filling(filling)
    item = score("1", COMET) | VIOLATIONS["wrong type"]

    refused = filling.refused("PutItem", {"TableName": name, "Item": item})

    assert refused.type == "ValidationException"


def metrics_of(server: Server) -> dict[str, float]:
    """The metrics of a server's only index, by name."""
    found = re.search(r"Metrics on http://(\S+?)/metrics", server.announcement)
    assert found is not None, server.announcement
    with closing(HTTPConnection(found[1], timeout=30)) as connection:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    lines = re.findall(r"^dynactor_(\w+)\{[^}]*\} (\S+)$", text, re.MULTILINE)
    return {name: float(number) for name, number in lines}


@pytest.mark.ours_alone("metrics are this server's own")
def test_s189_a_backfill_takes_write_units_of_the_index_and_no_read_units():
    """60 of 100 items with 3,000 bytes have an entry of 1,500 bytes, two units each."""
    one = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": provisioned(1, 1)}
    index = global_index(GAME_TITLE, "GameTitle", "TopScore", include=("Text",), throughput=(1, 1))
    # Wait for the admin port, which the server prints after its address.
    with (
        running_server("--admin-port", "0") as server,
        closing(boto3_client(server.endpoint)) as client,
        closing(WireClient(server.endpoint)) as wire,
        table(wire, *KEYS[:2], **one) as name,
    ):
        others = {"Text": "t" * 1_400, "Rest": "r" * 1_500}
        scored = [score(f"{n:02}", COMET, 7, **others) for n in range(60)]
        batch_put(client, name, scored + [score(f"{n:02}", "none", **others) for n in range(40)])
        wire("UpdateTable", adding(name, "TopScore:N", index))
        wait_until_indexes_active(wire, name)
        metrics = metrics_of(server)
        ask = {"TableName": name, "Key": key(scored[0]), "ReturnConsumedCapacity": "INDEXES"}
        consumed = wire("GetItem", ask)["ConsumedCapacity"]

    assert metrics["online_index_consumed_write_capacity_units_total"] == 60 * 2
    assert metrics["online_index_percentage_progress"] == 100
    assert consumed["CapacityUnits"] == 0.5


BREAKING = {
    "wrong type": ({"N": "7"}, "S"),
    "a set": ({"SS": ["a"]}, "S"),
    "empty string": ({"S": ""}, "S"),
    "too long": ({"S": "x" * 2_049}, "S"),
    "too long in UTF-8": ({"S": "é" * 1_025}, "S"),
    "empty binary": ({"B": b""}, "B"),
    "string for binary": ({"S": "a"}, "B"),
    "string for number": ({"S": "7"}, "N"),
}


@pytest.mark.differs_from_dynamodb_local("it can build no index over violations")
@pytest.mark.parametrize(("broken", "type_name"), BREAKING.values(), ids=BREAKING)
def test_s190_an_invalid_key_value_is_a_violation(client, wire, broken, type_name):
    sound = {"S": {"S": "x" * 2_048}, "N": {"N": "7"}, "B": {"B": b"x" * 2_048}}[type_name]
    with table(wire, *KEYS[:2]) as name:
        put_all(client, name, [score("broken", COMET) | {"Country": broken}])
        put_all(client, name, [score("sound", COMET) | {"Country": sound}])
        index = global_index("ByCountry", "Country")
        wire("UpdateTable", adding(name, f"Country:{type_name}", index))
        wait_until_indexes_active(wire, name)

        found = client.scan(TableName=name, IndexName="ByCountry")["Items"]

    assert texts(found, "UserId") == ["sound"]


@pytest.mark.differs_from_dynamodb_local("it can build no index over violations")
@pytest.mark.parametrize(("size", "found"), [(1_024, ["1"]), (1_025, [])])
def test_s190_a_sort_key_is_too_long_above_1_kb(client, wire, size, found):
    with table(wire, *KEYS[:2]) as name:
        put_all(client, name, [score("1", COMET, Country="x" * size)])
        wire(
            "UpdateTable",
            adding(name, "Country:S", global_index("ByCountry", "GameTitle", "Country")),
        )
        wait_until_indexes_active(wire, name)

        entries_found = client.scan(TableName=name, IndexName="ByCountry")["Items"]

    assert texts(entries_found, "UserId") == found


@pytest.mark.differs_from_dynamodb_local("it can build no index over violations")
def test_s191_violating_items_do_not_stop_the_backfill_and_have_no_entries(client, wire):
    """There are more violations than valid items; the table keeps all items unchanged."""
    violating = [
        score(f"{user} {n}", COMET) | broken
        for user, broken in VIOLATIONS.items()
        for n in range(20)
    ]
    sound = [score(f"{n}", COMET, n) for n in range(10)]
    with table(wire, *KEYS[:2]) as name:
        put_all(client, name, violating + sound)
        wire("UpdateTable", adding(name, "TopScore:N", ADDED))
        described = wait_until_indexes_active(wire, name)
        found = query(client, name, where={"GameTitle": COMET})["Items"]
        kept = whole(client, name, ConsistentRead=True)
        ask = {
            "UpdateExpression": "SET Wins = :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
        client.update_item(TableName=name, Key=key(violating[0]), **ask)

    [index] = described["GlobalSecondaryIndexes"]
    assert index["IndexStatus"] == "ACTIVE"
    assert found == sound
    assert kept == in_order(violating + sound)


@pytest.mark.differs_from_dynamodb_local("its pages of an index count the items")
def test_s196_the_backfill_reads_without_units_of_the_table(client, wire):
    """A table of one read unit, with 2 MB of items: 512 units to read, while reads succeed."""
    one = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": provisioned(1, 1)}
    index = game_title_index(projection="KEYS_ONLY", throughput=(1, 1))
    with table(wire, *KEYS[:2]) as name:
        scores = [score(f"{n}", COMET, n, Text="t" * 20_000) for n in range(100)]
        batch_put(client, name, scores)
        wire("UpdateTable", {"TableName": name, **one})
        wait_until_active(wire, name)
        wire("UpdateTable", adding(name, "TopScore:N", index))
        ask = {"TableName": name, "Key": {n: scores[0][n] for n in ("UserId", "GameTitle")}}
        while states(wire, name)[GAME_TITLE] != ACTIVE:
            assert wire("GetItem", ask)["Item"] == scores[0]
        found = client.scan(TableName=name, IndexName=GAME_TITLE, Select="COUNT")

    assert found["Count"] == 100


@held
def test_s203_backfilling_is_true_in_the_second_phase():
    """Each phase takes so long that a poll sees it."""
    options = ("--index-allocation-seconds", LAG_SECONDS, "--gsi-lag", f"fixed:{LAG_SECONDS}")
    seen = []
    with wire_to(*options) as wire:
        while PHASE_2 not in seen:
            name = begin(wire)
            seen = states_until_active(wire, name)

    assert seen == [PHASE_1, PHASE_2, ACTIVE]


def states_until_active(wire: WireClient, name: str) -> list[State]:
    """The states of GameTitleIndex, while a score is written repeatedly."""
    seen: list[State] = []
    numbers = count()
    while ACTIVE not in seen:
        state = states(wire, name)[GAME_TITLE]
        if state not in seen:
            seen.append(state)
        wire("PutItem", {"TableName": name, "Item": score("0", COMET, 0, Wins=next(numbers))})
    return seen


@held
def test_s204_an_index_with_new_throughput_during_its_backfill_is_updating_and_backfilling():
    """On this server, a change of throughput takes half a second."""
    with wire_to("--gsi-lag", f"fixed:{AN_HOUR}", "--table-transition-seconds", "0.5") as wire:
        name = begin_filling(wire, **PROVISIONED)
        answer = wire("UpdateTable", updating(name, GAME_TITLE, 5, 6))
        answered = {i["IndexName"]: i for i in answer["TableDescription"]["GlobalSecondaryIndexes"]}
        at_once = states(wire, name)[GAME_TITLE]
        refused = wire.refused("Query", query_of(name, where={"GameTitle": COMET}))
        eventually(lambda: states(wire, name)[GAME_TITLE], lambda state: state == PHASE_2)

    assert answered[GAME_TITLE]["IndexStatus"] == "UPDATING"
    assert answered[GAME_TITLE]["Backfilling"] is True
    assert at_once == ("UPDATING", True)
    assert refused.type == "ValidationException"


@held
def test_s205_an_index_can_be_deleted_during_its_backfill(lagging):
    name = begin_filling(lagging)

    lagging("UpdateTable", deleting(name, GAME_TITLE))
    eventually(lambda: states(lagging, name), lambda left: left == {"ByUser": ACTIVE})

    item = score("1", COMET) | VIOLATIONS["wrong type"]
    lagging("PutItem", {"TableName": name, "Item": item})
    lagging("DeleteTable", {"TableName": name})


@held
def test_s206_during_a_backfill_no_other_index_can_be_added_or_deleted(filling):
    name = begin_filling(filling)
    another = adding(name, "TopScore:N", global_index("Another", "TopScore"))

    refused = refusals(filling, name, another, deleting(name, "ByUser"))

    assert refused == ["LimitExceededException"] * 2
    assert states(filling, name) == {"ByUser": ACTIVE, GAME_TITLE: PHASE_2}


# -- all phases in sequence -------------------------------------------------------------------

A12_VIOLATIONS = {
    "wrong type": {"N": "7"},
    "empty": {"S": ""},
    "too long": {"S": "x" * 2_049},
}
BY_COUNTRY = "ByCountry"


def refused_meanwhile(wire: WireClient, name: str) -> list[str]:
    """The errors of the requests that are refused in both phases."""
    another = adding(name, "TopScore:N", global_index("Another", "TopScore"))
    return [
        *refusals(wire, name, another, deleting(name, GAME_TITLE)),
        wire.refused("DeleteTable", {"TableName": name}).type,
        wire.refused("Query", query_of(name, BY_COUNTRY, where={"Country": "BR"})).type,
    ]


def reported(server: Server, name: str) -> dict[str, str]:
    """The violation detector's findings in the table: reasons by UserId."""
    detector = [sys.executable, "-m", "dynactor", "violations", "--endpoint", server.endpoint]
    done = subprocess.run(
        [*detector, "--table", name, "--index", BY_COUNTRY, "--format", "json"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {violation["key"]["UserId"]["S"]: violation["reason"] for violation in found}


@held
def test_a12_an_index_is_added_to_a_table_under_load():
    """Each phase takes two seconds, while threads write; three items violate the index's key."""
    users = 800
    country = global_index(BY_COUNTRY, "Country", include=("Wins",))
    options = ("--index-allocation-seconds", LAG_SECONDS, "--gsi-lag", f"fixed:{LAG_SECONDS}")
    with (
        running_server(*options) as server,
        closing(boto3_client(server.endpoint)) as client,
        closing(WireClient(server.endpoint)) as wire,
        scores_table(wire) as name,
    ):
        batch_put(client, name, [score(f"{n}", COMET, n, Country="BR") for n in range(users)])
        gone, moved = (score(user, "Alien", 1, Country="BR") for user in ("gone", "moved"))
        put_all(client, name, [gone, moved])
        for user, broken in A12_VIOLATIONS.items():
            put_all(client, name, [score(user, "Alien") | {"Country": broken}])

        with Writers(server.endpoint, name, users).writing():
            wire("UpdateTable", adding(name, "TopScore:N", "Country:S", country))
            in_phase_1 = [
                refusals(wire, name, deleting(name, BY_COUNTRY)),
                refused_meanwhile(wire, name),
                states(wire, name)[BY_COUNTRY],
            ]
            eventually(lambda: states(wire, name)[BY_COUNTRY], lambda state: state != PHASE_1)
            client.delete_item(TableName=name, Key=key(gone))
            put_all(client, name, [moved | {"Country": {"S": "FR"}}])
            in_phase_2 = [refused_meanwhile(wire, name), states(wire, name)[BY_COUNTRY]]
            eventually(lambda: states(wire, name)[BY_COUNTRY], lambda state: state != PHASE_2)
            afterwards = states(wire, name)[BY_COUNTRY]

        items = whole(client, name, ConsistentRead=True)
        held_names = {"UserId", "GameTitle", "Country", "Wins"}
        wanted = [
            {n: v for n, v in item.items() if n in held_names}
            for item in items
            if "Country" in item and item["UserId"]["S"] not in A12_VIOLATIONS
        ]
        found = eventually(
            lambda: whole(client, name, IndexName=BY_COUNTRY), lambda found: found == wanted
        )
        violations = reported(server, name)

    in_use, limit = "ResourceInUseException", "LimitExceededException"
    refused = [limit, limit, in_use, "ValidationException"]
    assert in_phase_1 == [[in_use], refused, PHASE_1]
    assert in_phase_2 == [refused, PHASE_2]
    assert afterwards == ACTIVE
    assert len(found) < len(items) - len(A12_VIOLATIONS)
    assert violations == {user: user for user in A12_VIOLATIONS}
