"""Statements compiled for one caller: the caller's variables have their values, texts are patterns.

Source: IAM User Guide, "IAM JSON policy elements: Condition operators" and "Set operators for
multi-value context keys".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from dynactor.model.access.operators import Operator, literal_values
from dynactor.model.access.policy import PolicyCondition, PolicyStatement
from dynactor.model.access.principal import Principal, is_of_caller
from dynactor.model.access.templates import Template, arn_pattern, text_pattern


class UnknownFact(Exception):
    """A fact can't be derived from the request, for example because its table does not exist.

    A statement that asks for the fact denies, and does not allow.
    """


class Facts(Protocol):
    """The condition keys of one request and action."""

    def values(self, key: str) -> Sequence[str] | None:
        """The values of a key, in lower case; None without such a key. Raises ``UnknownFact``."""


Test: TypeAlias = Callable[[Facts], bool]


class Rule:
    """A statement that is about one action and resource, with the tests of its conditions."""

    def __init__(self, statement: PolicyStatement, tests: Sequence[tuple[str, Test]]) -> None:
        self.statement = statement
        # Each test with the words of the condition.
        self.tests = tests
        self._tests = [test for _, test in tests]
        self._is_deny = statement.effect == "Deny"

    def holds(self, facts: Facts) -> bool:
        """Whether all conditions hold. An unknown fact makes a Deny hold, and an Allow not."""
        holds = True
        for test in self._tests:
            try:
                if not test(facts):
                    return False
            except UnknownFact:
                holds = self._is_deny
        return holds


class CompiledStatement:
    """A statement for one caller."""

    def __init__(self, statement: PolicyStatement, principal: Principal) -> None:
        self.statement = statement
        self._actions = [text_pattern(action) for action in statement.actions]
        bound = [_bound(resource, principal) for resource in statement.resources]
        self._closed_resources = [one for one in bound if one is not None and not one.variables]
        self._resources = list(map(arn_pattern, self._closed_resources))
        # Resources with variables whose values depend on the request.
        self._open_resources = [one for one in bound if one is not None and one.variables]
        self._tests = [
            (
                f"{condition.operator.name} {condition.shown_key}",
                _test(statement, condition, _bound_values(condition, principal)),
            )
            for condition in statement.conditions
        ]

    def names_action(self, action: str) -> bool:
        """Whether the statement is about an action."""
        lower = action.lower()
        return any(matches(lower) for matches in self._actions) != self.statement.not_actions

    def rule(self, action: str, resource: str) -> Rule | None:
        """The rule for an action and a resource; None if the statement is not about them."""
        if not self.names_action(action):
            return None
        negated = self.statement.not_resources
        if any(matches(resource) for matches in self._resources):
            return None if negated else Rule(self.statement, self._tests)
        if not self._open_resources:
            return Rule(self.statement, self._tests) if negated else None

        def names_resource(facts: Facts) -> bool:
            found = any(arn_pattern(one)(resource) for one in self._filled_resources(facts))
            return found != negated

        return Rule(self.statement, [("Resource", names_resource), *self._tests])

    def resources(self, facts: Facts) -> list[Template]:
        """The patterns of Resource or NotResource for a request; none has variables."""
        return [*self._closed_resources, *self._filled_resources(facts)]

    def conditions_hold(self, facts: Facts) -> bool:
        """Whether all conditions hold for a request."""
        return Rule(self.statement, self._tests).holds(facts)

    def _filled_resources(self, facts: Facts) -> list[Template]:
        filled = [one.with_values(facts.values) for one in self._open_resources]
        return [one for one in filled if one is not None]


def _bound(template: Template, principal: Principal) -> Template | None:
    """A template with the variables of the caller; None if one has no value: it matches nothing."""
    return template.with_values(principal.values, is_of_caller)


def _bound_values(condition: PolicyCondition, principal: Principal) -> list[Template]:
    bound = [_bound(value, principal) for value in condition.values]
    return [value for value in bound if value is not None]


def _test(statement: PolicyStatement, condition: PolicyCondition, values: list[Template]) -> Test:
    operator, key = condition.operator, condition.key
    if operator.family == "Null":
        wants_absent = operator.matcher(values)
        return lambda facts: bool(wants_absent("true" if not facts.values(key) else "false"))
    if_absent = _holds_if_absent(operator)
    is_any = operator.qualifier == "ForAnyValue" or (
        # Without a qualifier, one value decides. Several values may each deny, and all must allow.
        not operator.qualifier and statement.effect == "Deny"
    )
    if any(value.variables for value in values):
        return _test_with_variables(condition, values, if_absent=if_absent, is_any=is_any)
    holds = _holds(operator, values, is_any=is_any)

    def test(facts: Facts) -> bool:
        given = facts.values(key)
        return holds(given) if given else if_absent

    return test


def _test_with_variables(
    condition: PolicyCondition, values: list[Template], *, if_absent: bool, is_any: bool
) -> Test:
    """The test of a condition whose values depend on the request."""
    operator, key = condition.operator, condition.key

    def test(facts: Facts) -> bool:
        given = facts.values(key)
        if not given:
            return if_absent
        filled = [value.with_values(facts.values) for value in values]
        known = [one for one in filled if one is not None]
        return _holds(operator, known, is_any=is_any)(given)

    return test


def _holds(
    operator: Operator, values: list[Template], *, is_any: bool
) -> Callable[[Sequence[str]], bool]:
    """Whether a condition holds for the values of a request: for any, or for all of them."""
    texts = literal_values(operator, values)
    if texts is not None and not operator.negated:
        if is_any:
            return lambda given: not texts.isdisjoint(given)
        return texts.issuperset
    matches = operator.matcher(values)
    negated = operator.negated

    def holds(given: Sequence[str]) -> bool:
        for one in given:
            is_accepted = bool(matches(one)) is not negated
            if is_accepted is is_any:
                return is_any
        return not is_any

    return holds


def _holds_if_absent(operator: Operator) -> bool:
    """Whether a condition holds if the request does not have its key."""
    match operator.qualifier:
        case "ForAllValues":
            return True
        case "ForAnyValue":
            return operator.if_exists
    return operator.if_exists or operator.negated
