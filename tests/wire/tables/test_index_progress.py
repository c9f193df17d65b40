"""The progress metric of a backfill follows the written entries."""

from __future__ import annotations

from contextlib import closing

import pytest

from tests.support.clients.clients import WireClient
from tests.support.servers.clocked_server import clocked_server
from tests.support.tables.tables import (
    definition,
    global_index,
    wait_until_active,
    wait_until_indexes_active,
)
from tests.support.tables.ttl import put_all, wait_until

START = 1_700_000_000
# More items than the burst of 300 units that the index has at first.
ITEMS = 400
FIRST_ENTRIES = 300
STEP_SECONDS = 5
STEPS = 10


def throughput(units: int) -> dict[str, dict[str, int]]:
    return {"ProvisionedThroughput": {"ReadCapacityUnits": units, "WriteCapacityUnits": units}}


@pytest.mark.ours_alone("no other server has a clock to set")
def test_progress_rises_after_every_few_entries():
    request = definition("pk:S")
    name = request["TableName"]
    index = global_index("by-a", "a", **throughput(1))
    added = {
        "AttributeDefinitions": [{"AttributeName": "a", "AttributeType": "S"}],
        "GlobalSecondaryIndexUpdates": [{"Create": index}],
    }
    # The index gets more units only when the test advances the clock.
    with (
        clocked_server(START, "--throttling", "enforce") as clocked,
        closing(WireClient(clocked.endpoint)) as wire,
    ):

        def metric(of_index: str) -> float:
            return clocked.metric(f"dynactor_online_index_{of_index}", name, "by-a")

        wire("CreateTable", request)
        wait_until_active(wire, name)
        put_all(wire, name, *[{"pk": {"S": str(n)}, "a": {"S": "x"}} for n in range(ITEMS)])
        wire("UpdateTable", {"TableName": name, "BillingMode": "PROVISIONED", **throughput(1_000)})
        wait_until_active(wire, name)
        wire("UpdateTable", {"TableName": name, **added})
        wait_until(lambda: metric("throttle_events_total") > 0)
        # The last of the first entries may become durable after the throttle event.
        written_first = 100 * (FIRST_ENTRIES - 1) / ITEMS
        wait_until(lambda: metric("percentage_progress") >= written_first)
        progress = [metric("percentage_progress")]
        for _ in range(STEPS):
            clocked.set(clocked.now + STEP_SECONDS)
            wait_until(lambda: metric("percentage_progress") > progress[-1])
            progress.append(metric("percentage_progress"))
        while metric("percentage_progress") < 100:
            clocked.set(clocked.now + STEP_SECONDS)
        wait_until_indexes_active(wire, name)
        assert metric("percentage_progress") == 100
    written = 100 * STEPS * STEP_SECONDS / ITEMS
    assert written / 2 < progress[-1] - progress[0] < written * 2
