"""Everything is imported from ``dynactor``, by code and by names in strings.

In a checkout, the five folders can also be imported by their bare names. A module that is imported
both ways is loaded twice: its classes exist twice, and a fault planted in one copy is missing in
the other. Ruff refuses such imports (TID251); names in strings are found here.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.architecture.sources import FLOORS, PROJECT, text_of

TREES = (*FLOORS, "dynactor", "tests")

BARE = re.compile(rf"(?:{'|'.join(FLOORS)})(?:\.[A-Za-z_]\w*)*")

# A text without a match has no bare names and is not parsed, because parsing all takes seconds.
QUOTED_FLOOR = re.compile(rf"""["'](?:{"|".join(FLOORS)})[."']""")


def python_files() -> list[Path]:
    return sorted(
        path
        for tree in TREES
        for path in (PROJECT / tree).rglob("*.py")
        # Later Pythons than 3.12 could follow the links of dynactor/.
        if not (tree == "dynactor" and path.parent.name != "dynactor")
        # Leave out this folder, whose script runs in a checkout of that commit.
        and "written_by_6ee0983" not in path.parts
    )


def module_exists(dotted: str) -> bool:
    """Whether a dotted name begins with a module of the project."""
    parts = dotted.split(".")
    return any(
        (PROJECT / Path(*parts[:length])).with_suffix(".py").exists()
        for length in range(2, len(parts) + 1)
    )


def bare_names(tree: ast.Module) -> Iterator[str]:
    """Strings that name a module without ``dynactor.``, including ``-m`` with a folder's name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if BARE.fullmatch(node.value) and module_exists(node.value):
                yield node.value
        elif isinstance(node, ast.Tuple | ast.List):
            values = [each.value for each in node.elts if isinstance(each, ast.Constant)]
            yield from (
                f"-m {name}"
                for flag, name in pairwise(values)
                if flag == "-m" and isinstance(name, str) and BARE.fullmatch(name)
            )


def bare_names_in(text: str) -> list[str]:
    return list(bare_names(ast.parse(text))) if QUOTED_FLOOR.search(text) else []


def test_no_string_names_a_module_by_its_bare_name():
    found = {
        str(path.relative_to(PROJECT)): names
        for path in python_files()
        if path != Path(__file__) and (names := bare_names_in(text_of(path)))
    }
    assert found == {}


@pytest.mark.parametrize(
    "source",
    [
        'monkeypatch.setattr("actors.limits.throttle.MOST", 1)',
        'run([sys.executable, "-m", "api", "serve"])',
        'getLogger("api.http.server")',
    ],
)
def test_the_check_finds_bare_names(source: str):
    assert bare_names_in(source)


def test_the_links_lead_to_the_floors():
    for floor in FLOORS:
        link = PROJECT / "dynactor" / floor
        assert link.resolve() == PROJECT / floor
        # A link with an absolute target would break in every other checkout.
        assert not link.is_symlink() or str(link.readlink()) == f"../{floor}"


def test_a_module_is_loaded_once():
    code = (
        "import sys, dynactor.api.command_line as loaded;"
        f"print([name for name in sys.modules if name.split('.')[0] in {FLOORS!r}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
