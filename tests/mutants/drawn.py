"""Draws faults of one line over all rooms, plants them one by one, and lists the survivors.

    python -m tests.mutants.drawn --seed 20261128 --count 60 [--list] [--only 3 17]

A fault survives if neither the tests of its own room nor the wire tests fail. The draw takes the
rooms in turn, then a kind, then a place. So it depends on the seed and the sources alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from tests.architecture.room_tests import room_tests
from tests.mutants.kinds import KINDS, Site, sites
from tests.mutants.project_copy import PROJECT, ProjectCopy, project_copy

_FOLDERS: Final = ("actors", "api", "model", "storage", "streams")
_SKIPPED: Final = ("tests/postgresql/test_rounds.py", "tests/postgresql/test_mirrors.py")
_WIRE: Final = ("tests/wire", "tests/guards", "tests/simulation")


class Draw(NamedTuple):
    """A fault in a file of a room."""

    path: Path
    site: Site

    @property
    def room(self) -> str:
        """The folder of the file, relative to the project."""
        return self.path.parent.relative_to(PROJECT).as_posix()

    @property
    def description(self) -> str:
        """The place, the kind, and the line before and after."""
        source = self.path.read_text()
        old = source.splitlines()[self.site.line - 1].strip()
        new = self.site.planted(source).splitlines()[self.site.line - 1].strip()
        place = f"{self.path.relative_to(PROJECT)}:{self.site.line}"
        return f"{place} {self.site.kind}\n    - {old}\n    + {new}"


def drawn(seed: int, count: int) -> list[Draw]:
    """``count`` faults; each room gets its next one after all others have got theirs."""
    draw = Random(seed)
    rooms: dict[Path, dict[str, list[Draw]]] = {}
    for path in sorted(path for name in _FOLDERS for path in (PROJECT / name).rglob("*.py")):
        for site in sites(path.read_text()):
            rooms.setdefault(path.parent, {}).setdefault(site.kind, []).append(Draw(path, site))
    order = sorted(rooms)
    draw.shuffle(order)
    chosen: list[Draw] = []
    while len(chosen) < count:
        kinds = rooms[order[len(chosen) % len(order)]]
        kind = draw.choice([kind for kind in KINDS if kind in kinds])
        found = draw.choice(kinds[kind])
        if found not in chosen:
            chosen.append(found)
    return chosen


@contextmanager
def _planted(copy: ProjectCopy, fault: Draw) -> Iterator[None]:
    path = copy.directory / fault.path.relative_to(PROJECT)
    healthy = path.read_text()
    path.write_text(fault.site.planted(healthy))
    try:
        yield
    finally:
        path.write_text(healthy)


def _nearest(fault: Draw) -> list[str]:
    """The tests of the room that import the file of the fault: they find most faults in seconds."""
    module = ".".join(("dynactor", *fault.path.relative_to(PROJECT).with_suffix("").parts))
    package, name = module.rsplit(".", 1)
    imports = (f"from {module} import", f"from {package} import {name}", f"import {module}")
    paths = [PROJECT / each for each in room_tests(fault.room)]
    files = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*.py"))]
    return [
        file.relative_to(PROJECT).as_posix()
        for file in files
        if file.name.startswith("test_") and any(each in file.read_text() for each in imports)
    ]


def _verdict(copy: ProjectCopy, fault: Draw, processes: int) -> str:
    """``found``, by the room or the wire tests, or ``SURVIVED``."""
    options = ("--exitfirst", f"--numprocesses={processes}", "--dist=loadfile")
    skipped = tuple(f"--ignore={path}" for path in _SKIPPED)
    with _planted(copy, fault):
        nearest = _nearest(fault)
        if nearest and not copy.run(["--exitfirst", *skipped, *nearest]).passed:
            return "found by its room"
        if not copy.run([*options, *skipped, *room_tests(fault.room)]).passed:
            return "found by its room"
        if not copy.run([*options, *_WIRE]).passed:
            return "found by the wire"
    return "SURVIVED"


def main(arguments: Sequence[str] | None = None) -> int:
    """Plant the faults of a seed; returns 1 if more survive than ``--most-survivors``."""
    parser = argparse.ArgumentParser(description="Draw faults, plant them, list the survivors.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--most-survivors", type=int, default=6)
    parser.add_argument("--only", type=int, nargs="*", help="the numbers of the faults to plant")
    parser.add_argument("--processes", type=int, default=2, help="that run tests")
    parser.add_argument("--list", action="store_true", help="print the faults and plant none")
    options = parser.parse_args(arguments)
    survivors = 0
    with project_copy() as copy:
        for number, fault in enumerate(drawn(options.seed, options.count), 1):
            if options.only and number not in options.only:
                continue
            verdict = "drawn" if options.list else _verdict(copy, fault, options.processes)
            survivors += verdict == "SURVIVED"
            print(f"{number:3} {verdict:18} {fault.description}", flush=True)
    print(f"{survivors} of {options.count} survived")
    return int(survivors > options.most_survivors)


if __name__ == "__main__":
    raise SystemExit(main())
