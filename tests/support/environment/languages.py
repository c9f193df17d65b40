"""Extracts programs in other languages from docs/TESTING.md, and runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.environment.maven_jars import user_cache
from tests.support.servers.server import PROJECT

_GUIDE = (PROJECT / "docs" / "TESTING.md").read_text()
_DEADLINE_SECONDS = 600


def guide_files(language: str) -> Mapping[str, str]:
    """The files of docs/TESTING.md in a language, by name."""
    return dict(re.findall(rf"```{language}\n// (\S+)\n(.*?)```", _GUIDE, re.DOTALL))


def kept_folder(name: str) -> Path:
    """A folder that is kept between runs, so that packages are fetched once."""
    folder = user_cache() / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write files, except those that already have the same content."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)


def run(command: list[str], folder: Path, **environment: str) -> str:
    """The output of a command; ``dynactor`` is on its path."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    path = os.pathsep.join((str(Path(sys.executable).parent), inherited["PATH"]))
    done = subprocess.run(
        command,
        cwd=folder,
        env={**inherited, "PATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=_DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
