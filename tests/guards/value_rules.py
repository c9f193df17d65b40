"""Rules for attribute values, for every such member of the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.guards.rules import Broken, Rule, later
from tests.guards.sites import Request, Site, holds_values
from tests.guards.valid_requests import (
    DEEPEST_LEVELS,
    KEY,
    TABLE,
    WHERE,
    base,
    equal,
    expressing,
    legacy_base,
    nested,
)

Value = dict[str, Any]

_STATEMENTS: Final = {
    "SELECT": f'SELECT * FROM "{TABLE}" {WHERE} AND v = ?',
    "INSERT": f"INSERT INTO \"{TABLE}\" VALUE {{'pk': 'a', 'sk': 'c', 'v': ?}}",
    "UPDATE": f'UPDATE "{TABLE}" SET v = ? {WHERE}',
    "DELETE": f'DELETE FROM "{TABLE}" {WHERE} AND v = ?',
}


def with_value(site: Site, member: str, value: Value) -> dict[str, Request]:
    """Structures of a site with a value in a member, by the form of the member."""
    part, legacy = base(site), legacy_base(site)
    match member:
        case "Item":
            return {"": part | {"Item": KEY | {"v": value}}}
        case "Key" | "ExclusiveStartKey":
            return {"": part | {member: KEY | {"pk": value}}}
        case "Keys":
            return {"": part | {"Keys": [KEY | {"pk": value}]}}
        case "ExpressionAttributeValues":
            holder = (
                "FilterExpression" if "FilterExpression" in site.members else "ConditionExpression"
            )
            return {"": expressing(part, holder, "v = :v", values={":v": value})}
        case "FilterSpecification":
            return {
                "": part
                | {member: expressing({}, "FilterExpression", "v = :v", values={":v": value})}
            }
        case "Expected":
            return {
                "Value": legacy | {"Expected": {"v": {"Value": value}}},
                "AttributeValueList": legacy | {"Expected": {"v": equal(value)}},
            }
        case "AttributeUpdates":
            return {"": legacy | {member: {"v": {"Action": "PUT", "Value": value}}}}
        case "KeyConditions":
            return {"": legacy | {member: {"pk": equal(value)}}}
        case "QueryFilter" | "ScanFilter":
            return {"": legacy | {member: {"v": equal(value)}}}
        case "Parameters":
            return {
                kind: part | {"Statement": text, "Parameters": [value]}
                for kind, text in _STATEMENTS.items()
            }
    raise AssertionError(f"nobody knows how {site.name}.{member} holds a value")


def _rule(name: str, message: str, make: Callable[[], Value]) -> Rule:
    def broken(site: Site, member: str) -> Broken:
        if site.is_whole and member in (
            "RequestItems",
            "TransactItems",
            "TransactStatements",
            "Statements",
        ):
            # The elements of this member are sites themselves.
            return {}
        return later(lambda: with_value(site, member, make()), with_value(site, member, {}))

    return Rule(name, message, lambda _name, shape: holds_values(shape), broken)


VALUE_RULES: Final = (
    _rule("a number", "cannot be converted to a numeric value", lambda: {"N": "x"}),
    _rule("a number in a set", "cannot be converted to a numeric value", lambda: {"NS": ["x"]}),
    _rule("the range of numbers", "Number overflow", lambda: {"N": "1e126"}),
    _rule("the digits of numbers", "38 significant digits", lambda: {"N": "1" * 39}),
    _rule("a member in a set", "may not be empty", lambda: {"SS": []}),
    _rule("distinct members", "contains duplicates", lambda: {"SS": ["a", "a"]}),
    _rule("null is true", "types must have the value of true", lambda: {"NULL": False}),
    _rule("a type", "AttributeValue is empty", dict),
    _rule("one type", "more than one datatypes", lambda: {"S": "a", "N": "1"}),
    _rule("JSON types", "cannot be converted to String", lambda: {"S": 1}),
    _rule(
        "JSON types before values",
        "cannot be converted to String",
        lambda: {"L": [{"N": "x"}, {"S": 1}]},
    ),
    _rule("base64", "multiple of 4 bytes", lambda: {"B": "a"}),
    _rule("nesting", "Nesting Levels have exceeded", lambda: nested(DEEPEST_LEVELS + 1)),
    _rule("names in maps", "Empty attribute name", lambda: {"M": {"": {"S": "a"}}}),
    _rule(
        "the length of names in maps",
        "Attribute name is too large",
        lambda: {"M": {"n" * 65_536: {"S": "a"}}},
    ),
)
