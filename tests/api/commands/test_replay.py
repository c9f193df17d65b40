"""Replays over the admin port and by the command ``dynactor replay``."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from typing import Any, NamedTuple

import pytest
from aiohttp import ClientSession
from msgspec import json

from dynactor.actors.database.database import Database
from dynactor.actors.phases.destination_messages import DisableDestination, EnableDestination
from dynactor.actors.phases.replays import Replays
from dynactor.actors.table.table import Table
from dynactor.api.admin.replay_routes import parse_start
from dynactor.api.admin_port.listener import Administered, serving_admin
from dynactor.api.http.browser_access import Access
from dynactor.api.http.protocol import Protocol
from dynactor.api.http.server import listen
from dynactor.api.registry import NOT_IMPLEMENTED, OPERATIONS
from dynactor.streams.kafka.broker import Unreachable
from dynactor.streams.sequence_number import SequenceNumber
from tests.api.test_command_line import assert_gives_up
from tests.support.clients.clients import WireClient
from tests.support.databases.databases import put, running_database, thread
from tests.support.databases.published import (
    TOPIC,
    published_table,
    relay_of,
    relay_settings,
    write_threads,
)
from tests.support.databases.replays import COPY, ConsumedTable, items_of
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.kafka.fake_broker import FakeBroker
from tests.support.servers.admin import admin_port
from tests.support.servers.server import PROJECT, run_command, running_server
from tests.support.stores.store import memory_store
from tests.support.tables.tables import definition, wait_until_active


class Admin(NamedTuple):
    """A server's admin port, and the database, table and broker behind the server."""

    endpoint: str
    database: Database
    table: Table
    broker: FakeBroker

    async def ask(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> tuple[int, Any]:
        data = json.encode(body) if body is not None else None
        headers = {"X-Dynactor-Admin": "1"} | ({"Content-Type": content_type} if data else {})
        async with ClientSession() as session:
            url = self.endpoint + path
            async with session.request(method, url, data=data, headers=headers) as response:
                content = await response.read()
                return response.status, json.decode(content) if content else None

    async def start(self, start: str, **members: Any) -> dict[str, Any]:
        body = {"table": "Thread", "from": start, "to_topic": COPY, **members}
        status, answer = await self.ask("POST", "/replays", body)
        assert status == 201, answer
        return answer

    async def wait(self, replay_id: str, state: str) -> dict[str, Any]:
        while True:
            status, answer = await self.ask("GET", f"/replays/{replay_id}")
            assert status == 200, answer
            if answer["state"] == state:
                return answer

    async def command(self, *arguments: str, stderr: int = PIPE) -> Process:
        """Start ``dynactor replay`` with these arguments."""
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "dynactor", "replay", "--table", "Thread", "--to-topic", COPY),
            *("--admin-endpoint", self.endpoint, *arguments),
            cwd=PROJECT,
            env={**os.environ, "TERM": "xterm"},
            stdout=PIPE,
            stderr=stderr,
        )

    async def run(self, *arguments: str) -> tuple[int | None, str, str]:
        return await ended(await self.command(*arguments))


async def ended(process: Process) -> tuple[int | None, str, str]:
    """Wait until a process ends; return its exit code, output and errors."""
    async with asyncio.timeout(HANG_SECONDS):
        stdout, stderr = await process.communicate()
    return process.returncode, stdout.decode(), stderr.decode()


@asynccontextmanager
async def running_admin() -> AsyncIterator[Admin]:
    """A published table of 7 items with 30 recorded changes, and its admin port."""
    broker = FakeBroker()
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(memory_store())
        database = await stack.enter_async_context(
            running_database(store, broker=broker, relays=relay_settings())
        )
        protocol = Protocol(database, OPERATIONS.values(), NOT_IMPLEMENTED)
        listener = stack.enter_context(listen("127.0.0.1", 0))
        access = Access(host_names=frozenset())
        endpoint = await stack.enter_async_context(
            serving_admin(Administered(store.figures, protocol), access, listener)
        )
        table = await published_table(database)
        await write_threads(table, range(30))
        yield Admin(endpoint, database, table, broker)


async def test_a_replay_is_started_described_and_canceled():
    async with running_admin() as admin:
        started = await admin.start("snapshot", follow=True)
        assert started == {
            "id": started["id"],
            "table": "Thread",
            "to_topic": COPY,
            "from": "snapshot",
            "follow": True,
            "state": "STARTING",
            "problem": None,
            "whole": True,
            "items": 0,
            "items_total": 7,
            "changes": 0,
            "changes_total": 0,
            "missing_changes": 0,
            "snapshots": 0,
            "omitted_images": 0,
        }
        await admin.wait(started["id"], "FOLLOWING")
        status, listed = await admin.ask("GET", "/replays")
        assert (status, [each["items"] for each in listed["replays"]]) == (200, [7])
        status, cancelled = await admin.ask("DELETE", f"/replays/{started['id']}")
        assert (status, cancelled["state"]) == (200, "CANCELLED")
        assert ConsumedTable.of(admin.broker).items == await items_of(admin.table)


@pytest.mark.parametrize(
    ("start", "shown"),
    [
        ("beginning", "beginning"),
        ("2020-01-31", "2020-01-31T00:00:00.000Z"),
        ("1577836800.5", "2020-01-01T00:00:00.500Z"),
        (SequenceNumber(1, 1).wire(), SequenceNumber(1, 1).wire()),
    ],
)
async def test_a_replay_starts_at_the_requested_position(start: str, shown: str):
    async with running_admin() as admin:
        for number in range(100):
            # Write many items, so that no partition is empty.
            await admin.table.write(put(thread(f"new {number}", "subject", n=number)))
        done = await admin.wait((await admin.start(start))["id"], "DONE")
        assert done["from"] == shown
        assert 0 < done["changes"] <= 130
        assert done["changes"] == len(admin.broker.messages(COPY))


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"table": "Nowhere"}, 404, "Table: Nowhere not found"),
        ({"from": "yesterday"}, 400, "'yesterday' is not a start: give beginning, snapshot"),
        ({"from": "-5"}, 400, "is not a start"),
        ({"from": "nan"}, 400, "is not a start"),
        ({"from": "9" * 21}, 400, "is not a start"),
        ({"from": "0" * 21}, 400, "is not the sequence number of a change of table Thread"),
        ({"from": 5}, 400, "Expected `str`"),
        ({"to_topic": "threads"}, 400, "Give another topic"),
        ({"to_topic": "a/b"}, 400, "can't be the name of a Kafka topic"),
        ({"until": "now"}, 400, "unknown field `until`"),
    ],
)
async def test_a_refused_replay_has_a_reason(change: dict[str, Any], status: int, words: str):
    async with running_admin() as admin:
        body = {"table": "Thread", "from": "beginning", "to_topic": COPY, **change}
        found, answer = await admin.ask("POST", "/replays", body)
        assert (found, words in answer["message"]) == (status, True), answer
        assert (await admin.ask("GET", "/replays"))[1] == {"replays": []}


async def test_other_methods_and_content_types_are_refused():
    async with running_admin() as admin:
        body = {"table": "Thread", "from": "beginning", "to_topic": COPY}
        assert (await admin.ask("POST", "/replays", body, "text/plain"))[0] == 415
        assert (await admin.ask("PUT", "/replays", body))[0] == 405
        assert (await admin.ask("DELETE", "/replays"))[0] == 405
        assert (await admin.ask("POST", "/replays/1", body))[0] == 405
        for method in ("GET", "DELETE"):
            status, answer = await admin.ask(method, "/replays/1")
            assert (status, "There is no replay 1" in answer["message"]) == (404, True)


def test_start_positions_are_parsed():
    assert parse_start("1577836800.123456", 0).number == 1_577_836_800_123_456
    assert parse_start("2020-01-01T00:00:00+01:00", 0).number == 1_577_833_200_000_000
    assert parse_start("000000000549755813893", 0).number == 549755813893
    assert parse_start("1h", 7_200.5).number == 3_600_500_000
    for text in ("2h", "1w", "h"):
        with pytest.raises(ValueError, match="a length of time such as 1h"):
            parse_start(text, 7_199)


async def test_the_command_reports_the_published_changes():
    async with running_admin() as admin:
        code, stdout, stderr = await admin.run("--from", "beginning")
        assert stdout == f"30 changes of table Thread were published to topic {COPY}\n"
        assert (code, stderr) == (0, "")


async def test_the_command_reports_missing_arguments():
    async with running_admin() as admin:
        await admin.database.ask(DisableDestination("Thread", TOPIC))
        while any(each.status != "DISABLED" for each in admin.table.definition.destinations):
            await asyncio.sleep(0)
        await write_threads(admin.table, range(100, 140))
        await admin.database.ask(EnableDestination("Thread", TOPIC))
        await write_threads(admin.table, range(200, 205))
        code, stdout, stderr = await admin.run("--from", "beginning")
        assert stdout == f"35 changes of table Thread were published to topic {COPY}\n"
        assert stderr.startswith("40 changes between the published ones are missing: ")
        assert code == 0


async def test_the_command_reports_missing_older_changes():
    async with running_admin() as admin:
        await admin.broker.wait_messages(TOPIC, 30)
        await write_threads(admin.table, range(30, 5_000))
        while relay_of(admin.database, admin.table).lag_records:
            await asyncio.sleep(0)
        await admin.database.actor.keep_streams()
        code, stdout, stderr = await admin.run("--from", "beginning")
        assert "changes of table Thread were published" in stdout
        assert stderr == (
            "Older changes of the table are not kept: --from snapshot starts with every item\n"
        )
        assert code == 0
        code, _, stderr = await admin.run("--from", "2020-01-01")
        assert "are kept from 20" in stderr
        assert code == 1


async def test_the_command_counts_the_items_of_a_snapshot():
    async with running_admin() as admin:
        code, stdout, stderr = await admin.run("--from", "snapshot")
        assert stdout == f"7 items and 0 changes of table Thread were published to topic {COPY}\n"
        assert (code, stderr) == (0, "")


async def test_progress_bars_on_a_terminal_show_an_unreachable_broker():
    async with running_admin() as admin:
        ours, its = os.openpty()
        with admin.broker.unreachable(Unreachable("nobody is there")):
            process = await admin.command("--from", "snapshot", stderr=its)
            os.close(its)
            shown = b""
            while b"waiting: nobody is there" not in shown:
                shown += await asyncio.to_thread(os.read, ours, 65_536)
        # Read the remaining output until the process closes its end of the terminal.
        with suppress(OSError):
            while more := await asyncio.to_thread(os.read, ours, 65_536):
                shown += more
        os.close(ours)
        assert await process.wait() == 0
        assert b"items" in shown
        assert b"7/7" in shown
        assert b"changes" in shown


async def test_the_command_ends_when_its_server_is_killed():
    async with running_admin() as admin:
        process = await admin.command("--from", "snapshot", "--follow")
        await admin.broker.wait_messages(COPY, 10)
    code, stdout, stderr = await ended(process)
    assert (code, stdout) == (1, "")
    assert stderr.startswith(("dynactor: Cannot reach", "dynactor: No answer from"))


async def test_the_command_prints_json_lines():
    async with running_admin() as admin:
        code, stdout, stderr = await admin.run("--from", "snapshot", "--json")
        lines = [json.decode(line) for line in stdout.splitlines()]
        assert (code, stderr) == (0, "")
        assert [line["state"] for line in lines][-1] == "DONE"
        assert (lines[-1]["items"], lines[-1]["to_topic"]) == (7, COPY)


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
async def test_the_command_follows_changes_until_it_is_stopped(signal_number: signal.Signals):
    async with running_admin() as admin:
        process = await admin.command("--from", "snapshot", "--follow")
        await admin.broker.wait_messages(COPY, 7)
        await write_threads(admin.table, range(100, 120))
        # The topic gets 3 gaps, 7 items and 20 changes.
        await admin.broker.wait_messages(COPY, 30)
        process.send_signal(signal_number)
        code, stdout, _ = await ended(process)
        assert (code, "7 items and 20 changes" in stdout) == (0, True)
        assert "then it was stopped" in stdout
        assert [each.state for each in admin.database.part(Replays).all()] == ["CANCELLED"]


async def test_a_refusal_by_the_server_ends_the_command():
    async with running_admin() as admin:
        code, stdout, stderr = await admin.run("--from", "yesterday")
        assert (code, stdout) == (1, "")
        assert stderr.startswith("dynactor: 'yesterday' is not a start")
        with admin.broker.unreachable(Unreachable("nobody is there")):
            process = await admin.command("--from", "beginning")
            while not admin.database.part(Replays).all():
                await asyncio.sleep(0)
            process.send_signal(signal.SIGINT)
            code, stdout, _ = await ended(process)
        assert (code, "0 changes" in stdout) == (1, True)


def test_a_server_without_kafka_and_a_missing_server_are_reported():
    wanted = ("--table", "Thread", "--from", "beginning", "--to-topic", COPY)
    with running_server("--admin-port", "0") as server:
        with closing(WireClient(server.endpoint)) as call:
            call("CreateTable", definition("pk:S", name="Thread"))
            wait_until_active(call, "Thread")
        place = ("--admin-endpoint", f"http://127.0.0.1:{admin_port(server)}")
        assert_gives_up(run_command("replay", *wanted, *place), "--kafka-bootstrap-servers")
        other = ("--admin-endpoint", server.endpoint)
        assert_gives_up(run_command("replay", *wanted, *other), "is not dynactor's")
    assert_gives_up(run_command("replay", *wanted, *place), "Cannot reach")
