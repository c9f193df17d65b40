"""The expressions in ``tests/cases/expressions`` have their outcomes in the model."""

from __future__ import annotations

from copy import deepcopy
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
from tests.support.tables.expression_scripts import (
    SCRIPTS,
    ExpressionCase,
    as_outcome,
    as_refusal,
    differences,
    expression_cases,
)

SCHEMA = KeySchema((KeyAttribute("p", "S"),), (KeyAttribute("s", "N"),))


def outcome(case: ExpressionCase) -> str:
    try:
        return as_outcome(result(case))
    except ValidationException as error:
        return as_refusal(case.kind, error.message)


def result(case: ExpressionCase) -> Any:
    placeholders = Placeholders(case.names, case.values)
    item = case.item
    if item is not None:
        items.check(item)
    found: Any
    match case.kind:
        case "ConditionExpression":
            condition = parse_condition(case.text, placeholders, kind="ConditionExpression")
            found = condition.evaluate(item or {})
        case "UpdateExpression":
            update = parse_update(case.text, placeholders)
            before = deepcopy(item)
            new = update.apply(item, case.key).item or {}
            assert item == before, "the old item was changed"
            old = case.key if item is None else item
            found = {n: new.get(n) for n in {**old, **new} if old.get(n) != new.get(n)}
            if item is None and not new:
                found = {}
        case "ProjectionExpression":
            found = parse_projection(case.text, placeholders).project(item or {})
        case "KeyConditionExpression":
            key = bind_key_condition(case.text, placeholders).on(SCHEMA)
            found = {
                "partition": list(key.partition),
                "sort": [[term.name, term.operator, *term.values] for term in key.sort],
            }
    placeholders.check_all_used()
    return found


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_each_expression_of_a_script_has_its_outcome(script: Path) -> None:
    assert differences(expression_cases(script), outcome) == []
