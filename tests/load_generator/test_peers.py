"""The measurements beside other servers, run with this server alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.servers.server import PROJECT


def printed(*arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.load", *map(str, arguments)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_servers_features_are_printed(tmp_path: Path):
    told = printed("features", "--servers", "dynactor", "--directory", tmp_path).splitlines()
    assert told[0] == "dynactor: stream: INSERT, MODIFY, REMOVE"
    assert told[1].startswith("dynactor: throttling: ProvisionedThroughputExceededException after ")
    refused, _, rest = told[2].removeprefix("dynactor: conflicts: ").partition(" ")
    assert int(refused) > 0
    assert rest == "of 640 transactions"
    assert told[3] == "dynactor: expiry: deleted; the stream record is REMOVE and names the service"
    assert told[4] == "dynactor: kill -9: the write is there"


def test_start_and_memory_are_printed(tmp_path: Path):
    servers = ("--servers", "dynactor-memory")
    told = printed(
        *("footprints", *servers, "--rounds", 1, "--filled-rounds", 1, "--directory", tmp_path)
    )
    lines = [line.strip("│ ").split("│") for line in told.splitlines() if "dynactor" in line]
    rows = {name.strip(): list(map(float, figures)) for name, *figures in lines}
    assert rows.keys() == {"dynactor-memory"}
    for start, cpu, help_cpu, idle, idle_pss, filled, filled_pss in rows.values():
        assert start > 0
        assert cpu > help_cpu > 0
        assert idle_pss <= idle <= filled
        assert filled_pss <= filled
