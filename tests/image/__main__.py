"""Builds the image without Docker, as root: ``python -m tests.image DIRECTORY``.

The command reads compose/Dockerfile and executes its steps in Debian roots made by mmdebstrap. Then
it measures the last root and starts the server there: with a read-only file system, as an arbitrary
user, as process 1, which SIGTERM ends. ``--mmdebstrap`` names the program, so its Debian package
need not be installed.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

from tests.image.root import Root, make_base
from tests.image.steps import carry_out
from tests.image.trial import try_image
from tests.support.environment.dockerfile import stages
from tests.support.servers.server import PROJECT

_MIB: Final = 1 << 20
_MOST_PACKED_MIB: Final = 85
_MOST_UNPACKED_MIB: Final = 210
_UNWANTED_FOLDERS: Final = frozenset({"pip", "setuptools", "pkg_resources", "wheel", "tests"})
_UNWANTED_PROGRAMS: Final = frozenset({"pip", "pip3", "gcc", "cc", "ld", "make"})


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.image", description=__doc__)
    parser.add_argument("directory", type=Path, help="where the roots are made; some 700 MB")
    parser.add_argument("--mmdebstrap", default="mmdebstrap", help="the program")
    arguments = parser.parse_args()
    directory: Path = arguments.directory.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    image = _build(directory, arguments.mmdebstrap)
    faults = [*_measured(image, directory / "image.tar.gz"), *_unwanted(image), *try_image(image)]
    for fault in faults:
        sys.stderr.write(f"{fault}\n")
    return 1 if faults else 0


def _build(directory: Path, mmdebstrap: str) -> Root:
    """The root of the last stage."""
    base = directory / "base"
    if not base.exists():
        make_base(base, mmdebstrap)
    built: dict[str, Root] = {}
    for number, stage in enumerate(stages(PROJECT / "compose" / "Dockerfile")):
        [(_, source), *_] = stage.instructions
        distribution, _, name = source.partition(" AS ")
        if distribution != "debian:bookworm-slim":
            raise SystemExit(f"There is no root for {distribution}: it has to be Debian's bookworm")
        place = directory / (name or "image")
        shutil.rmtree(place, ignore_errors=True)
        # Use ``cp``, because ``shutil.copytree`` would read from the device files.
        subprocess.run(["cp", "--archive", base, place], check=True)
        sys.stdout.write(f"Stage {number + 1}: {source}\n")
        sys.stdout.flush()
        built[name] = root = Root(place, stage)
        carry_out(stage, root, built)
    return root


def _measured(image: Root, archive: Path) -> list[str]:
    """Measure the image; returns the parts that are too large."""
    unpacked = sum(path.lstat().st_size for path in image.files()) / _MIB
    with gzip.open(archive, "wb") as packed, tarfile.open(fileobj=packed, mode="w|") as tar:
        tar.add(image.path, arcname=".")
    packed_mib = archive.stat().st_size / _MIB
    sys.stdout.write(f"Unpacked {unpacked:.0f} MiB, packed {packed_mib:.0f} MiB\n")
    limits = (("unpacked", unpacked, _MOST_UNPACKED_MIB), ("packed", packed_mib, _MOST_PACKED_MIB))
    return [f"The image is too large {name}" for name, size, most in limits if size > most]


def _unwanted(image: Root) -> list[str]:
    """The unwanted files in the image."""
    programs = (path for path in image.files() if path.name in _UNWANTED_PROGRAMS)
    folders = (path for path in image.directories() if path.name in _UNWANTED_FOLDERS)
    return [f"{path} is in the image" for path in (*programs, *folders)]


if __name__ == "__main__":
    if os.geteuid() != 0:
        raise SystemExit("It needs root: to make Debian roots, and to start programs in them")
    sys.exit(_main())
