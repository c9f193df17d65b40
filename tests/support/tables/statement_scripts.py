"""Scripts of PartiQL statements and their outcomes, from ``tests/cases/statements``.

A statement starts at the left margin. The indented lines below are its outcome; the first word of a
line names the part of the outcome. A line ``DynamoDB Local: reason`` says why DynamoDB Local
answers differently. Lines with ``#`` are comments. A line with ``@``, such as ``@before {'n': 1}``,
is a setting for all later statements.

``grammar.txt`` has another form: headings are the parser's messages, with their statements below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import pytest

from tests.support.servers.server import PROJECT

LOCAL: Final = "DynamoDB Local: "
NOT_WELL_FORMED: Final = "Statement wasn't well formed, can't be processed: "
_SCRIPTS: Final = PROJECT / "tests" / "cases" / "statements"


class Scripted(NamedTuple):
    """A statement, the lines of its outcome, and its settings."""

    place: str
    statement: str
    outcome: tuple[str, ...]
    settings: dict[str, str]

    def parts(self, word: str) -> list[str]:
        """The text that follows this word in a line of the expected outcome."""
        found = [line for line in self.outcome if line.split(" ", 1)[0] == word]
        return [line.removeprefix(word).strip() for line in found]

    def part(self, word: str) -> str | None:
        """The text after this word in the first such line of the outcome; None without one."""
        return next(iter(self.parts(word)), None)


def scripted(*names: str) -> list[Any]:
    """The cases of each script, as parameters of a test.

    Cases that DynamoDB Local answers differently are a parameter of their own, with the mark.
    """
    found = []
    for name in names:
        cases = list(_cases(name))
        for is_marked in (False, True):
            chosen = [case for case, reason in cases if bool(reason) is is_marked]
            mark = pytest.mark.differs_from_dynamodb_local("each case has its reason")
            if chosen:
                marks = [mark] if is_marked else []
                found.append(pytest.param(chosen, id=f"{name}{'*' * is_marked}", marks=marks))
    return found


def failures(cases: Iterable[Scripted], check: Callable[[Scripted], None]) -> list[str]:
    """Check all cases; returns those that fail an assertion of ``check``."""
    found = []
    for case in cases:
        try:
            check(case)
        except AssertionError as error:
            found.append(f"{case.place} {case.statement}\n{error}")
    return found


def grammar() -> Iterator[tuple[str, str]]:
    """The statements of ``grammar.txt``, each after its heading."""
    heading = ""
    for line in (_SCRIPTS / "grammar.txt").read_text().splitlines():
        if line.startswith("    "):
            yield heading, line.removeprefix("    ")
        elif line and not line.startswith("#"):
            heading = line


def heading_of(message: str) -> str:
    """The heading in ``grammar.txt`` for an error of a statement, whatever the error is."""
    if not message.startswith(NOT_WELL_FORMED):
        return "accepted"
    return message.removeprefix(NOT_WELL_FORMED) or "no token"


def _cases(name: str) -> Iterator[tuple[Scripted, str]]:
    settings: dict[str, str] = {}
    statement, number = "", 0
    outcome: list[str] = []
    reason = ""
    lines = (_SCRIPTS / f"{name}.txt").read_text().splitlines()
    for at, line in enumerate([*lines, ""], start=1):
        if line.startswith("    "):
            assert statement, f"{name}:{at}: an outcome of nothing"
            text = line.strip()
            if text.startswith(LOCAL):
                reason = text.removeprefix(LOCAL)
            else:
                outcome.append(text)
            continue
        if statement:
            assert outcome, f"{name}:{number}: a statement without outcome"
            yield (
                Scripted(f"{name}:{number}", statement, tuple(outcome), dict(settings)),
                reason,
            )
            statement, outcome, reason = "", [], ""
        if line.startswith("@"):
            setting, _, value = line[1:].partition(" ")
            settings[setting] = value
        elif line and not line.startswith("#"):
            statement, number = line.replace("\\n", "\n"), at
