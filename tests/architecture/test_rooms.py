"""Folders have a docstring about their content, and a name that describes it."""

from __future__ import annotations

import ast
from pathlib import Path

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
