"""Hooks and continuous integration run the project's own commands."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import yaml

from tests.support.servers.server import PROJECT

HOOKS = PROJECT / ".pre-commit-config.yaml"
WORKFLOW = PROJECT / ".github" / "workflows" / "ci.yaml"
CHECK = PROJECT / ".ci" / "mypy-changed"


def test_every_hook_is_local_and_its_command_exists():
    [repository] = yaml.safe_load(HOOKS.read_text())["repos"]
    assert repository["repo"] == "local"
    words = [shlex.split(hook["entry"]) for hook in repository["hooks"]]
    files = {word for entry in words for word in entry if "/" in word}
    assert files == {".venv/bin/ruff", ".ci/mypy-changed"}
    assert all(hook["language"] == "system" for hook in repository["hooks"])


def test_continuous_integration_runs_the_same_script():
    steps = yaml.safe_load(WORKFLOW.read_text())["jobs"]["run"]["steps"]
    assert {"run": "bash .ci/run"} in steps
    assert (PROJECT / ".ci" / "run").is_file()


def test_changed_files_are_checked_as_modules_of_their_packages(tmp_path: Path):
    folders = [".ci", ".venv/bin"]
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
    script = tmp_path / ".ci" / "mypy-changed"
    script.write_text(CHECK.read_text())
    (tmp_path / "pyproject.toml").write_text((PROJECT / "pyproject.toml").read_text())
    mypy = tmp_path / ".venv" / "bin" / "mypy"
    mypy.write_text('#!/bin/sh\necho "$@"\n')
    mypy.chmod(0o755)
    changed = [
        "api/options/files.py",
        "model/keys/__init__.py",
        "dynactor/testing.py",
        "tests/support/servers/server.py",
        "tests/wire/items/test_put_item.py",
    ]
    done = subprocess.run(
        ["bash", str(script), *changed], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [
        *("--module", "dynactor.api.options.files"),
        *("--module", "dynactor.model.keys"),
        *("--module", "dynactor.testing"),
        *("--module", "tests.support.servers.server"),
    ]
