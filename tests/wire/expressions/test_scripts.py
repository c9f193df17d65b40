"""The expressions in ``tests/cases/expressions`` have their outcomes over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients.clients import WireClient, refusal
from tests.support.clients.envelope import as_reported_by
from tests.support.tables.expression_scripts import (
    SCRIPTS,
    ExpressionCase,
    as_outcome,
    as_refusal,
    differences,
    expression_cases,
)
from tests.support.tables.tables import table

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local
_ENVELOPE = as_reported_by("UpdateItem", "")
_UNKNOWN: dict[str, Any] = {"": None}


class Asker:
    """Evaluates expressions by requests; puts the item of a case if the table has another.

    ``tables`` has a table by the names of its key attributes.
    """

    def __init__(self, wire: WireClient, tables: dict[tuple[str, ...], str]) -> None:
        self._wire = wire
        self._tables = tables
        self._item: dict[str, Any] | None = _UNKNOWN

    def outcome(self, case: ExpressionCase) -> str:
        self._prepare(case)
        ask: dict[str, Callable[[ExpressionCase], str]] = {
            "ConditionExpression": self._condition,
            "UpdateExpression": self._update,
            "ProjectionExpression": self._projection,
            "KeyConditionExpression": self._key_condition,
        }
        return ask[case.kind](case)

    def _located(self, case: ExpressionCase) -> dict[str, Any]:
        return {"TableName": self._tables[tuple(case.key)], "Key": case.key}

    def _prepare(self, case: ExpressionCase) -> None:
        if case.item is None:
            self._wire("DeleteItem", self._located(case))
        elif case.item != self._item:
            self._wire("PutItem", {"TableName": self._tables[tuple(case.key)], "Item": case.item})
        self._item = case.item

    def _ask(self, operation: str, case: ExpressionCase) -> tuple[str, dict[str, Any]]:
        """The text of a refusal, or the answer."""
        request: dict[str, Any] = {**self._located(case), case.kind: case.text}
        if operation == "Query":
            del request["Key"]
        if case.kind == "UpdateExpression":
            request["ReturnValues"] = "ALL_NEW"
        if case.names:
            request["ExpressionAttributeNames"] = case.names
        if case.values:
            request["ExpressionAttributeValues"] = case.values
        answer = self._wire.send(operation, request)
        if answer.status == 200:
            return "", answer.json
        error = refusal(answer)
        if error.type != "ValidationException":
            return error.type, {}
        return as_refusal(case.kind, (error.message or "").removeprefix(_ENVELOPE)), {}

    def _condition(self, case: ExpressionCase) -> str:
        # Neither request changes anything.
        refused, _ = self._ask("DeleteItem" if case.item is None else "UpdateItem", case)
        if refused == "ConditionalCheckFailedException":
            return "false"
        return refused or "true"

    def _update(self, case: ExpressionCase) -> str:
        old = self._wire("GetItem", self._located(case)).get("Item", {})
        refused, answer = self._ask("UpdateItem", case)
        if refused:
            assert self._wire("GetItem", self._located(case)).get("Item", {}) == old, case
            return refused
        new = answer.get("Attributes", {})
        assert self._wire("GetItem", self._located(case)).get("Item", {}) == new, case
        self._item = _UNKNOWN
        changed = {name for name in {*old, *new} if old.get(name) != new.get(name)}
        return as_outcome({name: new.get(name) for name in changed - case.key.keys()})

    def _projection(self, case: ExpressionCase) -> str:
        refused, answer = self._ask("GetItem", case)
        return refused or as_outcome(answer["Item"])

    def _key_condition(self, case: ExpressionCase) -> str:
        refused, _ = self._ask("Query", case)
        # An answer does not tell how the server understands the condition.
        return refused or as_outcome(json.loads(case.expected))


@pytest.fixture(scope="module")
def asker(wire: WireClient, simple: str) -> Iterator[Asker]:
    with table(wire, "p:S", "s:N") as name:
        yield Asker(wire, {("p", "s"): name, ("pk",): simple})


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_each_expression_of_a_script_has_its_outcome(asker: Asker, script: Path) -> None:
    cases = [case for case in expression_cases(script) if not case.local_reason]
    assert cases
    assert differences(cases, asker.outcome) == []


@differs_from_dynamodb_local("each case has its reason")
def test_outcomes_that_dynamodb_local_does_not_have(asker: Asker) -> None:
    cases = [case for script in SCRIPTS for case in expression_cases(script) if case.local_reason]
    assert cases
    assert differences(cases, asker.outcome) == []
