"""Advice, the cost of an index, and the log of requests over the console's paths."""

from __future__ import annotations

import json
from collections import deque

from dynactor.actors.table.messages import CreateTable
from dynactor.api.console.advice import index_cost
from dynactor.api.http.protocol import Answer, Request
from dynactor.api.http.request_log import AnsweredRequest
from dynactor.storage import key_layout
from dynactor.storage.store import Closed
from tests.support.clients.clients import AUTHORIZATION, JSON_1_0, TARGET_PREFIX
from tests.support.databases.databases import put, table_definition, thread
from tests.support.servers.console import TABLE, Page, opened_page
from tests.support.stores.stepped_store import pages_of, stepped_database

ITEMS = 8


async def fill(page: Page) -> None:
    await page.perform("CreateTable", TABLE)
    for number in range(ITEMS):
        item = {"pk": {"S": str(number)}, "status": {"S": "open" if number else "paid"}}
        await page.perform("PutItem", {"TableName": "Thread", "Item": item})


async def test_advice_is_that_of_the_command():
    async with opened_page() as page:
        await fill(page)
        status, report, _ = await page.ask("GET", "/console/advice?table=Thread")
        assert (await page.ask("GET", "/console/advice?table=None"))[0] == 404
    assert status == 200
    assert report["table"] == "Thread"
    assert report["sampled_items"] == ITEMS
    assert {"Partition key", "Throughput"} <= {each["about"] for each in report["findings"]}


async def test_an_index_has_its_cost_before_it_exists():
    async with opened_page() as page:
        await fill(page)
        status, cost, _ = await page.ask("GET", "/console/index-cost?table=Thread&partition=status")
        for wrong in ("", "&partition=a&partition_type=X", "&partition=a&projection=SOME"):
            assert (await page.ask("GET", f"/console/index-cost?table=Thread{wrong}"))[0] == 400
    assert status == 200
    assert cost["entries"] == ITEMS
    assert cost["forecast"]["keys"][0] == {"key": {"status": {"S": "open"}}, "share": 7 / 8}
    # Each write of a small item is one unit, and all of them happened within a second or two.
    assert 0 < cost["busiest"]["write_units"] <= ITEMS


async def test_the_cost_of_an_index_reads_no_sizes_of_item_collections():
    async with stepped_database() as (store, database):
        await database.ask(CreateTable(table_definition(local_sort_keys=["posts"])))
        table = database.table("Thread")
        await table.write(put(thread("S3", "a", posts=1)))
        sizes = key_layout.collection_range(table.definition.table_id)
        store.gate_before(pages_of(*sizes)).fail(Closed("the sizes were read"))
        cost = await index_cost(database, table, {"partition": "subject"})
    assert cost.entries == 1


async def test_requests_of_clients_are_recorded_while_a_page_listens():
    async with opened_page() as page:
        await page.perform("CreateTable", TABLE)
        protocol = page.protocol
        heard: deque[AnsweredRequest] = deque()

        async def ask(operation: str, body: object) -> None:
            answer = protocol.answer(
                Request(
                    TARGET_PREFIX + operation,
                    JSON_1_0,
                    AUTHORIZATION,
                    "",
                    "localhost",
                    "",
                    "",
                    json.dumps(body).encode(),
                )
            )
            done = answer if isinstance(answer, Answer) else await answer
            # Only a client that asks for the explanation gets it.
            assert done.explanations == {}

        item = {"TableName": "Thread", "Item": {"pk": {"S": "a secret key"}}}
        await ask("PutItem", item)
        protocol.listen(heard)
        await ask("PutItem", item)
        await ask("GetItem", {"TableName": "Thread", "Key": {"other": {"S": "a"}}})
        # The console's own requests are left out.
        await page.perform("ListTables", {})
        protocol.stop_listening(heard)
        await ask("PutItem", item)
    put, failed = heard
    assert (put.operation, put.tables, put.capacity_units) == ("PutItem", ("Thread",), 1)
    assert (put.http_status, put.code) == (200, "")
    assert put.milliseconds > 0
    assert (failed.operation, failed.code) == ("GetItem", "ValidationException")
    assert "secret" not in repr(heard)


async def test_the_log_of_requests_is_sent_as_events():
    async with opened_page() as page:
        headers = {"X-Dynactor-Console": page.token}
        async with page.session.get("/console/requests", headers=headers) as response:
            assert await response.content.readline() == b"data: []\n"
            assert len(page.protocol._log.listeners) == 1
