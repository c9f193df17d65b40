"""Commands find the admin port by the address of the server."""

from __future__ import annotations

import json

import pytest

import dynactor
from tests.api.test_command_line import assert_gives_up
from tests.support.servers.admin import admin_port, ask
from tests.support.servers.server import Server, run_command, running_server

EVERYWHERE = ("--host", "0.0.0.0", "--allow-open")  # noqa: S104 - the test is of this
ADMIN_EVERYWHERE = ("--admin-port", "0", "--admin-host", "0.0.0.0", "--allow-open")  # noqa: S104
VIRTUAL_CLOCK = ("--virtual-clock", "2030-01-31T12:00:00Z")


def port_of(server: Server) -> int:
    return int(server.endpoint.rpartition(":")[2])


def test_a_server_reports_only_its_version_store_and_admin_listener(default_server: Server):
    port = port_of(default_server)
    assert json.loads(ask(port, "/_dynactor").body) == {
        "version": dynactor.__version__,
        "store": "memory",
        "admin_endpoint": f"http://127.0.0.1:{admin_port(default_server)}",
    }
    assert ask(port, "/_dynactor", host="db.example").status == 403
    assert ask(port, "/_dynactor/more").status == 404


def test_a_server_on_disk_without_an_admin_port_reports_that(tmp_path):
    with running_server("--no-admin", data_dir=tmp_path) as server:
        told = json.loads(ask(port_of(server), "/_dynactor").body)
    assert (told["store"], told["admin_endpoint"]) == ("disk", None)


def test_the_address_of_an_admin_port_on_all_addresses_has_the_servers_host():
    with running_server(*ADMIN_EVERYWHERE, "--allowed-hosts", "db.test") as server:
        port = admin_port(server)
        for host, name in (("db.test:1", "db.test"), ("[::1]:80", "[::1]"), ("10.0.0.1", None)):
            told = json.loads(ask(port_of(server), "/_dynactor", host=host).body)
            assert told["admin_endpoint"] == f"http://{name or host}:{port}"


def test_the_clock_and_insights_are_found_by_the_servers_address():
    with running_server("--admin-port", "0", *VIRTUAL_CLOCK) as server:
        place = ("--endpoint", server.endpoint)
        assert run_command("clock", *place).stdout.startswith("2030-01-31T12:00:00.000Z")
        done = run_command("insights", "--table", "Missing", *place)
        assert "There is no table Missing" in done.stderr
        assert_gives_up(run_command("backup", *place), "--backup-dir")
        done = run_command("replay", "--table", "T", "--from", "1h", "--to-topic", "U", *place)
        assert_gives_up(done, "T")
        done = run_command("advise", "--table", "Missing", *place)
        assert "Missing" in done.stderr


def test_the_error_without_an_admin_listener_names_the_options():
    with running_server("--no-admin") as server:
        done = run_command("clock", "--endpoint", server.endpoint)
        assert_gives_up(done, f"{server.endpoint} has no admin listener", "without --no-admin")


@pytest.mark.parametrize("command", [("clock",), ("insights", "--table", "T"), ("backup",)])
def test_the_error_for_a_missing_server_says_how_to_start_one(command: tuple[str, ...]):
    done = run_command(*command, "--endpoint", "http://127.0.0.1:9")
    assert_gives_up(done, "http://127.0.0.1:9", "is the server running there?", "dynactor serve")


def test_the_error_for_a_missing_admin_port_names_the_option_of_its_address():
    done = run_command("nodes", "--admin-endpoint", "http://127.0.0.1:9")
    assert_gives_up(done, "http://127.0.0.1:9", "of another one with --admin-endpoint")


def test_another_kind_of_server_is_distinguished_from_dynactor(default_server: Server):
    place = f"http://127.0.0.1:{admin_port(default_server)}"
    done = run_command("clock", "--endpoint", place)
    assert_gives_up(done, f"{place} is not dynactor")


@pytest.mark.parametrize("place", ["127.0.0.1:8000", "ftp://127.0.0.1", "http://", "http://[::1"])
def test_the_error_for_an_invalid_address_shows_a_valid_one(place: str):
    assert_gives_up(run_command("clock", "--endpoint", place), "give http://HOST:PORT")


def test_a_server_on_all_addresses_prints_a_usable_address():
    with running_server(*EVERYWHERE) as server:
        line = server.announcement.splitlines()[0]
        assert line.startswith("Listening on http://127.0.0.1:")
        assert line.endswith(" and all other addresses of this machine")
        assert ask(port_of(server), "/").status == 200


def test_the_error_for_a_host_names_the_option_that_allows_it(default_server: Server):
    for port in (port_of(default_server), admin_port(default_server)):
        body = ask(port, "/metrics", host="db.example:8000").body.decode()
        assert "allow it by --allowed-hosts db.example" in body
        assert "--allowed-hosts" not in ask(port, "/metrics", host="a b").body.decode()
