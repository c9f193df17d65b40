"""The command ``dynactor doctor`` reports facts about a server, without data and secrets."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import dynactor
from tests.support.clients.clients import WireClient
from tests.support.servers.server import run_command, running_server
from tests.support.tables.tables import definition

SECRET = "a-secret-of-mine"


def test_a_running_server_and_its_files_are_described_without_names_and_data(tmp_path: Path):
    with (
        running_server("--admin-port", "0", data_dir=tmp_path / "data") as server,
        closing(WireClient(server.endpoint)) as call,
    ):
        call("CreateTable", definition("pk:S", name=f"Table-{SECRET}"))
        call("PutItem", {"TableName": f"Table-{SECRET}", "Item": {"pk": {"S": SECRET}}})
        done = run_command(
            *("doctor", "--endpoint", server.endpoint, "--data-dir", str(tmp_path / "data")),
            DYNACTOR_KAFKA_SASL_PASSWORD=SECRET,
            DYNACTOR_REGION="eu-west-3",
        )
    assert done.returncode == 0
    assert SECRET not in done.stdout
    report = json.loads(done.stdout)
    assert (report["dynactor"], report["server"]["store"]) == (dynactor.__version__, "disk")
    assert report["environment"] == {
        "DYNACTOR_KAFKA_SASL_PASSWORD": "(set)",
        "DYNACTOR_REGION": "eu-west-3",
    }
    assert 'dynactor_partitions{index="0",table="1"} ' in "\n".join(report["server"]["metrics"])
    assert report["data_directory"]["files"]["format"] > 0
    assert report["packages"]["rocksdict"]
    assert report["limits"]["open_files"]


def test_without_a_server_the_rest_of_the_report_is_in_a_file(tmp_path: Path):
    output = tmp_path / "report.json"
    done = run_command("doctor", "--endpoint", "http://127.0.0.1:9", "--output", str(output))
    assert (done.returncode, str(output) in done.stdout) == (0, True)
    assert "Cannot reach" in json.loads(output.read_text())["server"]["problem"]


def test_a_failed_write_of_a_file_is_reported(tmp_path: Path):
    done = run_command("doctor", "--output", str(tmp_path), "--endpoint", "http://127.0.0.1:9")
    assert (done.returncode, str(tmp_path) in done.stderr) == (1, True)
