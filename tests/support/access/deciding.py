"""Decisions on policies written as Python values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dynactor.model.access.decision import Denial, Grants
from dynactor.model.access.policy import Policy, PolicyKind, parse_policy
from dynactor.model.access.principal import user
from dynactor.model.access.rules import UnknownFact

ACCOUNT = "123456789012"
TABLE = f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/GameScores"
ALICE = user("alice", ACCOUNT, {"team": "blue"})
ALLOWED = "allowed"


class GivenFacts:
    """Facts from a dict; ``None`` stands for a fact that can't be derived."""

    def __init__(self, given: Mapping[str, Sequence[str] | str | None]) -> None:
        self._given = {key.lower(): value for key, value in given.items()}

    def values(self, key: str) -> Sequence[str] | None:
        if key not in self._given:
            return None
        value = self._given[key]
        if value is None:
            raise UnknownFact
        return (value,) if isinstance(value, str) else value


def policy(*statements: Mapping[str, Any], kind: PolicyKind = "identity") -> Policy:
    """A policy of these statements; one without Action or Resource is about everything."""
    document = {"Version": "2012-10-17", "Statement": [_whole(one, kind) for one in statements]}
    text = json.dumps(document)
    return parse_policy(text, text, kind)


def _whole(statement: Mapping[str, Any], kind: PolicyKind) -> dict[str, Any]:
    whole = {"Effect": "Allow", **statement}
    if not {"Action", "NotAction"} & whole.keys():
        whole["Action"] = "*"
    if kind != "trust" and not {"Resource", "NotResource"} & whole.keys():
        whole["Resource"] = "*"
    return whole


def decision(
    grants: Grants | Policy,
    action: str = "dynamodb:GetItem",
    resource: str = TABLE,
    facts: Mapping[str, Sequence[str] | str | None] | None = None,
    resource_policy: Policy | None = None,
) -> str:
    """``allowed``, or the reason of the denial in short words."""
    if isinstance(grants, Policy):
        grants = Grants(ALICE, [grants])
    denial = grants.denial(action, resource, GivenFacts(facts or {}), resource_policy)
    return ALLOWED if denial is None else shown(denial)


def shown(denial: Denial) -> str:
    """A denial in short words."""
    return f"{denial.policy_type} {'deny' if denial.is_explicit else 'does not allow'}"
