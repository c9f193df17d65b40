"""Decides whether policies allow an action: an explicit deny wins, and the default is to deny.

The result does not depend on the order of policies and statements.

Source: IAM User Guide, "Policy evaluation logic" for requests within one account.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from dynactor.model.access.policy import Policy, PolicyStatement
from dynactor.model.access.principal import Principal
from dynactor.model.access.rules import CompiledStatement, Facts, Rule

PolicyType: TypeAlias = Literal["identity-based", "resource-based", "session"]

# Pairs of action and resource whose rules are cached for each caller.
_CACHED_PAIRS: Final = 2048
# Longer than all valid ARNs. Callers choose the names of resources.
RESOURCE_CHARACTERS: Final = 2_048
# Resource policies that are compiled for each caller.
_CACHED_POLICIES: Final = 64


class Denial(Struct, frozen=True):
    """The reason of a denial: an explicit deny in a type of policy, or no policy that allows."""

    policy_type: PolicyType
    is_explicit: bool


def denial_text(arn: str, action: str, resource: str, denial: Denial) -> str:
    """AWS's message for a denied action."""
    text = f"User: {arn} is not authorized to perform: {action} on resource: {resource} "
    if denial.is_explicit:
        article = "an" if denial.policy_type == "identity-based" else "a"
        return f"{text}with an explicit deny in {article} {denial.policy_type} policy"
    return f"{text}because no {denial.policy_type} policy allows the {action} action"


class _ActionRules(NamedTuple):
    """The rules for one action and resource."""

    denies: tuple[Rule, ...]
    allows: tuple[Rule, ...]
    # Whether an allow has no conditions.
    is_always_allowed: bool

    def is_denied(self, facts: Facts) -> bool:
        """Whether a rule denies."""
        return _any_holds(self.denies, facts)

    def is_allowed(self, facts: Facts) -> bool:
        """Whether a rule allows; the denies are tested elsewhere."""
        return self.is_always_allowed or _any_holds(self.allows, facts)


def _any_holds(rules: Sequence[Rule], facts: Facts) -> bool:
    # A loop, because a generator costs as much as a rule.
    for rule in rules:  # noqa: SIM110
        if rule.holds(facts):
            return True
    return False


class Grants:
    """The policies of one caller. Policies of a session restrict those of its role or user."""

    def __init__(
        self,
        principal: Principal,
        identity: Sequence[Policy],
        session: Sequence[Policy] | None = None,
        *,
        is_session: bool = False,
        user_name: str = "",
    ) -> None:
        """``is_session``: the caller has temporary credentials.

        ``user_name`` is the user who assumed the caller's role, if the caller is no user.
        """
        self.principal = principal
        self.policies = tuple(identity)
        self.session_policies = tuple(session or ())
        self.is_session = is_session
        self.user_name = principal.user_name or user_name
        self.identity = _PolicySet(principal, identity)
        self.session = None if session is None else _PolicySet(principal, session)
        self._resource_policies: dict[str, _PolicySet] = {}

    def denial(
        self, action: str, resource: str, facts: Facts, resource_policy: Policy | None = None
    ) -> Denial | None:
        """The reason why an action on a resource is denied; None if it is allowed."""
        identity = self.identity.rules(action, resource)
        if resource_policy is not None or self.session is not None:
            return self._denial_of_all(action, resource, facts, identity, resource_policy)
        if identity.denies and identity.is_denied(facts):
            return Denial("identity-based", is_explicit=True)
        if identity.is_allowed(facts):
            return None
        return Denial("identity-based", is_explicit=False)

    def _denial_of_all(
        self,
        action: str,
        resource: str,
        facts: Facts,
        identity: _ActionRules,
        resource_policy: Policy | None,
    ) -> Denial | None:
        attached = self._policies_of_resource(resource_policy)
        resource_rules = attached.rules(action, resource)
        session = None if self.session is None else self.session.rules(action, resource)
        if identity.is_denied(facts):
            return Denial("identity-based", is_explicit=True)
        if resource_rules.is_denied(facts):
            return Denial("resource-based", is_explicit=True)
        if session is not None and session.is_denied(facts):
            return Denial("session", is_explicit=True)
        if session is not None and not session.is_allowed(facts):
            # A resource policy that names the session itself is not restricted by its policy.
            if attached.rules_of_session(action, resource).is_allowed(facts):
                return None
            return Denial("session", is_explicit=False)
        if identity.is_allowed(facts) or resource_rules.is_allowed(facts):
            return None
        return Denial("identity-based", is_explicit=False)

    def _policies_of_resource(self, policy: Policy | None) -> _PolicySet:
        """A resource policy, compiled; different policies have different names."""
        name = "" if policy is None else policy.name
        found = self._resource_policies.get(name)
        if found is None:
            if len(self._resource_policies) >= _CACHED_POLICIES:
                self._resource_policies.clear()
            found = _PolicySet(self.principal, () if policy is None else (policy,))
            self._resource_policies[name] = found
        return found


class _PolicySet:
    """The policies of one type of one caller."""

    def __init__(self, principal: Principal, policies: Sequence[Policy]) -> None:
        self._principal = principal
        self.statements = [
            (policy, CompiledStatement(statement, principal))
            for policy in policies
            for statement in policy.statements
            if policy.kind != "resource" or names(statement, principal)
        ]
        self._cache: dict[tuple[str, str], _ActionRules] = {}

    def rules(self, action: str, resource: str) -> _ActionRules:
        found = self._cache.get((action, resource))
        if found is None:
            if len(self._cache) >= _CACHED_PAIRS:
                # Callers choose the names of resources, so the cache has a limit.
                self._cache.clear()
            found = _rules([one for _, one in self.statements], action, resource)
            if len(resource) <= RESOURCE_CHARACTERS:
                self._cache[action, resource] = found
        return found

    def rules_of_session(self, action: str, resource: str) -> _ActionRules:
        """The rules of statements whose Principal is the caller's session itself."""
        own = [one for _, one in self.statements if self._principal.arn in one.statement.principals]
        return _rules(own, action, resource)


def _rules(statements: Sequence[CompiledStatement], action: str, resource: str) -> _ActionRules:
    found = [rule for one in statements if (rule := one.rule(action, resource)) is not None]
    allows = tuple(rule for rule in found if rule.statement.effect == "Allow")
    return _ActionRules(
        tuple(rule for rule in found if rule.statement.effect == "Deny"),
        allows,
        any(not rule.tests for rule in allows),
    )


def names(statement: PolicyStatement, principal: Principal) -> bool:
    """Whether the Principal of a statement names a caller.

    An account as Principal leaves the decision to the policies of its users. So its Allow allows
    nothing by itself, and its Deny denies.
    """
    wanted = {"*", principal.arn, principal.principal_arn}
    if statement.effect == "Deny":
        wanted |= account_names(principal)
    return not wanted.isdisjoint(statement.principals)


def account_names(principal: Principal) -> set[str]:
    """The forms of a Principal that stand for the whole account of a caller."""
    return {principal.account, f"arn:aws:iam::{principal.account}:root"}


def trust_denial(
    caller: Grants, trust: Policy, action: str, resource: str, facts: Facts
) -> Denial | None:
    """The reason why a role with this trust policy can't be assumed; None if it can.

    A trust policy that names the caller is enough. If it names the account, the caller's own
    policies must allow the action too.
    """
    principal = caller.principal
    identity = caller.identity.rules(action, resource)
    if identity.is_denied(facts):
        return Denial("identity-based", is_explicit=True)
    naming = [one for one in trust.statements if names(one, principal)]
    direct = _rules([CompiledStatement(one, principal) for one in naming], action, resource)
    if direct.is_denied(facts):
        return Denial("resource-based", is_explicit=True)
    if caller.session is not None:
        session = caller.session.rules(action, resource)
        if session.is_denied(facts) or not session.is_allowed(facts):
            return Denial("session", is_explicit=False)
    if direct.is_allowed(facts):
        return None
    account = account_names(principal)
    account_statements = [one for one in trust.statements if not account.isdisjoint(one.principals)]
    rules = _rules(
        [CompiledStatement(one, principal) for one in account_statements], action, resource
    )
    if rules.is_allowed(facts) and identity.is_allowed(facts):
        return None
    return Denial("identity-based", is_explicit=False)
