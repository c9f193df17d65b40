"""Explains decisions: why each statement applies to an action or not, and risky statements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct

from dynactor.model.access.action_table import ACTIONS
from dynactor.model.access.decision import Grants, denial_text, names
from dynactor.model.access.policy import Policy, PolicyStatement
from dynactor.model.access.principal import Principal
from dynactor.model.access.rules import CompiledStatement, Facts, UnknownFact

# No table has such a name, so only a pattern of all tables is about it.
_ANY_TABLE: Final = "table/ "
_LEADING_KEYS: Final = "dynamodb:leadingkeys"
# Actions that read items of all partition keys, and have no leading keys then.
_WITHOUT_KEYS: Final = ("dynamodb:Scan", "dynamodb:PartiQLSelect", "dynamodb:GetRecords")


class StatementOutcome(Struct, frozen=True, rename="pascal", omit_defaults=True):
    """A statement of a policy, and the reason why it does not apply; empty if it applies."""

    statement: str
    effect: Literal["Allow", "Deny"]
    reason: str = ""


class Decision(Struct, frozen=True, rename="pascal", omit_defaults=True):
    """The decision on an action, AWS's message for a denial, and each statement's outcome."""

    decision: Literal["allow", "deny"]
    action: str
    resource: str
    message: str = ""
    statements: tuple[StatementOutcome, ...] = ()


def explained(
    grants: Grants,
    action: str,
    resource: str,
    facts: Facts,
    resource_policy: Policy | None = None,
) -> Decision:
    """Decide an action on a resource, and say why each statement applies or not."""
    denial = grants.denial(action, resource, facts, resource_policy)
    policies = [*grants.policies, *grants.session_policies]
    if resource_policy is not None:
        policies.append(resource_policy)
    return Decision(
        "allow" if denial is None else "deny",
        action,
        resource,
        "" if denial is None else denial_text(grants.principal.arn, action, resource, denial),
        tuple(
            StatementOutcome(
                shown(policy, one),
                one.effect,
                _reason(policy, one, grants.principal, (action, resource), facts),
            )
            for policy in policies
            for one in policy.statements
        ),
    )


def shown(policy: Policy, statement: PolicyStatement) -> str:
    """A statement in words: its policy, and its Sid or its line."""
    # The name of a resource policy is its text.
    name = "resource policy" if policy.kind == "resource" else policy.name
    return f"{name}: {statement.sid or f'line {statement.line}'}"


def _reason(
    policy: Policy,
    statement: PolicyStatement,
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
            if _allows_everything(statement, grants.principal):
                yield f"{shown(policy, statement)} allows all actions on all tables"
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
                yield (
                    f"{shown(policy, statement)} allows {', '.join(open_actions)} without leading "
                    'keys, because ForAllValues is then true: add "Null": '
                    '{"dynamodb:LeadingKeys": "false"}'
                )


def _allows_everything(statement: PolicyStatement, principal: Principal) -> bool:
    if statement.effect == "Deny" or statement.conditions or statement.not_resources:
        return False
    compiled = CompiledStatement(statement, principal)
    resource = f"arn:aws:dynamodb:any-region:{principal.account}:{_ANY_TABLE}"
    rules = [compiled.rule(f"dynamodb:{name}", resource) for name in ACTIONS]
    # A rule has a test if its Resource depends on the request.
    return all(rule is not None and not rule.tests for rule in rules)
