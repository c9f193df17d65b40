"""Java programs for tests, as Maven artifacts: fetched by Maven once, kept for the user."""

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
    """The jars are not here and Maven did not bring them; the text says why."""


def user_cache() -> Path:
    """Where tests keep from run to run what they fetched."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dynactor"


def jars(pom: Path) -> Path:
    """The directory with the artifacts that ``pom`` names, and all that they need to run.

    A changed POM gets a directory of its own. Several test runs may ask at once: one fetches,
    the others wait; a run that is killed in the middle leaves nothing that looks complete.

    Raises:
        NotFetched: Java or Maven is not on this machine, or Maven could not fetch something.
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
    """What ``java -cp`` takes: every jar of the directories, and the directories themselves."""
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
