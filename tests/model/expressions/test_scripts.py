"""Expressions and their outcomes, from the tables in ``scripts/``.

A table has a kind, placeholders and an item (``@kind``, ``@name``, ``@value``, ``@item``), followed
by expressions, each with its outcome indented on the next line:

    a = :one
        true
    a = :one and
        invalid: Syntax error; token: "<EOF>", near: "and"

An outcome is the value of a condition, the changes of an update (null for a removal), or the result
of a projection. For a key condition, it is the values and sort conditions. Or it is ``error:`` with
a message, or ``invalid:`` with a message after "Invalid <kind>: ". An expression gets the
placeholders that it mentions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dynactor.model.errors import ValidationException
from dynactor.model.expressions.condition_binding import parse_condition
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.expressions.projection import parse_projection
from dynactor.model.expressions.update import parse_update
from dynactor.model.key_conditions.key_condition import bind_key_condition
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.values import item as items
from dynactor.model.values.item import Item

SCRIPTS = Path(__file__).parent / "scripts"
KEY: Item = {"p": {"S": "k"}, "s": {"N": "1"}}
SCHEMA = KeySchema((KeyAttribute("p", "S"),), (KeyAttribute("s", "N"),))


@dataclass
class Table:
    kind: str = ""
    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    item: Item | None = None

    def placeholders(self, text: str) -> Placeholders:
        def mentioned(defined: dict[str, Any]) -> dict[str, Any] | None:
            found = {
                name: deepcopy(value)
                for name, value in defined.items()
                if re.search(re.escape(name) + r"(?![A-Za-z0-9_])", text)
            }
            return found or None

        return Placeholders(mentioned(self.names), mentioned(self.values))

    def outcome(self, text: str) -> str:
        try:
            return self.run(text)
        except ValidationException as error:
            prefix = f"Invalid {self.kind}: "
            if error.message.startswith(prefix):
                return "invalid: " + error.message.removeprefix(prefix)
            return "error: " + error.message

    def run(self, text: str) -> str:
        placeholders = self.placeholders(text)
        found: Any
        match self.kind:
            case "ConditionExpression":
                condition = parse_condition(text, placeholders, kind="ConditionExpression")
                found = condition.evaluate(self.item or {})
            case "UpdateExpression":
                update = parse_update(text, placeholders)
                before = deepcopy(self.item)
                new = update.apply(self.item, KEY).item or {}
                assert self.item == before, "the old item was changed"
                old = KEY if self.item is None else self.item
                found = {n: new.get(n) for n in {**old, **new} if old.get(n) != new.get(n)}
                if self.item is None and not new:
                    found = {}
            case "ProjectionExpression":
                found = parse_projection(text, placeholders).project(self.item or {})
            case "KeyConditionExpression":
                key = bind_key_condition(text, placeholders).on(SCHEMA)
                found = {
                    "partition": list(key.partition),
                    "sort": [[term.name, term.operator, *term.values] for term in key.sort],
                }
        placeholders.check_all_used()
        return json.dumps(found, sort_keys=True, ensure_ascii=False)


def cases() -> Iterator[Any]:
    for script in sorted(SCRIPTS.glob("*.txt")):
        table = Table()
        text = None
        for number, line in enumerate(script.read_text().splitlines(), start=1):
            if line.startswith("    "):
                assert text is not None, f"{script.name}:{number}: an outcome of nothing"
                name = f"{script.stem}:{number - 1} {text}"
                yield pytest.param(deepcopy(table), text, line.strip(), id=name)
                text = None
                continue
            assert text is None, f"{script.name}:{number - 1}: an expression without outcome"
            if line.startswith("@"):
                define(table, *line[1:].split(" ", 1))
            elif line and not line.startswith("# ") and line != "#":
                text = line
        assert text is None


def define(table: Table, what: str, text: str) -> None:
    match what:
        case "kind":
            table.kind = text
        case "name":
            name, table.names[name] = text.split(" ")
        case "value":
            name, content = text.split(" ", 1)
            table.values[name] = json.loads(content)
        case "item":
            table.item = json.loads(text)
            if table.item is not None:
                table.item = {**deepcopy(KEY), **table.item}
                items.check(table.item)
        case _:
            raise AssertionError(what)


@pytest.mark.parametrize(("table", "text", "expected"), list(cases()))
def test_expression_has_the_outcome_that_its_table_gives(
    table: Table, text: str, expected: str
) -> None:
    outcome = table.outcome(text)
    if not expected.startswith(("error:", "invalid:")):
        expected = json.dumps(json.loads(expected), sort_keys=True, ensure_ascii=False)
    assert outcome == expected
