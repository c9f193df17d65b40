"""The live view: the use of partitions as events."""

from __future__ import annotations

import json
from typing import Any

from dynactor.actors.table.messages import CreateTable
from dynactor.api.console.live import table_use
from tests.support.databases.databases import (
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.servers.console import TABLE, opened_page

WRITES = 40


async def test_partitions_have_their_ranges_and_counts():
    async with running_database(partitions_per_table=4) as database:
        await database.ask(CreateTable(table_definition()))
        for number in range(WRITES):
            await database.table("Thread").write(put(thread(f"forum-{number}", "a")))
        use = await table_use(database, "Thread")
    assert use is not None
    (table,) = use.resources
    assert [partition.start for partition in table.partitions] == [0.0, 0.25, 0.5, 0.75]
    assert sum(partition.items for partition in table.partitions) == WRITES
    assert sum(partition.write_units for partition in table.partitions) == WRITES
    assert all(partition.items == partition.write_units for partition in table.partitions)
    assert table.write_units == WRITES
    assert use.recording == "some"
    assert sum(each.weight for each in table.keys["writes"]) <= WRITES


async def test_a_page_receives_events_in_json():
    async with opened_page() as page:
        await page.perform("CreateTable", TABLE)
        event: dict[str, Any] = {}
        headers = {"X-Dynactor-Console": page.token}
        async with page.session.get("/console/live?table=Thread", headers=headers) as response:
            assert response.headers["Content-Type"] == "text/event-stream"
            line = await response.content.readline()
            event = json.loads(line.removeprefix(b"data: "))
        assert event["resources"][0]["partition_count"] == len(event["resources"][0]["partitions"])
        # The stream of a table that does not exist ends.
        assert (await page.ask("GET", "/console/live?table=None"))[1] == "data: null\n\n"
        assert (await page.ask("GET", "/console/live?table=Thread", X_Dynactor_Console=""))[
            0
        ] == 401
