"""The command ``dynactor serve``: output at the start, errors, and the stop."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import boto3
import psutil
import pytest

from tests.support.environment.hanging import HANG_SECONDS
from tests.support.servers.cancelled_server import CANCEL
from tests.support.servers.cancelled_server import MODULE as CANCELLED
from tests.support.servers.server import PROJECT, Server, run_command, running_server


def assert_gives_up(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("dynactor: ")
    assert done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr


def test_a_server_starts_with_less_than_6_times_the_processor_time_of_its_http_library():
    assert processor_seconds_of_a_start() < 6 * processor_seconds_of_an_import()


def processor_seconds_of_a_start() -> float:
    with running_server() as server:
        used = psutil.Process(server.process.pid).cpu_times()
        assert server.stop() == 0
    return used.user + used.system


def processor_seconds_of_an_import() -> float:
    program = "import time, aiohttp.web; print(time.process_time())"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_server_normally(signal_number: signal.Signals):
    with running_server() as server:
        server.process.send_signal(signal_number)
        assert server.process.wait(HANG_SECONDS) == 0
        assert "Traceback" not in server.log


def test_a_crash_of_native_code_prints_the_stacks_of_all_threads():
    with running_server() as server:
        server.process.send_signal(signal.SIGSEGV)
        assert server.process.wait(HANG_SECONDS) == -signal.SIGSEGV
        assert "Segmentation fault" in server.log
        assert "api/serve/service.py" in server.log


def test_an_end_without_a_request_is_logged_and_exits_with_an_error():
    with running_server(module=CANCELLED) as server:
        server.process.send_signal(CANCEL)
        assert server.process.wait(HANG_SECONDS) == 1
        assert "server_ended" in server.log


def test_the_server_prints_its_address_its_data_directory_and_a_command_to_paste(tmp_path: Path):
    data = tmp_path / "data"
    command = [sys.executable, "-m", "dynactor", "serve", "--port", "0", "--data-dir", str(data)]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(6)]
        process.terminate()
    endpoint = said[0].removeprefix("Listening on ").strip()
    assert endpoint.startswith("http://127.0.0.1:")
    assert said[1].startswith("Metrics on http://127.0.0.1:")
    assert said[2].startswith("Console on http://127.0.0.1:")
    assert said[3] == f"Data in {data}\n"
    assert f'boto3.resource("dynamodb", endpoint_url="{endpoint}"' in said[5]
    assert process.returncode == 0


def test_the_printed_command_works(default_server: Server):
    dynamodb = boto3.resource(
        "dynamodb",
        endpoint_url=default_server.endpoint,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )
    assert list(dynamodb.tables.all()) == []
    dynamodb.meta.client.close()


def test_the_error_for_a_port_in_use_names_it():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert_gives_up(run_command("serve", "--in-memory", "--port", port), port, "--port")


def test_the_error_for_an_address_of_another_machine_names_it():
    done = run_command("serve", "--in-memory", "--allow-open", "--host", "192.0.2.1")
    assert_gives_up(done, "192.0.2.1", "--host")


def test_the_error_for_an_unknown_host_names_it():
    done = run_command("serve", "--in-memory", "--allow-open", "--host", "nowhere.invalid")
    assert_gives_up(done, "nowhere.invalid", "--host")
    assert "Unknown error" not in done.stderr


def test_another_address_than_loopback_needs_allow_open():
    done = run_command("serve", "--in-memory", "--host", "0.0.0.0")  # noqa: S104 - it is refused
    assert_gives_up(done, "0.0.0.0", "--allow-open")  # noqa: S104


def test_memory_and_a_directory_exclude_each_other(tmp_path: Path):
    done = run_command("serve", "--in-memory", "--data-dir", str(tmp_path))
    assert_gives_up(done, "--in-memory", "--data-dir")


def test_the_error_for_a_data_directory_in_use_names_it(tmp_path: Path):
    with running_server(data_dir=tmp_path):
        done = run_command("serve", "--port", "0", "--data-dir", str(tmp_path))
    assert_gives_up(done, str(tmp_path), "in use")


def test_the_error_for_a_data_directory_that_cannot_be_created_names_it(tmp_path: Path):
    (tmp_path / "file").touch()
    done = run_command("serve", "--port", "0", "--data-dir", str(tmp_path / "file" / "data"))
    assert_gives_up(done, str(tmp_path / "file"))


def test_a_data_directory_of_a_newer_format_is_refused(tmp_path: Path):
    with running_server(data_dir=tmp_path) as server:
        assert server.stop() == 0
    (tmp_path / "format").write_text("999999\n")
    assert_gives_up(run_command("serve", "--port", "0", "--data-dir", str(tmp_path)), str(tmp_path))


def test_every_option_may_be_an_environment_variable():
    environment = {"DYNACTOR_REGION": "eu-west-3", "DYNACTOR_ALLOWED_HOSTS": "db.test,db2.test"}
    with running_server(environment=environment) as server:
        host, port = server.endpoint.removeprefix("http://").split(":")
        for name in ("db.test", "db2.test"):
            with socket.create_connection((host, int(port))) as bare:
                bare.sendall(f"GET / HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
                assert b"healthy: dynamodb.eu-west-3.amazonaws.com " in bare.recv(4096)


def test_an_unknown_option_is_reported_without_a_traceback():
    done = run_command("serve", "--no-such-option")
    assert done.returncode != 0
    assert "--no-such-option" in done.stderr + done.stdout
    assert "Traceback" not in done.stderr + done.stdout


def test_the_version_is_printed():
    assert run_command("--version").stdout.strip()


def test_completion_is_installed_for_a_shell(tmp_path: Path):
    done = run_command("--install-completion", "--shell", "bash", HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    [script] = tmp_path.glob(".local/share/bash-completion/completions/dynactor")
    assert "--kafka-bootstrap-servers" in script.read_text()
