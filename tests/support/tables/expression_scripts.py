"""Expressions and their outcomes, from the scripts in ``tests/cases/expressions``.

A script has a kind, placeholders and an item (``@kind``, ``@name``, ``@value``, ``@item``). Then
expressions follow, each with its outcome indented on the next line:

    a = :one
        true
    a = :one and
        invalid: Syntax error; token: "<EOF>", near: "and"

An outcome is the value of a condition, the changes of an update (null for a removal), or the result
of a projection. For a key condition, it is the values and sort conditions. Or it is ``error:`` with
a message, or ``invalid:`` with a message after "Invalid <kind>: ". A second line
``DynamoDB Local: reason`` says why DynamoDB Local answers differently. An expression gets the
placeholders that it mentions. Each item also has a key, ``KEY`` or the one in ``@key``.
``@item null`` is no item.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.support.servers.server import PROJECT
from tests.support.tables.statement_scripts import LOCAL

SCRIPTS: Final = sorted((PROJECT / "tests" / "cases" / "expressions").glob("*.txt"))
KEY: Final[dict[str, Any]] = {"p": {"S": "k"}, "s": {"N": "1"}}


class ExpressionCase(NamedTuple):
    """An expression of a kind, its placeholders, the item and its key, and the outcome."""

    place: str
    kind: str
    text: str
    key: dict[str, Any]
    names: dict[str, str] | None
    values: dict[str, Any] | None
    item: dict[str, Any] | None
    expected: str
    local_reason: str = ""


def expression_cases(script: Path) -> Iterator[ExpressionCase]:
    """The cases of a script; each has values of its own, which its test may change."""
    kind, key, item = "", KEY, None
    names: dict[str, str] = {}
    values: dict[str, Any] = {}
    lines = script.read_text().splitlines()
    for at, line in enumerate(lines, start=1):
        if line.startswith("@"):
            what, text = line[1:].split(" ", 1)
            match what:
                case "kind":
                    kind = text
                case "name":
                    name, names[name] = text.split(" ")
                case "value":
                    name, content = text.split(" ", 1)
                    values[name] = json.loads(content)
                case "key":
                    key = json.loads(text)
                case "item":
                    item = json.loads(text)
                case _:
                    raise AssertionError(what)
        elif line and not line.startswith(("    ", "# ")) and line != "#":
            place = f"{script.stem}:{at}"
            outcome = [each.strip() for each in _indented(lines[at:])]
            assert outcome, f"{place}: an expression without outcome"
            reason = next((each for each in outcome if each.startswith(LOCAL)), "")
            yield ExpressionCase(
                place,
                kind,
                line,
                deepcopy(key),
                _mentioned(names, line),
                _mentioned(values, line),
                None if item is None else {**deepcopy(key), **deepcopy(item)},
                outcome[0],
                reason.removeprefix(LOCAL),
            )


def _indented(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if not line.startswith("    "):
            return
        yield line


def _mentioned(defined: dict[str, Any], text: str) -> dict[str, Any] | None:
    found = {
        name: deepcopy(value)
        for name, value in defined.items()
        if re.search(re.escape(name) + r"(?![A-Za-z0-9_])", text)
    }
    return found or None


def differences(
    cases: Iterable[ExpressionCase], outcome: Callable[[ExpressionCase], str]
) -> list[str]:
    """The cases whose outcome, JSON or an error, differs from the expected one."""
    return [
        f"{case.place} {case.text}\n    {found}\n    expected {case.expected}"
        for case in cases
        if (found := outcome(case)) != _canonical(case.expected)
    ]


def _canonical(expected: str) -> str:
    if expected.startswith(("error:", "invalid:")):
        return expected
    return as_outcome(json.loads(expected))


def as_outcome(found: Any) -> str:
    """A value, changes or a result as the text of an outcome."""
    return json.dumps(found, sort_keys=True, ensure_ascii=False)


def as_refusal(kind: str, message: str) -> str:
    """A refusal as the text of an outcome."""
    prefix = f"Invalid {kind}: "
    if message.startswith(prefix):
        return "invalid: " + message.removeprefix(prefix)
    return "error: " + message
