"""The systemd unit: its directives are valid, and its variables are options."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.support.servers.server import PROJECT, run_command

UNIT = PROJECT / "compose" / "dynactor.service"
COMMAND = "/opt/dynactor/bin/dynactor"


def test_systemd_analyze_accepts_the_unit(tmp_path: Path):
    text = UNIT.read_text()
    assert f"ExecStart={COMMAND} serve\n" in text
    (tmp_path / UNIT.name).write_text(text.replace(COMMAND, "/bin/true"))
    command = ["systemd-analyze", "verify", "--man=no", tmp_path / UNIT.name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_variable_of_the_unit_is_an_option_of_the_server():
    told = run_command("serve", "--help", COLUMNS="500").stdout
    named = set(re.findall(r"DYNACTOR_\w+", UNIT.read_text()))
    assert named
    assert named <= set(re.findall(r"DYNACTOR_\w+", told))
