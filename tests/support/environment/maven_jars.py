"""Fetches Maven artifacts of Java programs for tests, and keeps them in the user's cache."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.9.0"
_DEADLINE_SECONDS: Final = 240


class NotFetched(Exception):
    """The jars are missing, and Maven did not fetch them; the text says why."""


def user_cache() -> Path:
    """The directory for downloads that tests keep between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dynactor"


def jars(pom: Path) -> Path:
    """The directory with the artifacts that ``pom`` names, and all their dependencies.

    A changed POM gets a new directory. If several test runs need a directory at once, one run
    fetches the artifacts and the others wait. A run that is killed leaves no incomplete directory.

    Raises:
        NotFetched: Java or Maven is missing on this machine, or Maven failed to fetch.
    """
    _require("java")
    digest = sha256(pom.read_bytes()).hexdigest()[:12]
    kept = user_cache() / f"jars-{pom.stem}-{digest}"
    if not kept.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with (kept.parent / "maven.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.is_dir():
                with TemporaryDirectory(dir=kept.parent) as folder:
                    _fetch(pom, Path(folder) / "jars").rename(kept)
    return kept


def class_path(*directories: Path) -> str:
    """The class path for ``java -cp``: every jar of the directories, and the directories."""
    return ":".join(f"{directory}/*:{directory}" for directory in directories)


def _fetch(pom: Path, into: Path) -> Path:
    _require("mvn")
    maven = [
        *("mvn", "--batch-mode", "--quiet", "--file", str(pom)),
        *(f"{PLUGIN}:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={into}"),
    ]
    try:
        done = subprocess.run(
            maven, capture_output=True, text=True, timeout=_DEADLINE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        message = f"Maven did not fetch {pom.name} in {_DEADLINE_SECONDS} seconds"
        raise NotFetched(message) from None
    if done.returncode:
        raise NotFetched(f"Maven could not fetch {pom.name}:\n{done.stdout}{done.stderr}")
    return into


def _require(program: str) -> None:
    if shutil.which(program) is None:
        raise NotFetched(f"needs Java 17 and Maven: there is no {program} on this machine")
