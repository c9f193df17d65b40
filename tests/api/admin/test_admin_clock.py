"""The virtual clock over the admin port and by the command ``dynactor clock``."""

from __future__ import annotations

from collections.abc import Iterator
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.api.test_command_line import assert_gives_up
from tests.support.servers.admin import JSON, admin_port, ask
from tests.support.servers.server import Server, run_command, running_server

START = "2030-01-31T12:00:00Z"
START_EPOCH_SECONDS = 1_896_091_200.0
STANDING = {"now": START_EPOCH_SECONDS, "now_iso": "2030-01-31T12:00:00.000Z", "speed": 0.0}


@pytest.fixture
def port() -> Iterator[int]:
    """The admin port of a server whose virtual clock does not run."""
    with running_server("--admin-port", "0", "--virtual-clock", START) as server:
        assert "\nVirtual clock at 2030-01-31T12:00:00.000Z, stopped\n" in server.announcement
        yield admin_port(server)


def test_the_clock_is_read_stepped_and_set(port: int):
    assert ask(port, "/clock").json == STANDING
    stepped = ask(port, "/clock/step", "POST", {"seconds": 1.5})
    assert (stepped.status, stepped.json["now"]) == (200, START_EPOCH_SECONDS + 1.5)
    assert stepped.headers["Content-Type"] == JSON
    by_number = ask(port, "/clock", "PUT", {"now": START_EPOCH_SECONDS + 60}).json
    assert by_number == {**STANDING, "now": by_number["now"], "now_iso": by_number["now_iso"]}
    assert by_number["now_iso"] == "2030-01-31T12:01:00.000Z"
    by_text = ask(port, "/clock", "PUT", {"now": "2030-02-01", "speed": 60}).json
    assert by_text["speed"] == 60
    assert by_text["now"] >= 1_896_134_400
    while ask(port, "/clock").json["now"] == by_text["now"]:
        # Wait, because the loop's time has a precision of milliseconds.
        continue
    stopped = ask(port, "/clock", "PUT", {"speed": 0}).json
    assert ask(port, "/clock").json == stopped


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        ("PUT", "/clock", {"now": START_EPOCH_SECONDS - 1}, "never goes back"),
        ("PUT", "/clock", {"now": "2029-01-01"}, "never goes back"),
        ("PUT", "/clock", {"now": "soon"}, "is not a time"),
        ("PUT", "/clock", {"now": "nan"}, "A time is a number of seconds"),
        ("PUT", "/clock", {"now": 1e300}, "A time is a number of seconds"),
        ("PUT", "/clock", {"now": True}, "Expected `float | str | null`"),
        ("PUT", "/clock", {"speed": -1}, "A speed is a number from 0"),
        ("PUT", "/clock", {"speed": "fast"}, "Expected `float | null`"),
        ("PUT", "/clock", {"now": START_EPOCH_SECONDS + 1, "speed": -1}, "A speed is a number"),
        ("PUT", "/clock", {}, "Nothing to set"),
        ("PUT", "/clock", {"time": 1}, "unknown field `time`"),
        ("PUT", "/clock", "", "Input data was truncated"),
        ("PUT", "/clock", "[]", "Expected `object`"),
        ("POST", "/clock/step", {}, "missing required field `seconds`"),
        ("POST", "/clock/step", {"seconds": -1}, "never goes back"),
        ("POST", "/clock/step", {"seconds": 1e300}, "A time is a number of seconds"),
    ],
)
def test_an_invalid_change_is_refused_with_a_reason(
    standing_port: int, method: str, path: str, body: Any, words: str
):
    answer = ask(standing_port, path, method, body)
    assert answer.status == 400
    assert words in answer.json["message"]
    assert ask(standing_port, "/clock").json == STANDING


@pytest.fixture(scope="module")
def standing_port() -> Iterator[int]:
    """An admin port as ``port``, shared by tests that don't change the clock."""
    with running_server("--admin-port", "0", "--virtual-clock", START) as server:
        yield admin_port(server)


def test_other_methods_are_not_allowed(standing_port: int):
    for method, path, allowed in [
        ("DELETE", "/clock", "GET, HEAD, PUT"),
        ("POST", "/clock", "GET, HEAD, PUT"),
        ("GET", "/clock/step", "POST"),
    ]:
        answer = ask(standing_port, path, method)
        assert (answer.status, answer.headers["Allow"]) == (405, allowed)
    assert ask(standing_port, "/clock", "HEAD").status == 200
    assert ask(standing_port, "/clock/other").status == 404


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded"])
def test_a_web_page_cannot_change_the_clock(standing_port: int, content_type: str | None):
    answer = ask(standing_port, "/clock/step", "POST", {"seconds": 1}, content_type=content_type)
    assert answer.status == 415
    assert ask(standing_port, "/clock").json == STANDING


def test_a_server_in_real_time_reports_no_virtual_clock(default_server: Server):
    port = admin_port(default_server)
    assert "Virtual clock" not in default_server.announcement
    for method, path in [("GET", "/clock"), ("PUT", "/clock"), ("POST", "/clock/step")]:
        answer = ask(port, path, method, {"seconds": 1})
        assert answer.status == 404
        assert "--virtual-clock" in answer.json["message"]


def test_the_command_reads_steps_and_sets_the_clock(port: int):
    place = ("--admin-endpoint", f"http://127.0.0.1:{port}")

    def clock(*arguments: str) -> str:
        done = run_command("clock", *arguments, *place)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    said = "2030-01-31T12:00:00.000Z (1896091200.000000), stopped\n"
    assert clock() == clock("read") == said
    assert clock("step", "25h") == "2030-02-01T13:00:00.000Z (1896181200.000000), stopped\n"
    assert clock("set", "1896181230.5").startswith("2030-02-01T13:00:30.500Z ")
    assert clock("set", "2030-03-01").startswith("2030-03-01T00:00:00.000Z ")
    assert clock("speed", "60").endswith(", running at speed 60\n")
    assert clock("speed", "0").endswith(", stopped\n")
    assert_gives_up(run_command("clock", "set", "2030-01-01", *place), "never goes back")
    assert_gives_up(run_command("clock", "step", "soon", *place), "is not a duration")


def test_the_command_finds_its_server_by_an_environment_variable(standing_port: int):
    done = run_command("clock", DYNACTOR_CLOCK_ADMIN_ENDPOINT=f"http://127.0.0.1:{standing_port}")
    assert done.stdout.startswith("2030-01-31T12:00:00.000Z")


def test_the_command_names_the_address_without_a_server(default_server: Server):
    def clock(endpoint: str) -> CompletedProcess[str]:
        return run_command("clock", "--admin-endpoint", endpoint)

    assert_gives_up(clock(f"http://127.0.0.1:{admin_port(default_server)}"), "--virtual-clock")
    assert_gives_up(clock(default_server.endpoint), "is not dynactor's")
    assert_gives_up(clock("http://127.0.0.1:9"), "Cannot reach", "http://127.0.0.1:9")


@pytest.mark.parametrize("start", ["soon", "-1", "nan", "99999999999999"])
def test_an_invalid_start_time_is_refused(start: str):
    done = run_command("serve", "--in-memory", "--admin-port", "0", f"--virtual-clock={start}")
    assert_gives_up(done, "--virtual-clock: ", "time")


def test_a_virtual_clock_without_an_admin_port_is_refused():
    done = run_command("serve", "--in-memory", "--no-admin", "--virtual-clock", "now")
    assert_gives_up(done, "--virtual-clock needs the admin port")
