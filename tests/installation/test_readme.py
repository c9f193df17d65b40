"""The README keeps its word: the tour works when pasted, the options are all there."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import closing
from dataclasses import fields
from pathlib import Path

from api.config import ServeOptions
from tests.support.clients import boto3_client
from tests.support.server import PROJECT, running_server

README = (PROJECT / "README.md").read_text()
ENDPOINT = "http://127.0.0.1:8000"


def test_the_tour_works_when_pasted_and_its_table_outlives_the_server(tmp_path: Path):
    (tour,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert ENDPOINT in tour
    with running_server(data_dir=tmp_path / "data") as server:
        command = [sys.executable, "-c", tour.replace(ENDPOINT, server.endpoint)]
        told = subprocess.run(command, capture_output=True, text=True, check=False)
        assert told.returncode == 0, told.stderr
        *threads, capacity = told.stdout.splitlines()
        assert threads
        assert all(re.match(r"2026-01-2\d thread \d{3} \d+ \{'old'\}", line) for line in threads)
        assert "LocalSecondaryIndexes" in capacity
        server.stop()
    with (
        running_server(data_dir=tmp_path / "data") as server,
        closing(boto3_client(server.endpoint)) as client,
    ):
        assert client.describe_table(TableName="Thread")["Table"]["ItemCount"] == 100


def test_every_option_stands_in_the_readme():
    shown = set(re.findall(r"^\| `--([a-z-]+)`", README, re.MULTILINE))
    assert shown == {field.name.replace("_", "-") for field in fields(ServeOptions)}
