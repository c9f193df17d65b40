"""Suggests the least policy that allows recorded actions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct, json

from dynactor.model.access.action_table import ACTIONS

# IAM User Guide, "IAM and AWS STS quotas": characters of a managed policy without white space.
POLICY_CHARACTERS: Final = 6_144


class RecordedAction(Struct, frozen=True):
    """An action on a resource that a caller asked for, and the leading keys of all its requests.

    ``leading_keys`` is None if a request had none, or if they were many. ``is_pattern``: the
    resource is a pattern with wildcards, because the caller used many resources.
    """

    action: str
    resource: str
    leading_keys: frozenset[str] | None = None
    is_pattern: bool = False


class Suggestion(Struct, frozen=True):
    """A policy as JSON values, and the reasons for its wildcards."""

    policy: dict[str, Any]
    notes: tuple[str, ...]


def suggested(recorded: Iterable[RecordedAction]) -> Suggestion:
    """The least policy that allows these actions, and nothing but these actions."""
    notes: dict[str, None] = {}
    actions: dict[tuple[str, frozenset[str] | None], set[str]] = defaultdict(set)
    for one in recorded:
        actions[_resource(one, notes), one.leading_keys].add(one.action)
    resources: dict[tuple[tuple[str, ...], frozenset[str] | None], list[str]] = defaultdict(list)
    for (resource, keys), names in sorted(actions.items(), key=_order):
        resources[tuple(sorted(names)), keys].append(resource)
    statements = [
        {"Effect": "Allow", "Action": list(names), "Resource": of_names, **_condition(keys)}
        for (names, keys), of_names in resources.items()
    ]
    policy = {"Version": "2012-10-17", "Statement": statements}
    length = len(json.encode(policy).decode())
    if length > POLICY_CHARACTERS:
        notes[f"The policy has {length:,} characters: AWS allows {POLICY_CHARACTERS:,}"] = None
    return Suggestion(policy, tuple(notes))


def _order(group: tuple[tuple[str, frozenset[str] | None], set[str]]) -> tuple[str, list[str]]:
    (resource, keys), _ = group
    return resource, sorted(keys or ())


def _resource(recorded: RecordedAction, notes: dict[str, None]) -> str:
    """The Resource for an action; the reason for a wildcard is added to the notes."""
    name = recorded.action.partition(":")[2]
    if name in ACTIONS and not ACTIONS[name].resources:
        notes[f"The Resource of {recorded.action} is *, because it has no resources"] = None
        return "*"
    if recorded.is_pattern:
        notes[
            f"The Resource of {recorded.action} has a wildcard, because it was on many resources"
        ] = None
        return recorded.resource
    return literal(recorded.resource)


def literal(text: str) -> str:
    """A text in the form in which a Resource stands for exactly this text."""
    return text.replace("$", "${$}").replace("*", "${*}").replace("?", "${?}")


def _condition(keys: frozenset[str] | None) -> dict[str, Any]:
    """The condition on leading keys; Null denies requests without them."""
    if keys is None:
        return {}
    texts = sorted(key.replace("$", "${$}") for key in keys)
    return {
        "Condition": {
            "ForAllValues:StringEquals": {"dynamodb:LeadingKeys": texts},
            "Null": {"dynamodb:LeadingKeys": "false"},
        }
    }
