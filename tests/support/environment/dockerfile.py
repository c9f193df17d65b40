"""Reads a Dockerfile, so that its commands can run without a Docker engine."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import NamedTuple


class Stage(NamedTuple):
    """The instructions of one stage in order, each as its name and its arguments."""

    instructions: tuple[tuple[str, str], ...]

    def all(self, name: str) -> list[str]:
        """The arguments of every instruction with this name."""
        return [rest for instruction, rest in self.instructions if instruction == name]

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its ENV instructions."""
        words = [word for rest in self.all("ENV") for word in shlex.split(rest)]
        return {name: value for name, _, value in (word.partition("=") for word in words)}

    @property
    def command(self) -> list[str]:
        """The command of a container: ENTRYPOINT, then CMD; both as JSON."""
        (entry_point,), (command,) = self.all("ENTRYPOINT"), self.all("CMD")
        return [*json.loads(entry_point), *json.loads(command)]

    @property
    def health_check(self) -> list[str]:
        """The command of HEALTHCHECK, as JSON."""
        (rest,) = self.all("HEALTHCHECK")
        _, _, command = rest.partition(" CMD ")
        arguments: list[str] = json.loads(command)
        return arguments

    @property
    def copied(self) -> list[tuple[list[str], str]]:
        """For each COPY from the build's context: its sources and its target."""
        words = [rest.split() for rest in self.all("COPY") if not rest.startswith("--from")]
        return [(sources, target) for *sources, target in words]


def stages(dockerfile: Path) -> list[Stage]:
    """The stages of a Dockerfile; the last one becomes the image."""
    text = re.sub(r"^\s*#.*\n", "", dockerfile.read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\s*\\\n\s*", " ", text).splitlines()
    found: list[list[tuple[str, str]]] = []
    for line in filter(str.strip, lines):
        name, _, rest = line.strip().partition(" ")
        if name == "FROM":
            found.append([])
        found[-1].append((name, rest.strip()))
    return [Stage(tuple(instructions)) for instructions in found]
