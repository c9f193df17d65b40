"""Explains decisions: why each statement applies to an action or not, and risky statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from dynactor.model.access.decision import Grants, names
from dynactor.model.access.policy import Policy, Statement
from dynactor.model.access.principal import Principal
from dynactor.model.access.rules import CompiledStatement, Facts, UnknownFact

_LEADING_KEYS: Final = "dynamodb:leadingkeys"
# Actions that read items of all partition keys, and have no leading keys then.
_WITHOUT_KEYS: Final = ("dynamodb:Scan", "dynamodb:PartiQLSelect", "dynamodb:GetRecords")


class StatementOutcome(Struct, frozen=True):
    """A statement of a policy, and the reason why it does not apply; empty if it applies."""

    policy: str
    statement: Statement
    reason: str

    @property
    def shown(self) -> str:
        """The statement in words: its Sid or its line."""
        sid = self.statement.sid
        return f"{self.policy}: {sid}" if sid else f"{self.policy}: line {self.statement.line}"


def explain(
    principal: Principal, policies: Sequence[Policy], action: str, resource: str, facts: Facts
) -> list[StatementOutcome]:
    """Why each statement of some policies applies to an action of a caller, or not."""
    return [
        StatementOutcome(
            policy.name, one, _reason(policy, one, principal, (action, resource), facts)
        )
        for policy in policies
        for one in policy.statements
    ]


def _reason(
    policy: Policy,
    statement: Statement,
    principal: Principal,
    asked: tuple[str, str],
    facts: Facts,
) -> str:
    """The reason why a statement does not apply to an action and a resource; empty if it does."""
    action, resource = asked
    if policy.kind in ("resource", "trust") and not names(statement, principal):
        return "another Principal"
    compiled = CompiledStatement(statement, principal)
    if not compiled.names_action(action):
        return "another Action"
    rule = compiled.rule(action, resource)
    if rule is None:
        return "another Resource"
    if rule.holds(facts):
        return ""
    for words, test in rule.tests:
        try:
            if not test(facts):
                return f"{words} is false"
        except UnknownFact:
            return f"{words} is not known"
    raise AssertionError("a rule that does not hold has a test that fails")


def warnings(grants: Grants) -> Iterator[str]:
    """Statements that allow more than their author may expect."""
    for policy in grants.policies:
        for statement in policy.statements:
            keys = {
                one.operator.family: one for one in statement.conditions if one.key == _LEADING_KEYS
            }
            if statement.effect == "Deny" or "Null" in keys:
                continue
            if not any(one.operator.qualifier == "ForAllValues" for one in keys.values()):
                continue
            compiled = CompiledStatement(statement, grants.principal)
            open_actions = [name for name in _WITHOUT_KEYS if compiled.names_action(name)]
            if open_actions:
                shown = StatementOutcome(policy.name, statement, "").shown
                yield (
                    f"{shown} allows {', '.join(open_actions)} without leading keys, because "
                    'ForAllValues is then true: add "Null": {"dynamodb:LeadingKeys": "false"}'
                )
