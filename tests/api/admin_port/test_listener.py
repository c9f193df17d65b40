"""The admin port: when the server opens it, and which requests are answered there."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.api.test_command_line import assert_gives_up
from tests.support.servers.admin import admin_port, ask, server_with_clock
from tests.support.servers.server import PROJECT, run_command, running_server


def test_the_admin_port_is_closed_with_no_admin():
    with running_server("--no-admin") as server:
        assert "Metrics" not in server.announcement


def admin_port_beside(main_port: int) -> int:
    """Start a server on this port, stop it, and return the admin port that it used."""
    command = [sys.executable, "-m", "dynactor", "serve", "--in-memory", "--port", str(main_port)]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        server.stdout.readline()
        announced = server.stdout.readline()
        server.terminate()
    found = re.fullmatch(r"Metrics on http://127\.0\.0\.1:(\d+)/metrics\n", announced)
    assert found, announced
    return int(found[1])


def test_the_next_port_is_used_if_the_first_is_in_use():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        main_port = probe.getsockname()[1]
    first = admin_port_beside(main_port)
    with socket.create_server(("127.0.0.1", first)):
        second = admin_port_beside(main_port)
    assert 8001 <= first < second <= 8010


def test_the_server_prints_the_address_of_its_metrics_by_default():
    with running_server() as server:
        answer = ask(admin_port(server), "/metrics")
        assert server.stop() == 0
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    for name in (
        "ThrottledRequests",
        "WriteThrottleEvents",
        "OnlineIndexPercentageProgress",
        "OnlineIndexConsumedWriteCapacity",
        "OnlineIndexThrottleEvents",
    ):
        assert f" {name}: ".encode() in answer.body


def test_the_admin_port_can_be_set_by_an_environment_variable():
    with running_server(environment={"DYNACTOR_ADMIN_PORT": "0"}) as server:
        assert ask(admin_port(server), "/metrics").status == 200


def test_the_admin_port_accepts_the_same_host_names_as_the_main_port():
    with running_server("--admin-port", "0", "--allowed-hosts", "db.test") as server:
        port = admin_port(server)
        assert ask(port, "/metrics?x=1", host="127.0.0.1:1").status == 200
        assert ask(port, "/metrics", method="HEAD", host="db.test").status == 200
        assert ask(port, "/metrics", host="db.example").status == 403
        assert ask(port, "/metrics", method="POST").status == 405
        assert ask(port, "/").status == 200
        assert ask(port, "/nothing").status == 404


def test_the_admin_port_of_an_open_server_is_not_open():
    open_to_all = ("--host", "0.0.0.0", "--allow-open")  # noqa: S104 - the test is of this
    with running_server("--admin-port", "0", *open_to_all) as server:
        port = admin_port(server)
        assert ask(port, "/metrics", host="db.example").status == 403
        # If the admin port listened on all addresses, it would answer on this one.
        with pytest.raises(OSError, match=r"refused|assign|unreachable|timed out"):
            socket.create_connection(("127.0.0.2", port), timeout=5).close()


def test_the_admin_port_is_opened_by_an_address_of_its_own():
    everywhere = ("--admin-host", "0.0.0.0", "--allow-open")  # noqa: S104 - the test is of this
    with running_server("--admin-port", "0", *everywhere) as server:
        assert server.endpoint.startswith("http://127.0.0.1:")
        port = admin_port(server)
        assert ask(port, "/metrics", host="dynactor:8001").status == 200
        assert ask(port, "/metrics", address="127.0.0.2").status == 200


def test_an_open_admin_port_accepts_configured_host_names():
    everywhere = ("--admin-host", "0.0.0.0", "--allow-open")  # noqa: S104 - the test is of this
    with running_server("--admin-port", "0", *everywhere, "--allowed-hosts", "db.test") as server:
        port = admin_port(server)
        assert ask(port, "/metrics", host="db.test").status == 200
        assert ask(port, "/metrics", host="db.example").status == 403


def test_the_admin_port_listens_on_ipv6():
    with running_server("--admin-port", "0", "--admin-host", "::1") as server:
        assert ask(admin_port(server, "[::1]"), "/metrics", address="::1").status == 200


def test_the_error_for_an_address_of_another_machine_names_it():
    arguments = ("--admin-port", "0", "--admin-host", "192.0.2.1", "--allow-open")
    done = run_command("serve", "--in-memory", "--port", "0", *arguments)
    assert_gives_up(done, "192.0.2.1", "--admin-host")


def test_the_error_for_a_port_in_use_names_it():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run_command("serve", "--in-memory", "--port", "0", "--admin-port", port)
    assert_gives_up(done, port, "--admin-port")


START = 2_000_000_000
STEP = ("/clock/step", "POST", {"seconds": 1})


def test_a_change_needs_a_header_and_is_refused_from_other_sites():
    with server_with_clock(START) as (server, clock):
        port = admin_port(server)
        answer = ask(port, *STEP, headers={"X-Dynactor-Admin": ""})
        assert answer.status == 403
        assert answer.json["message"] == "A change needs the header X-Dynactor-Admin: 1"
        answer = ask(port, *STEP, headers={"Origin": "http://evil.example"})
        assert answer.status == 403
        assert "http://evil.example" in answer.json["message"]
        assert clock.now() == START
        assert ask(port, *STEP, headers={"Origin": "http://localhost"}).status == 200
        assert clock.now() == START + 1


@pytest.mark.parametrize("content", [None, b"short", b"\xff" * 20])
def test_a_file_without_a_usable_secret_is_refused_at_start(tmp_path: Path, content: bytes | None):
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    done = run_command("serve", "--in-memory", "--admin-secret-file", str(path))
    assert_gives_up(done, "--admin-secret-file")
