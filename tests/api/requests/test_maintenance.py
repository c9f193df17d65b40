"""Reads by dynactor's own commands are not counted as an application's use of a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.support.clients.clients import WireClient
from tests.support.servers.admin import admin_port, ask
from tests.support.servers.server import Server, run_command, running_server
from tests.support.tables.tables import definition

TABLE = "Orders"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with (
        running_server("--admin-port", "0") as server,
        closing(WireClient(server.endpoint)) as wire,
    ):
        wire("CreateTable", definition("pk:S", name=TABLE))
        for number in range(20):
            wire("PutItem", {"TableName": TABLE, "Item": {"pk": {"S": f"{number}"}}})
        yield server


def scans(server: Server) -> float:
    """The number of counted pages of scans."""
    told = ask(admin_port(server), f"/insights/use?table={TABLE}").json
    found: float = told["uses"][""]["scans"]
    return found


def test_scans_of_applications_are_counted_and_scans_for_violations_are_not(server: Server):
    done = run_command(
        *("violations", "--endpoint", server.endpoint),
        *("--table", TABLE, "--partition-key", "score:N"),
    )
    assert done.returncode == 0, done.stderr
    assert scans(server) == 0
    with closing(WireClient(server.endpoint)) as wire:
        wire("Scan", {"TableName": TABLE})
    assert scans(server) == 1
