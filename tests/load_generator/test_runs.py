"""Runs as a user starts them: their output, their saved results, and their ends."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from dynactor.load.command import app
from dynactor.load.options import RunOptions
from dynactor.load.results.histogram import Histogram
from dynactor.load.results.result import load
from dynactor.load.run.one import run_once
from tests.support.clients.faulty_dynamodb import FaultyDynamoDB
from tests.support.servers.server import PROJECT, run_command, running_server


@pytest.fixture(scope="module")
def server_endpoint() -> Iterator[str]:
    with running_server() as server:
        yield server.endpoint


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.load", *map(str, arguments)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )


def short(endpoint: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return command(
        *("--endpoint", endpoint, "--keys", 500, "--connections", 8, "--duration", 1),
        *("--warm-up", 0.2, *arguments),
    )


def test_a_run_saves_the_results_it_shows(server_endpoint: str, tmp_path: Path):
    kept = tmp_path / "kept.json"
    done = short(server_endpoint, "--workload", "ycsb-a", "--output", kept, "--workers", 2)
    assert done.returncode == 0, done.stderr
    result = load(kept)
    assert result.label == "kept"
    assert result.total.requests == sum(each.requests for each in result.operations.values())
    assert f"{result.total.requests:,}" in done.stdout
    assert result.operations.keys() == {"get", "update"}
    assert result.total.errors == 0
    for operation in result.operations.values():
        histogram = Histogram.decode(operation.latency.histogram)
        assert histogram.total == operation.requests
        assert operation.latency.percentiles_us["99"] == histogram.percentile(99)
    assert [second.second for second in result.timeline] == list(range(len(result.timeline)))


def test_an_open_loop_sends_at_the_requested_rate(server_endpoint: str, tmp_path: Path):
    kept = tmp_path / "open.json"
    done = short(
        *(server_endpoint, "--workload", "get", "--rate", 300, "--workers", 2, "--ramp", 0.5),
        *("--output", kept, "--table", "open-loop"),
    )
    assert done.returncode == 0, done.stderr
    result = load(kept)
    assert result.total.requests + result.generator.unsent == pytest.approx(300, abs=2)


async def test_a_table_that_can_not_be_filled_ends_the_run_with_the_servers_answer():
    faulty = FaultyDynamoDB()
    faulty.refuses_batches = True
    async with faulty.serving() as server:
        done = await asyncio.to_thread(short, server.endpoint, "--workload", "get")
    assert done.returncode == 2
    assert "no batches today" in done.stderr
    assert "Traceback" not in done.stderr


async def test_requests_that_were_never_sent_count_in_the_latency_of_all():
    async with FaultyDynamoDB().serving() as server:
        options = RunOptions(
            endpoint=server.endpoint,
            workload="put",
            rate=50_000,
            connections=1,
            keys=100,
            warm_up=0.0,
            duration=0.5,
            quiet=True,
        )
        result = await run_once(options, Console())
    assert result.generator.unsent > 0
    waited = Histogram.decode(result.total.latency.histogram)
    assert waited.total == result.total.requests + result.generator.unsent
    assert waited.maximum > 250_000


def test_an_invalid_option_exits_with_the_code_for_errors():
    done = command("--keys", "many")
    assert done.returncode == 2
    assert "many" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_results_are_compared_and_plotted(
    server_endpoint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    files = [tmp_path / "one.json", tmp_path / "other.json"]
    for file in files:
        assert short(server_endpoint, "--workload", "get", "--output", file).returncode == 0
    for kind in ("png", "html"):
        drawn = tmp_path / f"plot.{kind}"
        compared = ["compare", *map(str, files), "--plot", str(drawn)]
        assert app(compared, result_action="return_value") == 0
        output = capsys.readouterr().out
        assert "one" in output
        assert "other" in output
        assert drawn.stat().st_size > 10_000
    page = (tmp_path / "plot.html").read_text()
    assert page.count("<svg") == 1
    assert "http" not in page.replace("http://www.w3.org", "").split("<svg")[0]


async def test_failed_requests_are_counted_and_set_the_exit_code(tmp_path: Path):
    kept = tmp_path / "failed.json"
    # This server supports only puts and gets.
    async with FaultyDynamoDB().serving() as server:
        done = await asyncio.to_thread(
            short, server.endpoint, "--mix", "get=50,update=50", "--output", kept
        )
    assert done.returncode == 3
    assert "ValidationException" in done.stdout
    assert "no UpdateItem" in done.stdout
    result = load(kept)
    update = result.operations["update"]
    assert update.errors == update.requests == result.total.errors > 0
    # Refusals are fast, and would lower the latencies if they counted.
    assert Histogram.decode(update.latency.histogram).total == 0


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (("--endpoint", "http://127.0.0.1:9"), "Nothing listens at 127.0.0.1:9"),
        (("--endpoint", "127.0.0.1:8000"), "is not an endpoint"),
        (("--workload", "ycsb-z"), "is not a workload; choose one of ycsb-a"),
        (("--mix", "get=1,got=2"), "'got' is not an operation"),
        (("--mix", "get"), "is not a share"),
        (("--key-choice", "zipf"), "is not a key choice"),
        (("--item-size", "large"), "is not an item size"),
        (("--workers", 3, "--connections", 2), "3 workers need at least as many"),
        (("--workload", "batch-write", "--keys", 10, "--verify"), "too few"),
        (("compare",), "Name the results"),
        (("compare", PROJECT / "pyproject.toml"), "is not a result of a load run"),
    ],
)
def test_an_impossible_run_is_reported_in_one_line(
    arguments: tuple[object, ...], output: str, capsys: pytest.CaptureFixture[str]
):
    assert app(list(map(str, arguments)), result_action="return_value") == 2
    assert output in capsys.readouterr().err


def test_a_table_that_the_generator_did_not_create_is_left_unchanged(server_endpoint: str):
    assert short(server_endpoint, "--workload", "get", "--table", "taken").returncode == 0
    done = short(server_endpoint, "--workload", "lsi-query", "--table", "taken")
    assert done.returncode == 2
    assert "--prepare recreate" in done.stderr
    verified = short(server_endpoint, "--workload", "get", "--table", "taken", "--verify")
    assert verified.returncode == 2
    assert "items that this run has written" in " ".join(verified.stderr.split())


def test_credentials_are_neither_printed_nor_saved(
    server_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDOFATEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-of-a-test")
    kept = tmp_path / "signed.json"
    done = short(server_endpoint, "--workload", "get", "--sign", "--output", kept)
    assert done.returncode == 0, done.stderr
    for text in (done.stdout, done.stderr, kept.read_text()):
        assert "AKIDOFATEST" not in text
        assert "a-secret-of-a-test" not in text
    assert json.loads(kept.read_text())["plan"]["sign"] is True


def test_a_run_without_required_credentials_says_how_to_set_them(tmp_path: Path):
    keys = tmp_path / "keys"
    keys.touch(0o600)
    keys.write_text("[load]\naws_access_key_id = AKIDLOAD\naws_secret_access_key = secret\n")
    with running_server("--credentials-file", str(keys)) as server:
        done = short(server.endpoint)
    assert (done.returncode, "add --sign" in done.stderr) == (2, True)


def test_the_generator_is_a_command_of_dynactor():
    done = run_command("load", "workloads")
    assert (done.returncode, "ycsb-a" in done.stdout) == (0, True)
    done = run_command("load", "--endpoint", "http://127.0.0.1:9")
    assert (done.returncode, "Nothing listens at 127.0.0.1:9" in done.stderr) == (2, True)
