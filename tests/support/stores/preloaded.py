"""Libraries for LD_PRELOAD, built from the C sources beside their Python modules."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from functools import cache
from pathlib import Path
from tempfile import gettempdir


@cache
def library(source: Path) -> Path:
    """The library of a C source, built once per version of the source."""
    cache_tag = sysconfig.get_platform()
    stamp = source.stat().st_mtime_ns
    name = source.stem.replace("_", "-")
    built = Path(gettempdir()) / f"dynactor-{name}-{os.getuid()}-{cache_tag}-{stamp}.so"
    if not built.exists():
        building = built.with_suffix(f".{os.getpid()}")
        flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror"]
        subprocess.run(["gcc", *flags, "-o", building, source, "-ldl"], check=True)
        building.replace(built)
    return built
