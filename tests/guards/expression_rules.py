"""Rules for expressions and their placeholders, for every such member of the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dynactor.model.limits import (
    DOCUMENT_PATH_DEPTH,
    EXPRESSION_BYTES,
    EXPRESSION_OPERATORS,
    EXPRESSION_VALUES_BYTES,
    IN_OPERANDS,
    PLACEHOLDER_BYTES,
    SORT_KEY_BYTES,
)
from tests.guards.rules import Broken, Reason, Rule, given, named
from tests.guards.sites import Request, Site
from tests.guards.valid_requests import base, equal, expressing, legacy_base

_CONDITIONS: Final = ("ConditionExpression", "FilterExpression")
_PATHS: Final = (*_CONDITIONS, "UpdateExpression", "ProjectionExpression")
_ALL: Final = (*_PATHS, "KeyConditionExpression")
_WITH_VALUES: Final = tuple(name for name in _ALL if name != "ProjectionExpression")
_NAMES: Final = "ExpressionAttributeNames"
_VALUES: Final = "ExpressionAttributeValues"

# A Query's filter may not use key attributes at all.
_SCALARS: Final = "Key attributes must be scalars|can only contain non-primary key attributes"
LEGACY: Final = (
    "AttributesToGet",
    "Expected",
    "ConditionalOperator",
    "AttributeUpdates",
    "QueryFilter",
    "ScanFilter",
    "KeyConditions",
)


def using(member: str, path: str) -> str:
    """An expression, of the kind of this member, with no path but this one and no value but
    ``:pk``.
    """
    if member in _CONDITIONS:
        return f"attribute_exists({path})"
    if member == "UpdateExpression":
        return f"REMOVE {path}"
    return f"{path} = :pk" if member == "KeyConditionExpression" else path


def reading(member: str, path: str) -> str:
    """An expression, of the kind of this member, that reads this path and writes no key."""
    return f"SET w = {path}" if member == "UpdateExpression" else using(member, path)


def using_value(member: str, value: str) -> str:
    """An expression, of the kind of this member, with this placeholder of a value."""
    if member == "UpdateExpression":
        return f"SET v = {value}"
    return f"pk = {value}" if member == "KeyConditionExpression" else f"v = {value}"


def any_expression(site: Site) -> str | None:
    """A valid expression for the site."""
    return next((name for name in _PATHS if name in site.members), None)


def _expression_rule(
    name: str,
    message: str,
    text: Callable[[str], str],
    members: tuple[str, ...] = _ALL,
    values: dict[str, Any] | None = None,
) -> Rule:
    def broken(site: Site, member: str) -> Broken:
        return {"": lambda: expressing(base(site), member, text(member), values=values)}

    return Rule(name, message, named(*members), broken)


def _placeholder_rule(
    name: str, message: str, parameter: str, placeholders: Callable[[], dict[str, Any]]
) -> Rule:
    """A rule about the placeholders of any expression, with a valid name and value."""

    def broken(site: Site, _member: str) -> Broken:
        holder = any_expression(site)
        assert holder is not None
        return {"": lambda: expressing(base(site), holder, using(holder, "v")) | _with(site)}

    def _with(site: Site) -> Request:
        beside = base(site).get(parameter, {}) if placeholders() else {}
        return {parameter: beside | placeholders()}

    return Rule(name, message, named(parameter), broken)


def _alone(parameter: str, placeholders: dict[str, Any]) -> Rule:
    """The rule that a request with placeholders needs an expression."""

    def broken(site: Site, member: str) -> Broken:
        if any(name in site.required for name in _ALL):
            return Reason.REQUIRED
        return {"": lambda: legacy_base(site) | {member: placeholders}}

    return Rule(
        f"{parameter} with an expression",
        f"{parameter} can only be specified when using expressions",
        named(parameter),
        broken,
    )


def _mixed(site: Site, member: str) -> Broken:
    values: dict[str, Any] = {
        "AttributesToGet": ["v"],
        "ConditionalOperator": "AND",
        "KeyConditions": {"pk": equal({"S": "a"})},
        "AttributeUpdates": {"v": {"Action": "DELETE"}},
        "Expected": {"v": {"Exists": False}},
    }
    legacy = {member: values.get(member, {"v": equal({"S": "a"})})}
    return given(
        {
            expression: expressing(base(site), expression, using(expression, "v")) | legacy
            for expression in _ALL
            if expression in site.members
            # KeyConditions is the only legacy parameter that may be used with other expressions.
            and not (member == "KeyConditions" and expression != "KeyConditionExpression")
        }
    )


def _in_conditions(name: str, message: str, text: str, **values: Any) -> Rule:
    placeholders = {f":{key}": value for key, value in values.items()}
    return _expression_rule(name, message, lambda _: text, _CONDITIONS, placeholders or None)


def _in_updates(name: str, message: str, text: str, **values: Any) -> Rule:
    placeholders = {f":{key}": value for key, value in values.items()}
    return _expression_rule(
        name, message, lambda _: text, ("UpdateExpression",), placeholders or None
    )


def _in_key_conditions(name: str, message: str, text: str, **values: Any) -> Rule:
    placeholders = {f":{key}": value for key, value in values.items()}
    return _expression_rule(
        name, message, lambda _: text, ("KeyConditionExpression",), placeholders or None
    )


def _many(word: str, separator: str, count: int) -> str:
    return separator.join([word] * count)


EXPRESSION_RULES: Final = (
    _expression_rule("a text", "The expression can not be empty", lambda _: ""),
    _expression_rule("syntax", "Syntax error", lambda member: using(member, "v") + " )"),
    _expression_rule(
        "the length of expressions",
        "Expression size has exceeded",
        lambda member: using(member, "v").ljust(EXPRESSION_BYTES + 1),
    ),
    _expression_rule("reserved words", "reserved keyword", lambda member: using(member, "name")),
    _expression_rule("defined names", "attribute name: #u", lambda member: using(member, "#u")),
    _expression_rule(
        "defined values",
        "attribute value: :u",
        lambda member: using_value(member, ":u"),
        _WITH_VALUES,
    ),
    _expression_rule(
        "the depth of paths",
        "too many nesting levels",
        lambda member: using(member, _many("v", ".", DOCUMENT_PATH_DEPTH + 1)),
        _PATHS,
    ),
    _expression_rule(
        "scalar keys",
        _SCALARS,
        lambda member: reading(member, "pk.v"),
        _PATHS,
    ),
    _expression_rule(
        "scalar sort keys",
        _SCALARS,
        lambda member: reading(member, "sk[0]"),
        _PATHS,
    ),
    _expression_rule(
        "scalar keys of local indexes",
        _SCALARS,
        lambda member: reading(member, "l.v"),
        _PATHS,
    ),
    _expression_rule(
        "scalar keys of global indexes",
        _SCALARS,
        lambda member: reading(member, "g.v"),
        _PATHS,
    ),
    _expression_rule(
        "distinct paths",
        "Two document paths overlap",
        lambda member: using(member, "v, v"),
        ("UpdateExpression", "ProjectionExpression"),
    ),
    _expression_rule(
        "one way into a document",
        "Two document paths conflict",
        lambda member: using(member, "v.a, v[0]"),
        ("UpdateExpression", "ProjectionExpression"),
    ),
    _alone(_NAMES, {"#v": "v"}),
    _alone(_VALUES, {":v": {"S": "a"}}),
    _placeholder_rule("any names", f"{_NAMES} must not be empty", _NAMES, dict),
    _placeholder_rule("any values", f"{_VALUES} must not be empty", _VALUES, dict),
    _placeholder_rule("used names", f"{_NAMES} unused", _NAMES, lambda: {"#u": "v"}),
    _placeholder_rule("used values", f"{_VALUES} unused", _VALUES, lambda: {":u": {"S": "a"}}),
    _placeholder_rule(
        "the form of names", f"{_NAMES} contains invalid key", _NAMES, lambda: {"u": "v"}
    ),
    _placeholder_rule(
        "the form of values", f"{_VALUES} contains invalid key", _VALUES, lambda: {"u": {"S": "a"}}
    ),
    _placeholder_rule(
        "the length of names",
        "key that is too long",
        _NAMES,
        lambda: {"#" + "u" * PLACEHOLDER_BYTES: "v"},
    ),
    _placeholder_rule(
        "the length of values",
        "key that is too long",
        _VALUES,
        lambda: {":" + "u" * PLACEHOLDER_BYTES: {"S": "a"}},
    ),
    _placeholder_rule("names of attributes", "Empty attribute name", _NAMES, lambda: {"#u": ""}),
    _placeholder_rule(
        "the length of names of attributes",
        "Attribute name is too large",
        _NAMES,
        lambda: {"#u": "n" * 65_536},
    ),
    _placeholder_rule(
        "the size of all names",
        f"{_NAMES} exceeds max size",
        _NAMES,
        lambda: {f"#u{number}": "n" * 65_535 for number in range(33)},
    ),
    _placeholder_rule(
        "the size of all values",
        f"{_VALUES} exceeds max size",
        _VALUES,
        lambda: {":u": {"S": "x" * EXPRESSION_VALUES_BYTES}},
    ),
    Rule("no mixture", "both expression and non-expression parameters", named(*LEGACY), _mixed),
    _in_conditions("distinct operands", "first operand must be distinct", "v = v"),
    _in_conditions(
        "distinct operands of BETWEEN", "first operand must be distinct", "v BETWEEN v AND v"
    ),
    _in_conditions("distinct operands of IN", "first operand must be distinct", "v IN (v)"),
    _in_conditions("distinct arguments", "first operand must be distinct", "contains(v, v)"),
    _in_conditions("ordered types", "Incorrect operand type", "v < :v", v={"BOOL": True}),
    _in_conditions(
        "ordered types of BETWEEN",
        "Incorrect operand type",
        "v BETWEEN :v AND :w",
        v={"BOOL": True},
        w={"BOOL": False},
    ),
    _in_conditions(
        "bounds of BETWEEN",
        "requires upper bound to be greater",
        "v BETWEEN :v AND :w",
        v={"N": "2"},
        w={"N": "1"},
    ),
    _in_conditions(
        "types of bounds",
        "requires same data type",
        "v BETWEEN :v AND :w",
        v={"N": "2"},
        w={"S": "1"},
    ),
    _in_conditions(
        "types of begins_with", "Incorrect operand type", "begins_with(v, :v)", v={"N": "1"}
    ),
    _in_conditions(
        "names of types", "Invalid attribute type name", "attribute_type(v, :v)", v={"S": "X"}
    ),
    _in_conditions("the number of arguments", "Incorrect number of operands", "contains(v)"),
    _in_conditions(
        "the number of operands", "too many operands", f"v IN ({_many('a', ', ', IN_OPERANDS + 1)})"
    ),
    _in_conditions("functions", "Invalid function name", "nothing(v)"),
    _in_conditions("single parentheses", "redundant parentheses", "((v = a))"),
    _in_conditions(
        "the number of operators",
        "too many operators",
        _many("a = b", " AND ", EXPRESSION_OPERATORS // 2 + 2),
    ),
    _in_conditions(
        "the way of functions", "not allowed to be used", "attribute_exists(v) = :v", v={"S": "a"}
    ),
    _in_updates("types of ADD", "Incorrect operand type", "ADD v :v", v={"S": "a"}),
    _in_updates("types of DELETE", "Incorrect operand type", "DELETE v :v", v={"S": "a"}),
    _in_updates("types of sums", "Incorrect operand type", "SET v = :v + :v", v={"S": "a"}),
    _in_updates(
        "types of list_append", "Incorrect operand type", "SET v = list_append(v, :v)", v={"S": "a"}
    ),
    _in_updates("each clause once", "can only be used once", "REMOVE v REMOVE w"),
    _in_updates("functions of updates", "not allowed", "SET v = size(w)"),
    _in_key_conditions(
        "the length of keys in conditions",
        "size of all range keys",
        "pk = :pk AND sk = :v",
        v={"S": "x" * (SORT_KEY_BYTES + 1)},
    ),
    _in_key_conditions(
        "bounds of keys",
        "requires upper bound to be greater",
        "pk = :pk AND sk BETWEEN :v AND :w",
        v={"S": "b"},
        w={"S": "a"},
    ),
    _in_key_conditions(
        "no OR on keys",
        "Invalid operator used in KeyConditionExpression: OR",
        "pk = :pk OR sk = :pk",
    ),
    _in_key_conditions("no NOT on keys", "NOT", "NOT pk = :pk"),
    _in_key_conditions("no inequality of keys", "<>", "pk <> :pk"),
    _in_key_conditions(
        "the partition key", "Query condition missed key schema element: pk", "sk = :pk"
    ),
    _in_key_conditions(
        "only keys",
        "Query key condition not supported|missed key schema element: sk",
        "pk = :pk AND v = :pk",
    ),
    _in_key_conditions(
        "equality of the partition key", "Query key condition not supported", "pk < :pk"
    ),
    _in_key_conditions(
        "one condition for each key", "one condition per key", "pk = :pk AND sk > :pk AND sk < :pk"
    ),
    _in_key_conditions(
        "no paths into keys", "cannot have conditions on nested attributes", "pk.v = :pk"
    ),
    _in_key_conditions(
        "no functions of keys", "cannot contain nested operations", "pk = :pk AND size(sk) = :pk"
    ),
    _in_key_conditions(
        "types of keys in conditions",
        "does not match schema type|type",
        "pk = :pk AND sk = :v",
        v={"N": "1"},
    ),
    _in_key_conditions(
        "values for keys", "Multiple attribute names used in one condition", "pk = :pk AND sk = v"
    ),
)
