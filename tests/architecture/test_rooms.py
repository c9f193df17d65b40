"""Folders have a docstring about their content, a name that describes it, and tests."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.architecture import room_tests
from tests.architecture.sources import FLOORS, PROJECT, tree_of

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


def test_a_folder_describes_its_content():
    for room in rooms(*FLOORS):
        docstring = ast.get_docstring(tree_of(PROJECT / room / "__init__.py"))
        assert docstring is not None, room
        assert len(docstring.split()) >= 3, room


def test_a_folder_has_a_meaningful_name():
    names = {Path(room).name for room in rooms(*FLOORS, "tests")}
    assert names & EMPTY_NAMES == set()


def test_a_room_has_a_mirrored_folder_of_tests():
    without = {room for room in room_tests.rooms() if not room_tests.own_tests(room)}
    assert without == room_tests.TESTED_ELSEWHERE.keys()


def test_the_tests_of_a_room_exist():
    named = [path for paths in room_tests.TESTED_ELSEWHERE.values() for path in paths]
    assert [path for path in named if not (PROJECT / path).exists()] == []
