"""Finds the tests of a room, which is a folder of the product.

    python -m tests.architecture.room_tests actors/partition

The tests of a room are the files of the folder of ``tests`` with the same path, without its
subfolders: these are rooms of their own. ``make room`` runs them.
"""

from __future__ import annotations

import sys
from typing import Final

from tests.architecture.sources import PROJECT, SOURCES

# Rooms without a folder of tests, and their tests. This list may only become shorter.
TESTED_ELSEWHERE: Final = {
    "api/execution": ("tests/wire/partiql", "tests/wire/transactions"),
    "model/definitions": ("tests/model/tables",),
    "model/writes": ("tests/wire/items", "tests/wire/transactions"),
    "storage/postgresql": ("tests/postgresql", "tests/storage/contract"),
}


def rooms() -> list[str]:
    """The folders of the product with code in files of their own, such as ``actors/partition``."""
    return sorted(
        {
            path.parent.relative_to(PROJECT).as_posix()
            for path in SOURCES.values()
            if path.stem != "__init__"
        }
    )


def own_tests(room: str) -> list[str]:
    """The files of tests in the mirrored folder of a room, relative to the project."""
    files = sorted((PROJECT / "tests" / room).glob("test_*.py"))
    return [path.relative_to(PROJECT).as_posix() for path in files]


def room_tests(room: str) -> list[str]:
    """The arguments of pytest for the tests of a room."""
    return list(TESTED_ELSEWHERE.get(room, ())) or own_tests(room)


if __name__ == "__main__":
    [asked] = sys.argv[1:]
    found = room_tests(asked.strip("/"))
    if not found:
        sys.exit(f"{asked} is no room. The rooms are: {' '.join(rooms())}")
    sys.stdout.write(" ".join(found) + "\n")
