"""A suite that was written on moto runs on the plugin with the changes that docs/MOTO.md shows."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.environment.suites import run_suite
from tests.support.servers.server import PROJECT

MOST_CHANGED_LINES = 5
SUITE = Path(__file__).parent / "shop_suite"
PROGRAM = {path.name: path.read_text() for path in SUITE.glob("*.py")}

Files = dict[str, str]


def forms() -> list[tuple[Files, Files]]:
    """The files that each diff of the page shows: on moto, and on the plugin."""
    page = (PROJECT / "docs" / "MOTO.md").read_text()
    found = []
    for diff in re.findall(r"```diff\n(.*?)```", page, re.DOTALL):
        parts = re.findall(r"--- (\S+)\n(.*?)(?=--- |\Z)", diff, re.DOTALL)
        found.append(
            (
                {name: lines(text, left_out="+") for name, text in parts},
                {name: lines(text, left_out="-") for name, text in parts},
            )
        )
    return found


def lines(diff: str, *, left_out: str) -> str:
    return "".join(line[1:] + "\n" for line in diff.splitlines() if line[:1] != left_out)


FIXTURE, DECORATOR = forms()
ON_MOTO, ON_PLUGIN = 0, 1
FORMS = [pytest.param(ON_PLUGIN, id="plugin")]
if find_spec("moto") is not None:
    FORMS.append(pytest.param(ON_MOTO, id="moto"))


def run(folder: Path, files: Files) -> str:
    """Run a suite of the page, with the lines of its pytest.ini."""
    ini = files.get("pytest.ini", "").removeprefix("[pytest]\n")
    modules = {name: text for name, text in files.items() if name != "pytest.ini"}
    told = run_suite(folder, modules, ini=ini)
    assert told.returncode == 0, told.stdout
    return told.stdout


def changed_lines(before: Files, after: Files) -> int:
    count = 0
    for name in before:
        lists = before[name].splitlines(), after[name].splitlines()
        for kind, start, end, new_start, new_end in SequenceMatcher(None, *lists).get_opcodes():
            if kind != "equal":
                count += max(end - start, new_end - new_start)
    return count


def test_at_most_five_lines_change():
    assert changed_lines(*FIXTURE) <= MOST_CHANGED_LINES
    assert changed_lines(*DECORATOR) == 1


@pytest.mark.parametrize("form", FORMS)
def test_the_suite_passes(tmp_path: Path, form: int):
    assert "7 passed" in run(tmp_path, {**PROGRAM, **FIXTURE[form]})


@pytest.mark.parametrize("form", FORMS)
def test_decorated_tests_pass(tmp_path: Path, form: int):
    assert "1 passed" in run(tmp_path, DECORATOR[form])
