"""Scripts of PartiQL statements and their outcomes, from text files.

A statement starts at the left margin. The indented lines below are its outcome; the first word of a
line names the part of the outcome. A line ``DynamoDB Local: reason`` says why DynamoDB Local
answers differently. Lines with ``#`` are comments. A line with ``@``, such as ``@before {'n': 1}``,
is a setting for all later statements.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

LOCAL = "DynamoDB Local: "


class Scripted(NamedTuple):
    """A statement, the lines of its outcome, and its settings."""

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


def scripted(path: Path) -> list[Any]:
    """The cases of a script, as parameters of a test."""
    return [
        pytest.param(
            case,
            id=f"{path.stem}:{number} {case.statement}",
            marks=[pytest.mark.differs_from_dynamodb_local(reason)] if reason else [],
        )
        for number, case, reason in _cases(path)
    ]


def _cases(path: Path) -> Iterator[tuple[int, Scripted, str]]:
    settings: dict[str, str] = {}
    statement, number = "", 0
    outcome: list[str] = []
    reason = ""
    lines = path.read_text().splitlines()
    for at, line in enumerate([*lines, ""], start=1):
        if line.startswith("    "):
            assert statement, f"{path.name}:{at}: an outcome of nothing"
            text = line.strip()
            if text.startswith(LOCAL):
                reason = text.removeprefix(LOCAL)
            else:
                outcome.append(text)
            continue
        if statement:
            assert outcome, f"{path.name}:{number}: a statement without outcome"
            yield number, Scripted(statement, tuple(outcome), dict(settings)), reason
            statement, outcome, reason = "", [], ""
        if line.startswith("@"):
            name, _, value = line[1:].partition(" ")
            settings[name] = value
        elif line and not line.startswith("#"):
            statement, number = line.replace("\\n", "\n"), at
