"""The examples of docs/TESTING.md work in a test suite."""

from __future__ import annotations

import re
import subprocess
from contextlib import closing
from pathlib import Path

import boto3

import dynactor.testing
from tests.support.environment.suites import run_suite
from tests.support.servers.server import PROJECT

GUIDE = (PROJECT / "docs" / "TESTING.md").read_text()
FILES = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", GUIDE, re.DOTALL))


def test_a_suite_passes_with_the_pasted_examples(tmp_path: Path):
    assert list(FILES) == ["test_threads.py", "test_unittest.py", "test_server.py"]
    told = run_suite(tmp_path, FILES)
    assert told.returncode == 0, told.stdout
    assert "7 passed" in told.stdout


def test_the_plugins_options_are_the_documented_ones():
    plugin = (PROJECT / "dynactor" / "pytest_plugin.py").read_text()
    options = set(re.findall(r'addini\(\s*"(dynactor_\w+)"', plugin))
    assert options == set(re.findall(r"^\| `(dynactor_(?!server)\w+)` \|", GUIDE, re.MULTILINE))


def test_the_shell_commands_of_the_guide_work():
    lines = re.findall(r"^curl .*$", GUIDE, re.MULTILINE)
    assert len(lines) == 10
    with dynactor.testing.server() as server:
        for line in lines:
            done = subprocess.run(
                ["bash", "-c", line.replace("http://127.0.0.1:8001", server.admin_endpoint)],
                capture_output=True,
                text=True,
                check=True,
            )
            assert '"message"' not in done.stdout, line
        with closing(boto3.client("dynamodb", **server.client_arguments)) as client:
            assert client.list_tables()["TableNames"] == []
