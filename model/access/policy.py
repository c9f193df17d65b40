"""Parses policy documents strictly: an unknown element, operator or key refuses the policy.

AWS ignores some mistakes, and the policy then allows or denies something else than intended.

Source: IAM User Guide, "IAM JSON policy elements reference" and "Grammar of the IAM JSON policy
language".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from dynactor.model.access import condition_keys
from dynactor.model.access.action_table import ACTIONS
from dynactor.model.access.document import JsonNode, MissingElement, PolicyError, parse_json
from dynactor.model.access.operators import BadOperand, Operator, find_operator
from dynactor.model.access.templates import (
    EVERYTHING,
    BadTemplate,
    Template,
    is_arn,
    parse_template,
    text_pattern,
)

Effect: TypeAlias = Literal["Allow", "Deny"]
# identity: of a user or role. resource: of a table or stream. session: of a session. trust: who may
# assume a role.
PolicyKind: TypeAlias = Literal["identity", "resource", "session", "trust"]

_VERSION: Final = "2012-10-17"
# Policies of this version have no variables. It is the default.
_OLD_VERSION: Final = "2008-10-17"
_ELEMENTS: Final = frozenset({"Version", "Id", "Statement"})
_STATEMENT_ELEMENTS: Final = frozenset(
    {"Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Principal", "Condition"}
)
_ACTION: Final = re.compile(r"([a-z0-9-]+):([a-z0-9*?]+)\Z", re.ASCII)
_PRINCIPAL: Final = re.compile(r"(?:\*|[0-9]{12}|arn:[^:]*:(?:iam|sts)::[0-9]{12}:\S+)\Z", re.ASCII)
# Services whose actions policies may name. Their other actions can't be checked here.
_OWN_SERVICE: Final = "dynamodb"
_ACTION_NAMES: Final = tuple(name.lower() for name in ACTIONS)


class PolicyCondition(Struct, frozen=True):
    """One operator, one key in lower case, and the values. One matching value is enough."""

    operator: Operator
    key: str
    # The key as it is written in the policy.
    shown_key: str
    values: tuple[Template, ...]


class PolicyStatement(Struct, frozen=True):
    """One statement. ``actions`` are in lower case, ``principals`` a resource policy's texts."""

    sid: str
    line: int
    effect: Effect
    actions: tuple[Template, ...]
    not_actions: bool
    resources: tuple[Template, ...]
    not_resources: bool
    principals: tuple[str, ...]
    conditions: tuple[PolicyCondition, ...]


class Policy(Struct, frozen=True):
    """A parsed policy; ``name`` says where it is from."""

    name: str
    kind: PolicyKind
    statements: tuple[PolicyStatement, ...]


def parse_policy(text: str, name: str, kind: PolicyKind = "identity") -> Policy:
    """Parse a policy document; raises ``PolicyError``."""
    return parsed_policy(parse_json(text), name, kind)


def parsed_policy(document: JsonNode, name: str, kind: PolicyKind) -> Policy:
    """The policy in a document that has been read; raises ``PolicyError``."""
    members = _object(document, "a policy")
    _check_elements(members, _ELEMENTS, "a policy")
    variables = False
    if "Version" in members:
        version = _text(members["Version"], "Version")
        if version not in (_VERSION, _OLD_VERSION):
            raise PolicyError(f"Version must be {_VERSION}", members["Version"].line)
        variables = version == _VERSION
    if "Id" in members:
        _text(members["Id"], "Id")
    if "Statement" not in members:
        raise MissingElement("Statement", "the policy has no Statement", document.line)
    found = _list(members["Statement"])
    if not found:
        raise PolicyError("the policy has no Statement", members["Statement"].line)
    statements = tuple(_statement(node, kind, variables=variables) for node in found)
    sids = set()
    for statement in statements:
        if statement.sid and statement.sid in sids:
            raise PolicyError(f"the Sid {statement.sid} is given twice", statement.line)
        sids.add(statement.sid)
    return Policy(name, kind, statements)


def _statement(node: JsonNode, kind: PolicyKind, *, variables: bool) -> PolicyStatement:
    members = _object(node, "a statement")
    _check_elements(members, _STATEMENT_ELEMENTS, "a statement")
    if "Effect" not in members:
        raise MissingElement("Effect", "the statement has no Effect", node.line)
    effect = _text(members["Effect"], "Effect")
    if effect not in ("Allow", "Deny"):
        raise PolicyError("Effect must be Allow or Deny", members["Effect"].line)
    actions, not_actions = _either_member(node, members, "Action")
    not_resources = False
    # A trust policy is about its role.
    templates: tuple[Template, ...] = (EVERYTHING,)
    if kind != "trust":
        resources, not_resources = _either_member(node, members, "Resource")
        templates = tuple(_resource(one, variables=variables) for one in resources)
    elif {"Resource", "NotResource"} & members.keys():
        raise PolicyError("a trust policy has no Resource", node.line)
    return PolicyStatement(
        _text(members["Sid"], "Sid") if "Sid" in members else "",
        node.line,
        "Allow" if effect == "Allow" else "Deny",
        tuple(map(_action, actions)),
        not_actions,
        templates,
        not_resources,
        _principals(node, members, kind),
        _conditions(members["Condition"], variables=variables) if "Condition" in members else (),
    )


def _either_member(
    node: JsonNode, members: dict[str, JsonNode], name: str
) -> tuple[Sequence[JsonNode], bool]:
    """The values of an element or of its negation, and whether it is the negation."""
    negation = f"Not{name}"
    if (name in members) == (negation in members):
        message = f"a statement needs {name} or {negation}, and not both"
        if name in members:
            raise PolicyError(message, node.line)
        raise MissingElement(name, message, node.line)
    is_negated = negation in members
    values = _list(members[negation if is_negated else name])
    if not values:
        raise PolicyError(f"{negation if is_negated else name} has no value", node.line)
    return values, is_negated


def _action(node: JsonNode) -> Template:
    text = _text(node, "Action").lower()
    if text == "*":
        return EVERYTHING
    found = _ACTION.match(text)
    if found is None:
        raise PolicyError(f"{node.value!r} is not an action: give SERVICE:ACTION", node.line)
    template = _template(node, text, wildcards=True, variables=False)
    if found[1] == _OWN_SERVICE:
        name = parse_template(found[2], wildcards=True, variables=False)
        if not any(map(text_pattern(name), _ACTION_NAMES)):
            raise PolicyError(f"{node.value} is not an action of DynamoDB", node.line)
    return template


def _resource(node: JsonNode, *, variables: bool) -> Template:
    template = _template(
        node, _text(node, "Resource"), wildcards=True, variables=variables, are_keys_checked=True
    )
    if not is_arn(template):
        raise PolicyError(f"{node.value!r} is neither * nor an ARN of six fields", node.line)
    return template


def _principals(node: JsonNode, members: dict[str, JsonNode], kind: PolicyKind) -> tuple[str, ...]:
    if kind not in ("resource", "trust"):
        if "Principal" in members:
            raise PolicyError(f"a policy of kind {kind} has no Principal", node.line)
        return ()
    if "Principal" not in members:
        raise MissingElement("Principal", f"a {kind} policy needs a Principal", node.line)
    given = members["Principal"]
    if given.value == "*":
        return ("*",)
    kinds = _object(given, "a Principal")
    if kinds.keys() != {"AWS"}:
        raise PolicyError('Principal must be "*" or {"AWS": …}', given.line)
    found = []
    for one in _list(kinds["AWS"]):
        text = _text(one, "Principal")
        if _PRINCIPAL.match(text) is None:
            raise PolicyError(
                f"{text!r} is not a principal: give *, an account, or the ARN of a user or role",
                one.line,
            )
        found.append(text)
    return tuple(found)


def _conditions(node: JsonNode, *, variables: bool) -> tuple[PolicyCondition, ...]:
    found = []
    for name, keys in _object(node, "Condition").items():
        operator = find_operator(name)
        if operator is None:
            raise PolicyError(f"{name} is not a condition operator", keys.line)
        for key, values in _object(keys, f"the value of {name}").items():
            found.append(_condition(operator, key, values, variables=variables))
    return tuple(found)


def _condition(operator: Operator, key: str, node: JsonNode, *, variables: bool) -> PolicyCondition:
    lower = key.lower()
    if not condition_keys.is_known(lower):
        raise PolicyError(f"{key} is not a condition key that this server has", node.line)
    if (
        condition_keys.has_several_values(lower)
        and not operator.qualifier
        and operator.family != "Null"
    ):
        raise PolicyError(
            f"{key} may have several values: write ForAllValues:{operator.name} or "
            f"ForAnyValue:{operator.name}",
            node.line,
        )
    values = []
    for one in _list(node):
        if isinstance(one.value, bool):
            text = "true" if one.value else "false"
        else:
            text = _text(one, f"the value of {key}")
        template = _template(
            one,
            text,
            wildcards=operator.wildcards,
            variables=variables and operator.variables,
            are_keys_checked=True,
        )
        if not template.variables:
            if operator.family == "Arn" and not is_arn(template):
                raise PolicyError(
                    f"{operator.name} of {key}: {text!r} is neither * nor an ARN of six fields",
                    one.line,
                )
            try:
                operator.matcher((template,))
            except BadOperand as error:
                raise PolicyError(f"{operator.name} of {key}: {error}", one.line) from None
        values.append(template)
    if not values:
        raise PolicyError(f"{operator.name} of {key} has no value", node.line)
    return PolicyCondition(operator, lower, key, tuple(values))


def _template(
    node: JsonNode, text: str, *, wildcards: bool, variables: bool, are_keys_checked: bool = False
) -> Template:
    try:
        template = parse_template(text, wildcards=wildcards, variables=variables)
    except BadTemplate as error:
        raise PolicyError(str(error), node.line) from None
    for variable in template.variables if are_keys_checked else ():
        if not condition_keys.is_known(variable.key):
            raise PolicyError(
                f"${{{variable.key}}} is not a variable that this server has", node.line
            )
        if condition_keys.has_several_values(variable.key):
            raise PolicyError(
                f"${{{variable.key}}} may have several values, so it is not a variable", node.line
            )
    return template


def _check_elements(members: dict[str, JsonNode], known: frozenset[str], kind: str) -> None:
    for name, node in members.items():
        if name not in known:
            raise PolicyError(f"{name} is not an element of {kind} that this server has", node.line)


def _object(node: JsonNode, name: str) -> dict[str, JsonNode]:
    if not isinstance(node.value, dict):
        raise PolicyError(f"{name} must be an object", node.line)
    return node.value


def _list(node: JsonNode) -> tuple[JsonNode, ...]:
    """The elements of a list; a single value counts as a list of one."""
    return node.value if isinstance(node.value, tuple) else (node,)


def _text(node: JsonNode, name: str) -> str:
    if not isinstance(node.value, str):
        raise PolicyError(f"{name} must be a text", node.line)
    return node.value
