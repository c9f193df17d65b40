"""Folders have few enough files for an overview, and a docstring about their content."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.architecture.sources import FLOORS, PROJECT, tree_of

MOST_FILES = 25
FEWEST_FILES = 3
# One file per operation of the API, found by the operation's name.
LARGE_ROOMS = {"api/operations"}
# Names that do not describe the content.
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


def test_a_folder_does_not_have_too_many_files():
    large = {room for room in rooms(*FLOORS, "tests") if len(files_in(room)) > MOST_FILES}
    assert large <= LARGE_ROOMS


def test_a_folder_has_enough_files():
    # A floor holds folders, and may have no files of its own.
    below = [room for room in rooms(*FLOORS) if room not in FLOORS]
    assert [room for room in below if len(files_in(room)) < FEWEST_FILES] == []


def test_a_folder_describes_its_content():
    for room in rooms(*FLOORS):
        docstring = ast.get_docstring(tree_of(PROJECT / room / "__init__.py"))
        assert docstring is not None, room
        assert len(docstring.split()) >= 3, room


def test_a_folder_has_a_meaningful_name():
    names = {Path(room).name for room in rooms(*FLOORS, "tests")}
    assert names & EMPTY_NAMES == set()
