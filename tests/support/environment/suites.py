"""Test suites of users: files in a folder, run by a separate pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.servers.server import PROJECT

# Without this, pytest would load every installed plugin.
_ISOLATED = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def suite_command(*arguments: str, plugins: tuple[str, ...] = ()) -> list[str]:
    """The command that runs the suite in its working directory with dynactor's plugin."""
    named = [part for name in ("dynactor.pytest_plugin", *plugins) for part in ("-p", name)]
    return [sys.executable, "-m", "pytest", "-q", *named, "-p", "no:cacheprovider", *arguments]


def suite_environment(**more: str) -> dict[str, str]:
    """The environment for ``suite_command``; the suite imports the package of this checkout."""
    return {**os.environ, **_ISOLATED, "PYTHONPATH": str(PROJECT), **more}


def run_suite(
    folder: Path,
    files: Mapping[str, str],
    *arguments: str,
    ini: str = "",
    plugins: tuple[str, ...] = (),
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Write the files into the folder and run their tests, with these lines of pytest.ini."""
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "pytest.ini").write_text(f"[pytest]\n{ini}\n")
    return subprocess.run(
        suite_command(*arguments, plugins=plugins),
        cwd=folder,
        env=suite_environment(**environment),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
