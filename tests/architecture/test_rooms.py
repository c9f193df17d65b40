"""Rooms are small enough to look around in, and say what belongs in them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
FLOORS = ("model", "storage", "streams", "actors", "api")
MOST_FILES = 25
FEWEST_FILES = 3
# One file per operation of the API, under the operation's name: nobody looks around there.
LARGE_ROOMS = {"api/operations"}
# Names that say nothing about what is inside.
EMPTY_NAMES = {"util", "utils", "common", "helpers", "core", "base", "misc"}


def rooms(*trees: str) -> list[str]:
    return sorted(
        {
            path.parent.relative_to(PROJECT).as_posix()
            for tree in trees
            for path in (PROJECT / tree).rglob("*.py")
        }
    )


def files_in(room: str) -> list[Path]:
    return [path for path in (PROJECT / room).glob("*.py") if path.name != "__init__.py"]


@pytest.mark.parametrize("room", rooms(*FLOORS, "tests"))
def test_a_room_has_few_enough_files_to_look_around_in(room: str):
    assert room in LARGE_ROOMS or len(files_in(room)) <= MOST_FILES


# A floor holds rooms, and may have no file of its own.
@pytest.mark.parametrize("room", [room for room in rooms(*FLOORS) if room not in FLOORS])
def test_a_room_has_enough_files_to_be_one(room: str):
    assert len(files_in(room)) >= FEWEST_FILES


@pytest.mark.parametrize("room", rooms(*FLOORS))
def test_a_room_says_what_belongs_in_it(room: str):
    docstring = ast.get_docstring(ast.parse((PROJECT / room / "__init__.py").read_text()))
    assert docstring is not None
    assert len(docstring.split()) >= 3


@pytest.mark.parametrize("room", rooms(*FLOORS, "tests"))
def test_a_room_has_a_name_that_says_something(room: str):
    assert Path(room).name not in EMPTY_NAMES
