"""S134-S139, S74, A11: partitions, their size, their ceiling, and what splits them.

On the servers of these tests, the maximum size of a partition is 1 MB instead of 10 GB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from time import time
from typing import Any

import pytest

from tests.rules.global_indexes.game_scores import eventually
from tests.support.clients.clients import WireClient
from tests.support.servers.admin import admin_port, ask
from tests.support.servers.capacity import CapacityServer, capacity_server, item, reasons, units
from tests.support.servers.server import Server, running_server
from tests.support.tables.tables import definition, local_index, unique_name

pytestmark = pytest.mark.ours_alone("the size of a partition is an option of the server")

LIMIT_BYTES = 1_000_000
KEYS = ("pk:S", "sk:S")
# 100 write units.
LARGE_BYTES = 100 * 1_024
HEAT = ("--partitions-per-table", "1", "--split-heat-seconds", "5", "--split-check-seconds", "0.02")
SIZE = (
    *("--partitions-per-table", "1", "--split-check-seconds", "0.02"),
    *("--partition-limit-bytes", str(LIMIT_BYTES), "--throttling", "observe"),
)
KEY_RANGE = "TableWriteKeyRangeThroughputExceeded"
_REAL_SECONDS = 60
WARM = {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 10_000}


@pytest.fixture(scope="module")
def sized() -> Iterator[CapacityServer]:
    with capacity_server(*SIZE) as served:
        yield served


@pytest.fixture(scope="module")
def heated() -> Iterator[CapacityServer]:
    with capacity_server(*HEAT, "--throttling", "enforce") as served:
        yield served


@pytest.fixture(scope="module")
def grown() -> Iterator[CapacityServer]:
    with capacity_server("--split-check-seconds", "0.02") as served:
        yield served


# The minimum number of partitions at the end leaves a margin. The parts of a partition that is
# written to during its split begin with an estimate of their sizes. A partition that is measured
# and found small enough may grow by a quarter before the next measurement.
def partitions(served: CapacityServer, name: str) -> int:
    return int(served.metrics("partitions", name)["",])


def fill(served: CapacityServer, name: str, items: int, key: Callable[[int], dict[str, Any]]):
    """Put this many items of 20 KB."""
    for number in range(items):
        put = key(number) | {"x": {"S": "x" * 20_000}}
        assert served.put(name, put).status == 200


def keyed(pk: str, sk: int) -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": f"{sk:05}"}}


def queried(served: CapacityServer, name: str, pk: str) -> list[str]:
    found: list[str] = []
    request: dict[str, Any] = {
        "TableName": name,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": pk}},
    }
    while True:
        answer = served.wire("Query", request)
        found += [each["sk"]["S"] for each in answer["Items"]]
        if "LastEvaluatedKey" not in answer:
            return found
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def scanned(served: CapacityServer, name: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    request: dict[str, Any] = {"TableName": name}
    while True:
        answer = served.wire("Scan", request)
        found += [(each["pk"]["S"], each["sk"]["S"]) for each in answer["Items"]]
        if "LastEvaluatedKey" not in answer:
            return found
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def test_s134_a_partition_that_becomes_too_large_is_split(sized):
    name = sized.table(*KEYS)
    assert partitions(sized, name) == 1

    fill(sized, name, 45, lambda number: keyed(f"p{number}", 0))
    at_one = partitions(sized, name)
    fill(sized, name, 150, lambda number: keyed(f"p{number}", 0))

    assert at_one == 1
    assert eventually(lambda: partitions(sized, name), lambda found: found >= 3) <= 7
    assert len(scanned(sized, name)) == 150


def test_s135_the_hash_of_the_partition_key_decides_the_partition(sized):
    """A scan, which goes by hash, returns adjacent partition keys in another order."""
    name = sized.table(*KEYS)
    fill(sized, name, 120, lambda number: keyed(f"p{number:04}", 0))
    eventually(lambda: partitions(sized, name), lambda found: found >= 2)

    order = [pk for pk, _ in scanned(sized, name)]

    assert order != sorted(order)
    quarters = [{pk for pk in order[at * 30 : at * 30 + 30] if pk < "p0060"} for at in range(4)]
    assert all(5 <= len(quarter) <= 25 for quarter in quarters)


def test_s136_items_of_one_partition_key_are_consecutive_and_sorted(sized):
    name = sized.table(*KEYS)
    fill(sized, name, 150, lambda number: keyed(f"p{number * 7 % 10}", number * 7919 % 150))
    eventually(lambda: partitions(sized, name), lambda found: found >= 3)

    order = scanned(sized, name)

    pks = [pk for at, (pk, _) in enumerate(order) if at == 0 or order[at - 1][0] != pk]
    assert len(pks) == len(set(pks)) == 10
    for pk in pks:
        sks = [sk for each, sk in order if each == pk]
        assert sks == sorted(sks)
        assert queried(sized, name, pk) == sks


def test_s137_a_collection_larger_than_a_partition_is_split_by_sort_key(sized):
    name = sized.table(*KEYS)

    fill(sized, name, 200, lambda number: keyed("one", number * 7919 % 200))

    assert eventually(lambda: partitions(sized, name), lambda found: found >= 3) <= 9
    assert queried(sized, name, "one") == [f"{number:05}" for number in range(200)]


def test_s74_a_collection_with_a_local_index_is_never_split(sized):
    name = sized.table(*KEYS, "at:S", LocalSecondaryIndexes=[local_index("ByAt", "pk", "at")])
    fill(sized, name, 120, lambda number: keyed("one", number))
    other = sized.table(*KEYS, "at:S", LocalSecondaryIndexes=[local_index("ByAt", "pk", "at")])
    fill(sized, other, 120, lambda number: keyed(f"p{number}", 0))

    # When the second table is split, the server has also measured the first table.
    eventually(lambda: partitions(sized, other), lambda found: found >= 2)

    assert partitions(sized, name) == 1
    assert len(queried(sized, name, "one")) == 120


# -- units ----------------------------------------------------------------------------------


def large(pk: str, sk: int | None = None) -> dict[str, Any]:
    made = item(pk, LARGE_BYTES - 100)
    return made if sk is None else made | keyed(pk, sk)


def offered(served: CapacityServer, name: str, numbers: Iterator[int], pks: list[str]) -> int:
    """The units accepted in a second of 20 large writes to each key, with spread sort keys."""
    accepted = 0
    for number in [next(numbers) for _ in range(20)]:
        for pk in pks:
            answer = served.put(name, large(pk, number * 7919 % 100_000))
            if answer.status == 200:
                accepted += 100
            else:
                assert {reason for reason, _ in reasons(answer)} == {KEY_RANGE}
    served.clock.step(1)
    return accepted


def until_split(served: CapacityServer, name: str, pks: list[str]) -> list[int]:
    """Offer load until a partition is split; returns the units accepted in each second."""
    numbers = count()
    found = []
    while partitions(served, name) == 1:
        found.append(offered(served, name, numbers, pks))
        assert len(found) < 60
    return found


def test_s138_warm_throughput_adds_partitions_and_is_described(grown):
    name = grown.table(*KEYS, BillingMode="PAY_PER_REQUEST")
    assert partitions(grown, name) == 4
    made = grown.table(*KEYS, BillingMode="PAY_PER_REQUEST", WarmThroughput=WARM)
    assert partitions(grown, made) == 10

    changed = grown.wire("UpdateTable", {"TableName": name, "WarmThroughput": WARM})
    assert changed["TableDescription"]["WarmThroughput"] == {
        "ReadUnitsPerSecond": 12_000,
        "WriteUnitsPerSecond": 4_000,
        "Status": "UPDATING",
    }

    eventually(
        lambda: grown.wire("DescribeTable", {"TableName": name})["Table"]["WarmThroughput"],
        lambda shown: shown == {**WARM, "Status": "ACTIVE"},
    )
    assert partitions(grown, name) == 10


def test_s138_more_provisioned_units_mean_more_partitions(grown):
    name = grown.table(**units(10, 10))
    assert partitions(grown, name) == 1
    update = {"ReadCapacityUnits": 3_000, "WriteCapacityUnits": 3_000}
    grown.wire("UpdateTable", {"TableName": name, "ProvisionedThroughput": update})

    eventually(lambda: partitions(grown, name), lambda found: found == 4)


def test_s139_a_busy_collection_is_split_and_then_exceeds_the_limit_of_one_partition(heated):
    name = heated.table(*KEYS, BillingMode="PAY_PER_REQUEST")

    before = until_split(heated, name, ["hot"])
    after = [offered(heated, name, count(), ["hot"]) for _ in range(3)]

    assert len(before) >= 5
    # The split may happen during the last second.
    assert set(before[:-1]) == {1_000}
    assert min(after) > 1_500


def test_a11_one_item_never_exceeds_the_limit_of_one_partition(heated):
    name = heated.table("pk:S", BillingMode="PAY_PER_REQUEST")
    found = []
    for _ in range(12):
        answers = [heated.put(name, large("hot")) for _ in range(20)]
        found.append(100 * [answer.status for answer in answers].count(200))
        heated.clock.step(1)

    assert found == [1_000] * 12
    assert partitions(heated, name) == 1


def test_a11_a_collection_with_a_local_index_stays_throttled(heated):
    index = local_index("ByAt", "pk", "at")
    name = heated.table(*KEYS, "at:S", BillingMode="PAY_PER_REQUEST", LocalSecondaryIndexes=[index])
    numbers = count()

    found = [offered(heated, name, numbers, ["hot"]) for _ in range(12)]

    assert found == [1_000] * 12
    assert partitions(heated, name) == 1


def test_a11_busy_suffixes_are_split_into_separate_partitions_and_then_accepted(heated):
    """The load is 5,000 units a second on 5 keys, which are in one partition at first."""
    name = heated.table(*KEYS, **units(3_000, 6_000))
    pks = [f"hot.{suffix}" for suffix in range(5)]
    numbers = count()

    found: list[int] = []
    while len(found) < 60 and (not found or found[-1] < 5_000):
        found.append(
            sum(
                100
                for number in [next(numbers) for _ in range(10)]
                for pk in pks
                if heated.put(name, large(pk, number)).status == 200
            )
        )
        heated.clock.step(1)

    assert found[0] == 1_000
    assert found[-1] == 5_000
    assert partitions(heated, name) >= 5


def test_a11_five_suffixes_are_accepted_at_once_by_a_warmed_table(grown):
    """Each suffix has its own partition, of 40 partitions."""
    warm = {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 40_000}
    name = grown.table(*KEYS, BillingMode="PAY_PER_REQUEST", WarmThroughput=warm)
    grown.wire(
        "TagResource",
        {
            "ResourceArn": grown.wire("DescribeTable", {"TableName": name})["Table"]["TableArn"],
            "Tags": [{"Key": "dynactor:throttling", "Value": "enforce"}],
        },
    )
    pks = [f"hot.{suffix}" for suffix in range(5)]

    statuses = [grown.put(name, large(pk, number)).status for number in range(10) for pk in pks]

    assert statuses == [200] * 50


def test_a11_a_busy_collection_is_split_in_real_time():
    """A collection is throttled, split after three seconds, and then accepts more."""
    options = ("--partitions-per-table", "1", "--split-heat-seconds", "3")
    options += ("--split-check-seconds", "0.5", "--throttling", "enforce", "--admin-port", "0")
    with running_server(*options) as server, closing(WireClient(server.endpoint)) as wire:
        request = definition(*KEYS, name=unique_name("hot"), BillingMode="PAY_PER_REQUEST")
        wire("CreateTable", request)
        numbers = count()
        before: list[int] = []
        while not _splits_for_heat(server):
            before.append(_one_second(wire, request["TableName"], numbers))
            assert len(before) < _REAL_SECONDS
        # Leave out the last second, because the split was in its middle.
        assert len(before) >= 3
        assert max(before[:-1]) <= 1_100
        eventually(lambda: _one_second(wire, request["TableName"], numbers), _exceeds_the_ceiling)


def _one_second(wire: WireClient, name: str, numbers: Iterator[int]) -> int:
    """The units accepted in the next whole second of the clock, of 2,000 offered."""
    second = int(time())
    while int(time()) == second:
        wire("ListTables", {})
    accepted = 0
    for number in [next(numbers) for _ in range(20)]:
        put = {"TableName": name, "Item": large("hot", number * 7919 % 100_000)}
        accepted += 100 * (wire.send("PutItem", put).status == 200)
        if int(time()) > second + 1:
            break
    return accepted


def _exceeds_the_ceiling(units: int) -> bool:
    return units > 1_200


def _splits_for_heat(server: Server) -> int:
    text = ask(admin_port(server), "/metrics").body.decode()
    return sum(
        float(line.rpartition(" ")[2]) > 0
        for line in text.splitlines()
        if line.startswith('dynactor_partition_splits_total{reason="heat"}')
    )
