"""``dynactor.testing.server``, which starts a server for tests and always stops it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import boto3
import psutil
import pytest

import dynactor.testing
from tests.support.servers.server import PROJECT

_DEADLINE_SECONDS = 30

STARTING = """
import os, sys, time
import dynactor.testing

with dynactor.testing.server() as server:
    print(server.process_id, flush=True)
    {then}
    time.sleep(600)
"""


def wait_gone(process_id: int) -> None:
    try:
        psutil.Process(process_id).wait(_DEADLINE_SECONDS)
    except psutil.NoSuchProcess:
        return


def started_by_another_process(then: str = "") -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-c", STARTING.format(then=then)]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        try:
            yield parent, int(parent.stdout.readline())
        finally:
            parent.kill()


def test_a_server_answers_within_its_context_and_ends_with_it():
    with dynactor.testing.server() as server:
        with closing(boto3.client("dynamodb", **server.client_arguments)) as client:
            assert client.list_tables()["TableNames"] == []
        process_id = server.process_id
    assert not psutil.pid_exists(process_id)


def test_a_server_answers_within_an_asynchronous_context():
    async def use() -> int:
        async with dynactor.testing.server() as server:
            with closing(boto3.client("dynamodb", **server.client_arguments)) as client:
                tables = await asyncio.to_thread(client.list_tables)
            assert tables["TableNames"] == []
            return server.process_id

    assert not psutil.pid_exists(asyncio.run(use()))


def test_a_start_that_is_cancelled_leaves_no_server():
    async def cancelled() -> int:
        context = dynactor.testing.server()
        entering = asyncio.create_task(context.__aenter__())
        # After one turn of the event loop the process exists, and a thread waits for it.
        await asyncio.sleep(0)
        assert context._process is not None
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering
        return context._process.process_id

    assert not psutil.pid_exists(asyncio.run(cancelled()))


def test_a_program_finds_the_server_by_environment_variables():
    program = 'import boto3; print(boto3.client("dynamodb").list_tables()["TableNames"])'
    with dynactor.testing.server() as server:
        told = subprocess.run(
            [sys.executable, "-c", program],
            env={"PATH": os.environ["PATH"], **server.environment},
            capture_output=True,
            text=True,
            check=True,
        )
    assert told.stdout.strip() == "[]"


def test_a_server_can_be_stopped_before_the_end_of_its_context():
    with dynactor.testing.server() as server:
        server.stop()
        assert not psutil.pid_exists(server.process_id)
        assert isinstance(server.log, str)


def test_options_are_passed_to_the_server():
    with dynactor.testing.server("--virtual-clock", "2030-01-31T12:00:00Z") as server:
        assert server.clock.now == 1_896_091_200
        assert server.clock.step(60) == 1_896_091_260
        server.clock.set("2030-02-01T00:00:00Z", speed=0)
        assert server.clock.now == 1_896_134_400


def test_the_region_is_in_arns():
    with (
        dynactor.testing.server(region="eu-west-1") as server,
        closing(boto3.client("dynamodb", **server.client_arguments)) as client,
    ):
        table = client.create_table(
            TableName="Thread",
            KeySchema=[{"AttributeName": "Id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "Id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )["TableDescription"]
    assert table["TableArn"].startswith("arn:aws:dynamodb:eu-west-1:")


def test_a_refusal_of_the_admin_port_is_an_error_with_its_message():
    with dynactor.testing.server() as server, pytest.raises(dynactor.testing.AdminError) as raised:
        server.clock.set(0)
    assert "never goes back" in str(raised.value)


def test_a_failed_start_shows_the_command_and_the_log():
    with (
        pytest.raises(dynactor.testing.ServerError) as raised,
        dynactor.testing.server("--gsi-lag", "long"),
    ):
        pass
    assert "exit code 1" in str(raised.value)
    assert "--gsi-lag long is not understood" in str(raised.value)


def test_environment_variables_for_other_servers_are_ignored(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DYNACTOR_DATA_DIR", "/nonexistent")
    with dynactor.testing.server() as server:
        assert "/nonexistent" not in server.log


def test_modules_of_the_tests_directory_do_not_replace_those_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "dynactor.py").write_text("raise SystemExit('the wrong dynactor')\n")
    monkeypatch.chdir(tmp_path)
    with dynactor.testing.server() as server:
        assert "the wrong dynactor" not in server.log


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_ends_with_the_process_that_started_it(signal_number: signal.Signals):
    for parent, process_id in started_by_another_process():
        parent.send_signal(signal_number)
        parent.wait()
        wait_gone(process_id)
        assert not psutil.pid_exists(process_id)


def test_a_server_ends_with_its_parent_although_a_fork_keeps_the_pipe_open():
    then = "print(os.getpid(), flush=True) if os.fork() == 0 else None"
    for parent, process_id in started_by_another_process(then):
        assert parent.stdout is not None
        fork = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        parent.wait()
        try:
            wait_gone(process_id)
            assert fork.is_running()
        finally:
            fork.kill()


def test_a_server_ends_with_its_parent_for_any_standard_input():
    starting = (
        "import subprocess, sys, time;"
        "server = subprocess.Popen([sys.executable, '-m', 'dynactor', 'serve', '--in-memory',"
        " '--port', '0', '--exit-with-parent'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE);"
        "server.stdout.readline(); print(server.pid, flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", starting]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        process_id = int(parent.stdout.readline())
        assert psutil.pid_exists(process_id)
        parent.kill()
        wait_gone(process_id)


def test_ctrl_c_in_the_terminal_reaches_the_tests_and_not_the_server():
    with dynactor.testing.server() as server:
        assert os.getpgid(server.process_id) != os.getpgid(0)
