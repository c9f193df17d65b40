"""Finds Prometheus and promtool, or fetches Debian's package once into the user's cache."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.environment.maven_jars import NotFetched, user_cache


def program(name: str) -> Path:
    """The path of ``prometheus`` or ``promtool``.

    Raises:
        NotFetched: the program is not installed, and Debian's package can't be fetched.
    """
    found = shutil.which(name)
    if found is not None:
        return Path(found)
    kept = user_cache() / "prometheus"
    if not kept.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with (kept.parent / "prometheus.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.is_dir():
                with TemporaryDirectory(dir=kept.parent) as folder:
                    _fetch(Path(folder)).rename(kept)
    return kept / "usr" / "bin" / name


def _fetch(folder: Path) -> Path:
    for tool in ("apt-get", "dpkg"):
        if shutil.which(tool) is None:
            raise NotFetched(f"There is no prometheus on this machine, and no {tool} to fetch it")
    done = subprocess.run(
        ["apt-get", "download", "prometheus"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    packages = list(folder.glob("*.deb"))
    if done.returncode != 0 or not packages:
        raise NotFetched(f"apt-get could not fetch prometheus: {done.stderr}")
    unpacked = folder / "unpacked"
    subprocess.run(["dpkg", "-x", str(packages[0]), str(unpacked)], check=True)
    return unpacked
