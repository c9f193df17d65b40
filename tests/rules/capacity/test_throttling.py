"""S101, S102, S110, S138, S139, S161, S168, S194, S196, S197, A11: exhausted capacity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dynactor.model.keys import key as keys
from dynactor.model.keys.key import KeyAttribute, KeySchema
from tests.rules.global_indexes.game_scores import eventually
from tests.rules.global_indexes.online_index import ACTIVE, states
from tests.support.clients.clients import Answer
from tests.support.servers.capacity import (
    PROVISIONED,
    CapacityServer,
    capacity_server,
    item,
    reasons,
    throughput,
    units,
)
from tests.support.tables.tables import global_index

pytestmark = pytest.mark.ours_alone("no other server has a clock to set")

BY_STATUS = "ByStatus"
BY_OWNER = "ByOwner"
ONE_KEY = {"KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]}
TOO_FEW_INDEX_WRITES = [("IndexWriteProvisionedThroughputExceeded", BY_STATUS)]
# 100 write units, and 25 read units.
LARGE_BYTES = 100 * 1_024


@pytest.fixture(scope="module")
def served() -> Iterator[CapacityServer]:
    with capacity_server() as served:
        yield served


def by_status(read: int, write: int) -> dict[str, Any]:
    return global_index(BY_STATUS, "status", ProvisionedThroughput=throughput(read, write))


def by_owner(read: int, write: int) -> dict[str, Any]:
    return global_index(BY_OWNER, "owner", ProvisionedThroughput=throughput(read, write))


def indexed(served: CapacityServer, *indexes: dict[str, Any], **members: Any) -> str:
    """A table with these indexes on status and owner, and 50 units of each kind."""
    named = {index["KeySchema"][0]["AttributeName"] for index in indexes}
    attributes = [f"{name}:S" for name in sorted(named)]
    given = units(50, 50) | ONE_KEY | members
    return served.table("pk:S", *attributes, GlobalSecondaryIndexes=list(indexes), **given)


def query_by_status(name: str) -> dict[str, Any]:
    return {
        "TableName": name,
        "IndexName": BY_STATUS,
        "KeyConditionExpression": "#status = :status",
        "ExpressionAttributeNames": {"#status": "status"},
        "ExpressionAttributeValues": {":status": {"S": "new"}},
    }


def get(name: str, pk: str) -> dict[str, Any]:
    return {"TableName": name, "Key": item(pk), "ConsistentRead": True}


def error_of(answer: Answer) -> tuple[str, list[tuple[str, str]]]:
    """The name of an error, and its limits."""
    assert answer.status == 400, answer.body
    return answer.json["__type"].partition("#")[2], reasons(answer)


def place_at(pk: str, partitions: int) -> int:
    """The partition of a key, out of this many with even shares."""
    schema = KeySchema((KeyAttribute("pk", "S"),))
    hashed = keys.encode_partition(schema, item(pk))[:8]
    return int.from_bytes(hashed, "big") * partitions >> 64


def keys_apart(partitions: int) -> list[str]:
    """One key for each of this many partitions."""
    found: dict[int, str] = {}
    number = 0
    while len(found) < partitions:
        found.setdefault(place_at(f"{number}", partitions), f"{number}")
        number += 1
    return [found[place] for place in range(partitions)]


# -- indexes --------------------------------------------------------------------------------


def test_s101_a_query_beyond_the_indexs_read_units_is_throttled(served):
    name = indexed(served, by_status(2, 50))
    served.put(name, item("a", status="new"))

    # Each query takes half a unit.
    assert served.until_refused("Query", query_by_status(name)) == 4
    refused = served.wire.send("Query", query_by_status(name))

    assert error_of(refused) == (
        PROVISIONED,
        [("IndexReadProvisionedThroughputExceeded", BY_STATUS)],
    )
    # The table's own read units are still available.
    assert served.wire.send("GetItem", get(name, "a")).status == 200
    assert served.metrics("consumed_read_capacity_units", name) == {(BY_STATUS,): 2, ("",): 1}


def test_s102_too_few_write_units_of_an_index_throttle_writes_to_the_table(served):
    name = indexed(served, by_status(1, 3))

    accepted = [served.put(name, item(f"{n}", status="new")).status for n in range(5)]
    refused = served.put(name, item("5", status="new"))

    assert accepted == [200, 200, 200, 400, 400]
    assert error_of(refused) == (PROVISIONED, TOO_FEW_INDEX_WRITES)
    assert refused.json["message"].startswith(
        "The level of configured provisioned throughput for one or more global secondary indexes"
    )
    # A write that does not change the index needs no units of it.
    assert served.put(name, item("6")).status == 200


def test_s110_a_write_takes_units_of_its_table_and_all_its_indexes_or_none(served):
    name = indexed(served, by_status(1, 2), by_owner(1, 4))
    both = {"status": "new", "owner": "me"}
    for number in range(2):
        assert served.put(name, item(f"{number}", **both)).status == 200

    refused = [served.put(name, item(f"{number}", **both)) for number in range(2, 9)]

    assert {tuple(error_of(answer)[1]) for answer in refused} == {tuple(TOO_FEW_INDEX_WRITES)}
    assert "Item" not in served.wire("GetItem", get(name, "2"))
    # The refused writes took no units of the other index or of the table.
    assert served.metrics("consumed_write_capacity_units", name) == {
        ("",): 2,
        (BY_STATUS,): 2,
        (BY_OWNER,): 2,
    }
    assert [served.put(name, item(f"x{n}", owner="me")).status for n in range(3)] == [200, 200, 400]


# -- partitions -----------------------------------------------------------------------------


def test_s138_provisioned_units_are_spread_evenly_over_the_partitions():
    with capacity_server("--partitions-per-table", "4") as served:
        name = served.table(**units(4, 40))
        accepted = [served.puts_until_refused(name, item(pk)) for pk in keys_apart(4)]

    assert accepted == [10] * 4


def test_s161_a_busy_partition_uses_the_unused_units_of_others():
    with capacity_server("--partitions-per-table", "4") as served:
        name = served.table(**units(4, 40))
        accepted = []
        for _ in range(4):
            accepted.append(served.puts_until_refused(name))
            served.clock.step(1)

    assert accepted[0] == 10
    assert all(39 <= each <= 41 for each in accepted[1:])


def offered_for(served: CapacityServer, name: str, seconds: int, *pks: str) -> list[int]:
    """The units accepted in each second of 20 large writes to each key."""
    accepted = []
    for _ in range(seconds):
        made = [item(pk, LARGE_BYTES) for pk in pks for _ in range(20)]
        accepted.append(100 * [served.put(name, each).status for each in made].count(200))
        served.clock.step(1)
    return accepted


def test_s139_one_key_takes_1000_write_units_a_second_and_3000_read_units(served):
    name = served.table(**units(12_000, 4_000))
    # The limit holds even after 300 seconds of saved units.
    served.clock.step(300)

    assert offered_for(served, name, 3, "hot") == [1_000] * 3
    for _ in range(10):
        served.put(name, item("hot", LARGE_BYTES))
    refused = served.put(name, item("hot"))

    assert error_of(refused) == (PROVISIONED, [("TableWriteKeyRangeThroughputExceeded", name)])
    # Each read takes 25 units.
    assert served.until_refused("GetItem", get(name, "hot")) == 120
    refused = served.wire.send("GetItem", get(name, "hot"))
    assert error_of(refused) == (PROVISIONED, [("TableReadKeyRangeThroughputExceeded", name)])


def test_a11_five_suffixes_in_separate_partitions_accept_the_load_that_throttles_one_key(served):
    name = served.table(**units(3_000, 10_000))
    partitions = 11
    served.clock.step(300)
    five = keys_apart(partitions)[::2][:5]

    one_key = offered_for(served, name, 3, "hot")
    suffixes = [sum(offered_for(served, name, 1, pk)) for pk in five]

    assert one_key == [1_000] * 3
    assert suffixes == [1_000] * 5
    # Offer 5,000 units a second, evenly over five keys.
    made = [item(pk, LARGE_BYTES) for _ in range(10) for pk in five]
    assert [served.put(name, each).status for each in made] == [200] * 50


# -- the backfill of an index ---------------------------------------------------------------


def add_by_status(served: CapacityServer, name: str, write: int) -> None:
    """Add the index, and wait until its backfill has taken all its units."""
    request = {
        "TableName": name,
        "AttributeDefinitions": [
            {"AttributeName": attribute, "AttributeType": "S"} for attribute in ("pk", "status")
        ],
        "GlobalSecondaryIndexUpdates": [{"Create": by_status(1, write)}],
    }
    served.wire("UpdateTable", request)
    eventually(lambda: served.metrics("online_index_throttle_events", name), bool)


def filled(served: CapacityServer, name: str) -> float:
    """The write units that the backfill has taken."""
    consumed = served.metrics("online_index_consumed_write_capacity_units", name)
    return consumed.get((BY_STATUS,), 0)


def wait_filled(served: CapacityServer, name: str, write_units: int) -> None:
    """Wait for an ACTIVE index and this many taken units; the caller must have set the clock."""
    eventually(lambda: filled(served, name), lambda units: units >= write_units)
    eventually(lambda: states(served.wire, name)[BY_STATUS], lambda state: state == ACTIVE)


def seconds_until_filled(served: CapacityServer, name: str, write_units: int) -> int:
    """The maximum number of seconds until this many units are taken and the index is ACTIVE.

    It may take fewer, because the clock may be stepped before the backfill has used the units of a
    step. To check that some number is enough, advance the clock by it and call ``wait_filled``.
    """
    seconds = 0
    while filled(served, name) < write_units:
        served.clock.step(1)
        seconds += 1
        assert seconds < 10_000
    wait_filled(served, name, write_units)
    return seconds


def with_statuses(served: CapacityServer, statuses: list[str], size_bytes: int = 0) -> str:
    """A table of items with these statuses, of at least that size."""
    name = served.table(**units(50, 5_000))
    for number, status in enumerate(statuses):
        assert served.put(name, item(f"{number}", size_bytes, status=status)).status == 200
    return name


def test_s168_a_backfill_and_writes_share_the_indexs_units(served):
    name = with_statuses(served, ["new"] * 20)
    add_by_status(served, name, 5)

    refused = served.put(name, item("a", status="new"))

    assert filled(served, name) == 5
    assert error_of(refused) == (PROVISIONED, TOO_FEW_INDEX_WRITES)
    assert served.put(name, item("a")).status == 200
    assert seconds_until_filled(served, name, 20) >= 3
    # The refused write is in neither the index nor the table.
    found = served.wire("Query", query_by_status(name))
    assert found["Count"] == 20


def test_s168_a_skewed_index_key_throttles_writes_to_the_table_during_the_backfill(served):
    name = served.table(**units(50, 5_000))
    for number in range(15):
        served.put(name, item(f"{number}", LARGE_BYTES, status="new"))
    # The index has at least ten partitions, but all entries are in one of them.
    add_by_status(served, name, 10_000)

    refused = served.put(name, item("a", status="new"))

    assert filled(served, name) == 1_000
    assert error_of(refused) == (
        PROVISIONED,
        [("IndexWriteKeyRangeThroughputExceeded", BY_STATUS)],
    )
    assert served.put(name, item("a", status="other")).status == 200
    # One more second of units is enough for the rest.
    served.clock.step(1)
    wait_filled(served, name, 1_500)


def test_s194_raising_the_write_units_makes_the_build_faster(served):
    # Each entry costs more than the index's units of one second.
    slow, raised = (with_statuses(served, ["new"] * 6, size_bytes=10_000) for _ in range(2))
    add_by_status(served, slow, 2)
    assert seconds_until_filled(served, slow, 60) >= 20
    add_by_status(served, raised, 2)
    update = {"IndexName": BY_STATUS, "ProvisionedThroughput": throughput(1, 100)}
    served.wire(
        "UpdateTable", {"TableName": raised, "GlobalSecondaryIndexUpdates": [{"Update": update}]}
    )

    served.clock.step(5)

    wait_filled(served, raised, 60)


def test_s196_the_backfill_takes_no_read_units_of_the_table(served):
    name = served.table(**units(1, 5_000))
    for number in range(10):
        served.put(name, item(f"{number}", 20_000, status="new"))
    add_by_status(served, name, 100)
    seconds_until_filled(served, name, 200)

    assert served.metrics("consumed_read_capacity_units", name) == {}
    missing = {"TableName": name, "Key": item("missing"), "ConsistentRead": True}
    assert served.wire.send("GetItem", missing).status == 200


def test_s197_writes_beyond_the_indexs_units_throttle_the_build():
    with capacity_server("--partitions-per-table", "2") as served:
        alone, beside = (with_statuses(served, ["new", "old", "odd"] * 8) for _ in range(2))
        add_by_status(served, alone, 4)
        served.clock.step(10)
        wait_filled(served, alone, 24)
        add_by_status(served, beside, 4)
        # The backfill waits for one of the partitions; the other's remaining units go to writes.
        written = [
            served.put(beside, item(status, 60_000, status=status)).status
            for status in ("new", "old", "odd")
        ]
        beside_seconds = seconds_until_filled(served, beside, 24)

    assert 200 in written
    assert beside_seconds >= 20
