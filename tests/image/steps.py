"""Executes the instructions of a Dockerfile in a root."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.image.root import Root
from tests.support.environment.dockerfile import Stage
from tests.support.servers.server import PROJECT

# Instructions that configure the start of a container, and change no file.
_ABOUT_CONTAINERS: Final = frozenset(
    {"FROM", "USER", "ENV", "VOLUME", "EXPOSE", "HEALTHCHECK", "STOPSIGNAL", "ENTRYPOINT", "CMD"}
)


def carry_out(stage: Stage, root: Root, built: Mapping[str, Root]) -> None:
    """Execute the instructions that create files, in order.

    Raises:
        SystemExit: an instruction is unknown.
    """
    folder = "/"
    for name, rest in stage.instructions:
        if name == "WORKDIR":
            folder = rest
            root.place(folder).mkdir(parents=True, exist_ok=True)
        elif name == "COPY":
            _copy(rest.split(), root, folder, built)
        elif name == "RUN":
            sys.stdout.write(f"  RUN {rest}\n")
            sys.stdout.flush()
            root.run(rest, folder)
        elif name not in _ABOUT_CONTAINERS:
            raise SystemExit(f"{name} is not known here")


def _copy(words: list[str], root: Root, folder: str, built: Mapping[str, Root]) -> None:
    origin = PROJECT
    left_out: tuple[str, ...] = ("__pycache__",)
    if words[0].startswith("--from="):
        option, *words = words
        # Files compiled in an earlier stage are part of the image.
        origin, left_out = built[option.removeprefix("--from=")].path, ()
    *sources, target = words
    place = root.place(target) if target.startswith("/") else root.place(folder) / target
    for source in sources:
        path = origin / source.lstrip("/")
        if path.is_dir():
            # Keep links, because their targets within the project are copied, too.
            ignore = shutil.ignore_patterns(*left_out)
            shutil.copytree(path, place, symlinks=True, ignore=ignore, dirs_exist_ok=True)
        else:
            shutil.copy(path, place / Path(source).name if place.is_dir() else place)
