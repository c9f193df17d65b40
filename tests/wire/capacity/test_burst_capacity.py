"""A table's unused units: when it is new, and after a restart, a crash, a change."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.support.clients.clients import SDK_ARGUMENTS
from tests.support.databases.table_backups import back_up, restored
from tests.support.servers.capacity import (
    START,
    CapacityServer,
    capacity_server,
    item,
    reasons,
    throughput,
    units,
)
from tests.support.servers.server import running_server
from tests.support.tables.tables import definition, global_index

pytestmark = pytest.mark.ours_alone("no other server has a clock to set")

RATE = 1
FULL = 300 * RATE
# The maximum cost of a crash for a partition in use: its possible use in 20 ms, or 30 seconds.
WRITE_RESERVE, READ_RESERVE = 20, 30
INDEX = "by-v"
KEY_OF_TABLE = {"KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]}


@contextmanager
def new_tables_full(
    *arguments: str, start: str | float = START, data_dir: Path | None = None
) -> Iterator[CapacityServer]:
    """A server with default options for capacity."""
    arguments += (
        () if "--initial-burst-seconds" in arguments else ("--initial-burst-seconds", "300")
    )
    with capacity_server(*arguments, start=start, data_dir=data_dir) as served:
        yield served


@pytest.fixture(scope="module")
def served() -> Iterator[CapacityServer]:
    with new_tables_full() as served:
        yield served


def puts(served: CapacityServer, name: str, count: int) -> int:
    """The number of accepted puts in a sequence."""
    return [served.put(name, item("a")).status for _ in range(count)].count(200)


# -- new tables -----------------------------------------------------------------------------


def test_a_new_table_takes_300_seconds_of_units_and_then_new_ones(served):
    name = served.table(**units(5, RATE))

    accepted = [served.puts_until_refused(name)]
    for seconds in (1, 3, 600):
        served.clock.step(seconds)
        accepted.append(served.puts_until_refused(name))

    assert accepted == [FULL, RATE, 3 * RATE, FULL]


def test_a_new_table_answers_reads_for_300_seconds_of_units(served):
    name = served.table(**units(RATE, 5))
    request = {"TableName": name, "Key": item("a"), "ConsistentRead": True}

    assert served.until_refused("GetItem", request) == FULL


def test_a_new_index_has_300_seconds_of_units_of_its_own(served):
    index = global_index(INDEX, "v", ProvisionedThroughput=throughput(5, RATE))
    members = units(5, 50) | KEY_OF_TABLE
    name = served.table("pk:S", "v:S", GlobalSecondaryIndexes=[index], **members)

    accepted = 0
    while (answer := served.put(name, item(f"{accepted}", v="1"))).status == 200:
        accepted += 1

    assert accepted == FULL
    assert reasons(answer) == [("IndexWriteProvisionedThroughputExceeded", INDEX)]


def test_boto3_puts_1500_items_to_a_new_table_of_5_units_and_five_a_second_afterwards():
    with (
        running_server("--throttling", "auto") as server,
        closing(boto3.client("dynamodb", endpoint_url=server.endpoint, **SDK_ARGUMENTS)) as client,
    ):
        request = definition("pk:S", **units(5, 5))
        name = request["TableName"]
        client.create_table(**request)

        def retries(count: int) -> int:
            """The number of boto3's retries of these puts, until all are accepted."""
            answers = [client.put_item(TableName=name, Item=item("a", 1_000)) for _ in range(count)]
            return sum(answer["ResponseMetadata"]["RetryAttempts"] for answer in answers)

        began = time.monotonic()
        at_full_speed = retries(1_500)
        came_in = int(5 * (time.monotonic() - began))
        then = retries(came_in + 10)
        took_seconds = time.monotonic() - began

    assert at_full_speed == 0
    assert then > 0
    # Apart from the last one, which may leave a debt.
    assert 10 + came_in - 1 <= 5 * took_seconds


# -- restarts -------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "accepted"), [(0, 100), (10, 110), (9_000, FULL)])
def test_after_an_orderly_stop_a_table_has_its_balance_and_the_units_since(
    tmp_path, seconds, accepted
):
    with new_tables_full(data_dir=tmp_path) as served:
        name = served.table(**units(5, RATE))
        assert puts(served, name, FULL - 100) == FULL - 100
        now = served.clock.now()
        served.server.stop()
    with new_tables_full(start=now + seconds, data_dir=tmp_path) as served:
        assert served.puts_until_refused(name) == accepted


def test_an_index_and_reads_keep_their_balance_too(tmp_path):
    index = global_index(INDEX, "v", ProvisionedThroughput=throughput(RATE, 5))
    query = {
        "IndexName": INDEX,
        "KeyConditionExpression": "v = :v",
        "ExpressionAttributeValues": {":v": {"S": "a"}},
    }
    with new_tables_full(data_dir=tmp_path) as served:
        members = units(RATE, 5) | KEY_OF_TABLE
        name = served.table("pk:S", "v:S", GlobalSecondaryIndexes=[index], **members)
        get = {"TableName": name, "Key": item("a"), "ConsistentRead": True}
        query["TableName"] = name
        for _ in range(FULL - 50):
            served.wire("GetItem", get)
        # Half a unit each.
        for _ in range(2 * FULL - 80):
            served.wire("Query", query)
        now = served.clock.now()
        served.server.stop()
    with new_tables_full(start=now, data_dir=tmp_path) as served:
        assert served.until_refused("GetItem", get) == 50
        assert served.until_refused("Query", query) == 80


@pytest.mark.parametrize("seconds", [0, 9_000])
def test_after_a_crash_a_table_has_the_last_stored_balance(tmp_path, seconds):
    with new_tables_full(data_dir=tmp_path) as served:
        name = served.table(**units(5, RATE))
        assert puts(served, name, FULL - 100) == FULL - 100
        now = served.clock.now()
        served.server.kill()
    with new_tables_full(start=now + seconds, data_dir=tmp_path) as served:
        assert 100 - WRITE_RESERVE <= served.puts_until_refused(name) <= 100


@pytest.mark.parametrize(
    ("operation", "members", "reserve"),
    [
        ("PutItem", {"Item": item("a")}, WRITE_RESERVE),
        ("GetItem", {"Key": item("a"), "ConsistentRead": True}, READ_RESERVE),
    ],
)
def test_ten_crashes_in_a_row_earn_nothing(tmp_path, operation, members, reserve):
    """Whether the table is in use when the server dies, or has no units left.

    Writes wait for the disk, and so for balances stored before; reads are followed by writes to
    another table.
    """
    per_round, rounds = 90, 10
    accepted = 0
    with new_tables_full(data_dir=tmp_path) as served:
        request = {"TableName": served.table(**units(RATE, RATE)), **members}
        other = served.table(BillingMode="PAY_PER_REQUEST")
        now = served.clock.now()
    for _ in range(rounds):
        with new_tables_full(start=now, data_dir=tmp_path) as served:
            answers = [served.wire.send(operation, request).status for _ in range(per_round)]
            puts(served, other, 3)
            served.server.kill()
        accepted += answers.count(200)

    assert FULL - rounds * reserve <= accepted <= FULL


def test_a_server_that_stops_in_order_again_and_again_earns_nothing_either(tmp_path):
    accepted = 0
    with new_tables_full(data_dir=tmp_path) as served:
        name = served.table(**units(5, RATE))
        now = served.clock.now()
        served.server.stop()
    for _ in range(4):
        with new_tables_full(start=now, data_dir=tmp_path) as served:
            accepted += puts(served, name, 90)
            served.server.stop()

    assert accepted == FULL


def test_a_crash_after_an_orderly_stop_does_not_add_its_time_again(tmp_path):
    with new_tables_full(data_dir=tmp_path) as served:
        name = served.table(**units(5, RATE))
        assert served.puts_until_refused(name) == FULL
        now = served.clock.now()
        served.server.stop()
    accepted = 0
    for _ in range(3):
        with new_tables_full(start=now + 200, data_dir=tmp_path) as served:
            accepted += puts(served, name, 90)
            served.server.kill()

    assert accepted <= 200 * RATE


# -- changes of a table ---------------------------------------------------------------------


def updated(served: CapacityServer, name: str, **members: Any) -> None:
    served.wire("UpdateTable", {"TableName": name, **members})


def test_a_table_that_becomes_provisioned_has_300_seconds_of_units(served):
    name = served.table(BillingMode="PAY_PER_REQUEST")
    served.put(name, item("a", 100_000))

    updated(served, name, **units(5, RATE))

    # It has four partitions.
    accepted = [served.put(name, item(f"{key}")).status for key in range(600)].count(200)
    assert accepted == FULL


def test_switches_of_the_mode_fill_a_table_four_times_a_day(served):
    name = served.table(**units(5, RATE))
    for _ in range(4):
        updated(served, name, BillingMode="PAY_PER_REQUEST")
        updated(served, name, **units(5, RATE))

    refusal = served.wire.refused(
        "UpdateTable", {"TableName": name, "BillingMode": "PAY_PER_REQUEST"}
    )
    assert refusal.type == "LimitExceededException"
    assert refusal.message == (
        "Subscriber limit exceeded: Update to PayPerRequest mode are limited to 4 times in "
        "1 day(s)."
    )
    served.clock.step(24 * 60 * 60)
    updated(served, name, BillingMode="PAY_PER_REQUEST")


def test_more_units_keep_the_balance_and_fewer_units_bound_it(served):
    name = served.table(**units(5, RATE))
    assert puts(served, name, FULL - 100) == FULL - 100

    updated(served, name, ProvisionedThroughput=throughput(5, 100))
    updated(served, name, ProvisionedThroughput=throughput(5, RATE))

    assert served.puts_until_refused(name) == 100

    served.clock.step(300)
    updated(served, name, ProvisionedThroughput=throughput(5, 20))
    updated(served, name, ProvisionedThroughput=throughput(5, RATE))

    assert served.puts_until_refused(name) == FULL


def test_more_units_do_not_fill_a_table_by_a_crash(tmp_path):
    with new_tables_full(data_dir=tmp_path) as served:
        name = served.table(**units(5, RATE))
        updated(served, name, ProvisionedThroughput=throughput(5, 100))
        now = served.clock.now()
        served.server.kill()
    with new_tables_full(start=now, data_dir=tmp_path) as served:
        # With any units taken now, the reserve of five seconds is 500 units.
        assert served.puts_until_refused(name) == FULL


def test_a_table_that_is_deleted_and_made_again_is_a_new_one(tmp_path):
    with new_tables_full(data_dir=tmp_path) as served:
        request = definition("pk:S", **units(5, RATE))
        name = request["TableName"]
        for _ in range(2):
            served.wire("CreateTable", request)
            assert served.puts_until_refused(name) == FULL
            served.clock.step(1)
            served.wire("DeleteTable", {"TableName": name})


def test_a_restored_table_is_a_new_one(served):
    name = served.table(**units(5, RATE))
    assert served.puts_until_refused(name) == FULL
    served.clock.step(1)

    with restored(served.wire, back_up(served.wire, name)) as other:
        assert served.puts_until_refused(other) == FULL


def test_a_server_that_only_observes_keeps_balances_as_well(tmp_path):
    observing = ("--throttling", "observe")
    with new_tables_full(*observing, data_dir=tmp_path) as served:
        name = served.table(**units(5, RATE))
        assert puts(served, name, FULL) == FULL
        now = served.clock.now()
        served.server.stop()
    with new_tables_full(*observing, start=now, data_dir=tmp_path) as served:
        assert puts(served, name, 3) == 3
        assert sum(served.metrics("observed_throttle_events", name).values()) == 3


# -- the option -----------------------------------------------------------------------------


def test_a_new_table_may_begin_with_less_and_keeps_that_through_a_crash(tmp_path):
    with new_tables_full("--initial-burst-seconds", "1", data_dir=tmp_path) as served:
        name = served.table(**units(5, RATE))
        assert served.put(name, item("a")).status == 200
        now = served.clock.now()
        served.server.kill()
    with new_tables_full(start=now, data_dir=tmp_path) as served:
        assert served.puts_until_refused(name) <= 1
