"""The page about scenes for tests names files, functions and fixtures that exist."""

from __future__ import annotations

import re

import pytest

from tests.support.servers.server import PROJECT

SUPPORT = PROJECT / "tests" / "support"
PAGE = SUPPORT / "README.md"
ROWS = [line.strip("|").split("|") for line in PAGE.read_text().splitlines() if "`" in line]
SCENES = [row for row in ROWS if len(row) == 3 and row[2].strip()]
FIXTURES = [row for row in ROWS if len(row) == 2]


@pytest.mark.parametrize("row", SCENES, ids=lambda row: row[0].strip())
def test_a_file_defines_what_a_scene_takes_from_it(row: list[str]) -> None:
    files = [
        (PROJECT if path.startswith("tests/") else SUPPORT) / path
        for path in re.findall(r"`([\w/]+\.py)`", row[2])
    ]
    text = "\n".join(path.read_text() for path in files)
    names = re.findall(r"`(\w+)`", row[1])
    assert [name for name in names if not re.search(rf"(def|class) {name}\b", text)] == []


def test_the_fixtures_exist() -> None:
    conftest = (PROJECT / "tests" / "conftest.py").read_text()
    names = [name for row in FIXTURES for name in re.findall(r"`(\w+)`", row[0])]
    assert len(names) > 8
    assert [name for name in names if f"\ndef {name}(" not in conftest] == []
