"""What docs/TESTING.md tells to paste into a test suite works there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.servers.server import PROJECT

GUIDE = (PROJECT / "docs" / "TESTING.md").read_text()
FILES = re.findall(r"```python\n# (\w+\.py)\n(.*?)```", GUIDE, re.DOTALL)

A_SUITE = """
import pytest


@pytest.mark.parametrize("run", [1, 2])
def test_each_begins_with_no_tables(dynamodb, run):
    dynamodb.create_table(
        TableName="Thread",
        KeySchema=[{"AttributeName": "ForumName", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "ForumName", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    ).put_item(Item={"ForumName": "EC2"})
"""


def test_a_suite_passes_with_what_is_pasted(tmp_path: Path):
    assert [name for name, _ in FILES] == ["conftest.py", "test_time.py"]
    for name, content in [*FILES, ("test_tables.py", A_SUITE)]:
        (tmp_path / name).write_text(content)
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    told = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout
    assert "4 passed" in told.stdout
