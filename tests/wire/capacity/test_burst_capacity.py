"""The burst capacity of a table: when new, after a restart, a crash, and a change of the table."""

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
# A crash costs a partition in use at most these units: what it can use in 20 ms, or in 30 seconds.
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
    """Put ``count`` times; return the number of accepted puts."""
    return [served.put(name, item("a")).status for _ in range(count)].count(200)


# -- new tables -----------------------------------------------------------------------------


def test_a_new_table_has_300_seconds_of_write_units_and_then_its_rate(served):
    name = served.table(**units(5, RATE))

    accepted = [served.puts_until_refused(name)]
    for seconds in (1, 3, 600):
        served.clock.step(seconds)
        accepted.append(served.puts_until_refused(name))

    assert accepted == [FULL, RATE, 3 * RATE, FULL]


def test_a_new_table_has_300_seconds_of_read_units(served):
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


def test_boto3_puts_1500_items_to_a_new_table_of_5_units_and_then_5_per_second():
    with (
        running_server("--throttling", "auto") as server,
        closing(boto3.client("dynamodb", endpoint_url=server.endpoint, **SDK_ARGUMENTS)) as client,
    ):
        request = definition("pk:S", **units(5, 5))
        name = request["TableName"]
        client.create_table(**request)

        def retries(count: int) -> int:
            """Put ``count`` items; return the number of retries that boto3 needed."""
            retries = 0
            for _ in range(count):
                answer = client.put_item(TableName=name, Item=item("a", 1_000))
                retries += answer["ResponseMetadata"]["RetryAttempts"]
                # Without this, a fast machine exceeds the 1,000 units a second of a partition.
                client.list_tables()
            return retries

        began = time.monotonic()
        at_full_speed = retries(1_500)
        more = 1
        while not retries(1) and more < 5_000:
            more += 1
        took_seconds = time.monotonic() - began

    assert at_full_speed == 0
    # The put before the refused one may have taken more units than were left.
    assert more - 2 <= 5 * took_seconds


# -- restarts -------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "accepted"), [(0, 100), (10, 110), (9_000, FULL)])
def test_after_a_normal_stop_a_table_has_its_balance_and_the_units_of_the_time_since(
    tmp_path, seconds, accepted
):
    with new_tables_full(data_dir=tmp_path) as served:
        name = served.table(**units(5, RATE))
        assert puts(served, name, FULL - 100) == FULL - 100
        now = served.clock.now()
        served.server.stop()
    with new_tables_full(start=now + seconds, data_dir=tmp_path) as served:
        assert served.puts_until_refused(name) == accepted


def test_the_balances_of_indexes_and_reads_survive_a_restart(tmp_path):
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
        # Each query takes half a unit.
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
def test_crashes_in_a_row_add_no_units(tmp_path, pytestconfig, operation, members, reserve):
    """A table must not get units by crashes, whether it is in use or has no units left.

    Before each crash a write waits for the disk, so balances that were stored before are durable.
    After reads, the test writes to another table for that. PostgreSQL commits the two side by side,
    so there a crash may add what was taken since the last but one balance: the reserve.
    """
    per_round, crashes = 90, pytestconfig.getoption("--rounds") or 5
    accepted = 0
    with new_tables_full(data_dir=tmp_path) as served:
        request = {"TableName": served.table(**units(RATE, RATE)), **members}
        other = served.table(BillingMode="PAY_PER_REQUEST")
        now = served.clock.now()
    for _ in range(crashes):
        with new_tables_full(start=now, data_dir=tmp_path) as served:
            answers = [served.wire.send(operation, request).status for _ in range(per_round)]
            puts(served, other, 3)
            served.server.kill()
        accepted += answers.count(200)

    added = 0 if pytestconfig.getoption("--store") is None else crashes * reserve
    assert FULL - crashes * reserve <= accepted <= FULL + added


def test_repeated_normal_stops_add_no_units(tmp_path):
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


def test_a_crash_after_a_normal_stop_does_not_add_the_stopped_time_again(tmp_path):
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

    # The keys are spread over the 4 partitions of the table.
    accepted = [served.put(name, item(f"{key}")).status for key in range(600)].count(200)
    assert accepted == FULL


def test_a_switch_of_the_billing_mode_fills_a_table_at_most_four_times_a_day(served):
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


def test_raised_units_keep_the_balance_and_lowered_units_limit_it(served):
    name = served.table(**units(5, RATE))
    assert puts(served, name, FULL - 100) == FULL - 100

    updated(served, name, ProvisionedThroughput=throughput(5, 100))
    updated(served, name, ProvisionedThroughput=throughput(5, RATE))

    assert served.puts_until_refused(name) == 100

    served.clock.step(300)
    updated(served, name, ProvisionedThroughput=throughput(5, 20))
    updated(served, name, ProvisionedThroughput=throughput(5, RATE))

    assert served.puts_until_refused(name) == FULL


def test_a_crash_after_units_were_raised_does_not_fill_a_table(tmp_path):
    with new_tables_full(data_dir=tmp_path) as served:
        name = served.table(**units(5, RATE))
        updated(served, name, ProvisionedThroughput=throughput(5, 100))
        now = served.clock.now()
        served.server.kill()
    with new_tables_full(start=now, data_dir=tmp_path) as served:
        # If the table was in use, the reserve of 5 seconds would be 500 units.
        assert served.puts_until_refused(name) == FULL


def test_a_recreated_table_has_the_burst_of_a_new_table(tmp_path):
    with new_tables_full(data_dir=tmp_path) as served:
        request = definition("pk:S", **units(5, RATE))
        name = request["TableName"]
        for _ in range(2):
            served.wire("CreateTable", request)
            assert served.puts_until_refused(name) == FULL
            served.clock.step(1)
            served.wire("DeleteTable", {"TableName": name})


def test_a_restored_table_has_the_burst_of_a_new_table(served):
    name = served.table(**units(5, RATE))
    assert served.puts_until_refused(name) == FULL
    served.clock.step(1)

    with restored(served.wire, back_up(served.wire, name)) as other:
        assert served.puts_until_refused(other) == FULL


def test_a_server_in_observe_mode_keeps_balances(tmp_path):
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


def test_an_option_reduces_the_burst_of_new_tables_even_after_a_crash(tmp_path):
    with new_tables_full("--initial-burst-seconds", "1", data_dir=tmp_path) as served:
        name = served.table(**units(5, RATE))
        assert served.put(name, item("a")).status == 200
        now = served.clock.now()
        served.server.kill()
    with new_tables_full(start=now, data_dir=tmp_path) as served:
        assert served.puts_until_refused(name) <= 1
