"""Suggests the least policy that allows recorded actions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from msgspec import Struct, json

from dynactor.model.access.action_table import ACTIONS
from dynactor.model.access.bucket_grant import READ, WRITE
from dynactor.model.access.templates import literal

# IAM User Guide, "IAM and AWS STS quotas": characters of a managed policy without white space.
POLICY_CHARACTERS: Final = 6_144

# Leading keys and prefixes.
_Values: TypeAlias = tuple[frozenset[str] | None, frozenset[str] | None]


class RecordedAction(Struct, frozen=True):
    """An action on a resource that a caller asked for, and the leading keys of all its requests.

    ``leading_keys`` is None if a request had none, or if they were many. ``prefixes`` are those of
    lists of a bucket. ``is_pattern``: the resource is a pattern with wildcards, because the caller
    used many resources, or all objects below a prefix.
    """

    action: str
    resource: str
    leading_keys: frozenset[str] | None = None
    is_pattern: bool = False
    prefixes: frozenset[str] | None = None


class Suggestion(Struct, frozen=True):
    """A policy as JSON values, and the reasons for its wildcards."""

    policy: dict[str, Any]
    notes: tuple[str, ...]


def suggested(recorded: Iterable[RecordedAction]) -> Suggestion:
    """The least policy that allows these actions, and nothing but these actions."""
    notes: dict[str, None] = {}
    actions: dict[tuple[str, _Values], set[str]] = defaultdict(set)
    for one in recorded:
        actions[_resource(one, notes), (one.leading_keys, one.prefixes)].add(one.action)
    resources: dict[tuple[tuple[str, ...], _Values], list[str]] = defaultdict(list)
    for (resource, values), names in sorted(actions.items(), key=_order):
        resources[tuple(sorted(names)), values].append(resource)
    statements = [
        {"Effect": "Allow", "Action": list(names), "Resource": arns, **_condition(*values)}
        for (names, values), arns in resources.items()
    ]
    policy = {"Version": "2012-10-17", "Statement": statements}
    length = len(json.encode(policy).decode())
    if length > POLICY_CHARACTERS:
        notes[f"The policy has {length:,} characters: AWS allows {POLICY_CHARACTERS:,}"] = None
    return Suggestion(policy, tuple(notes))


def _order(group: tuple[tuple[str, _Values], set[str]]) -> tuple[str, list[str], list[str]]:
    (resource, (keys, prefixes)), _ = group
    return resource, sorted(keys or ()), sorted(prefixes or ())


def _resource(recorded: RecordedAction, notes: dict[str, None]) -> str:
    """The Resource for an action; the reason for a wildcard is added to the notes."""
    name = recorded.action.partition(":")[2]
    if name in ACTIONS and not ACTIONS[name].resources:
        notes[f"The Resource of {recorded.action} is *, because it has no resources"] = None
        return "*"
    if recorded.is_pattern:
        is_object = recorded.action in (READ, WRITE)
        reason = "it is on all objects below a prefix" if is_object else "it was on many resources"
        notes[f"The Resource of {recorded.action} has a wildcard, because {reason}"] = None
        return recorded.resource
    return literal(recorded.resource)


def _condition(keys: frozenset[str] | None, prefixes: frozenset[str] | None) -> dict[str, Any]:
    """The condition on leading keys or prefixes; Null denies requests without leading keys."""
    if prefixes is not None:
        texts = sorted(prefix.replace("$", "${$}") for prefix in prefixes)
        return {"Condition": {"StringEquals": {"s3:prefix": texts}}}
    if keys is None:
        return {}
    texts = sorted(key.replace("$", "${$}") for key in keys)
    return {
        "Condition": {
            "ForAllValues:StringEquals": {"dynamodb:LeadingKeys": texts},
            "Null": {"dynamodb:LeadingKeys": "false"},
        }
    }
