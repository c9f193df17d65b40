"""Rules for legacy parameters, and for the members of Query and Scan."""

from __future__ import annotations

from typing import Any, Final

from tests.guards.rules import Broken, Reason, Rule, given, named
from tests.guards.sites import Request, Site
from tests.guards.valid_requests import (
    GLOBAL_INDEX,
    KEY,
    TABLE,
    base,
    equal,
    expressing,
    legacy_base,
)

_CONDITIONS: Final = ("Expected", "QueryFilter", "ScanFilter", "KeyConditions")
_MAPS: Final = (*_CONDITIONS, "AttributeUpdates")
Condition = dict[str, Any]


def _in_conditions(
    name: str, message: str, operator: str, *values: Any, members: tuple[str, ...] = _CONDITIONS
) -> Rule:
    condition = {"ComparisonOperator": operator, "AttributeValueList": list(values)}

    def broken(site: Site, member: str) -> Broken:
        attribute = "pk" if member == "KeyConditions" else "v"
        return {"": lambda: legacy_base(site) | {member: {attribute: condition}}}

    return Rule(name, message, named(*members), broken)


def _of_member(name: str, message: str, member: str, value: Any, **beside: Any) -> Rule:
    def broken(site: Site, member: str) -> Broken:
        return {"": lambda: legacy_base(site) | {member: value} | beside}

    return Rule(name, message, named(member), broken)


def _named_attribute(name: str) -> Any:
    def broken(site: Site, member: str) -> Broken:
        given = (
            {"Action": "PUT", "Value": {"S": "a"}}
            if member == "AttributeUpdates"
            else equal({"S": "a"})
        )
        return {"": lambda: legacy_base(site) | {member: {name: given}}}

    return broken


def _filtered_key(site: Site, member: str) -> Broken:
    if "KeyConditionExpression" not in site.members:
        return Reason.NO_KEY_CONDITION
    if member == "QueryFilter":
        return {"": lambda: legacy_base(site) | {member: {"pk": equal({"S": "a"})}}}
    return {"": lambda: expressing(base(site), member, "attribute_exists(pk)")}


def _unprojected(site: Site, member: str) -> Broken:
    """A query of a global index for an attribute that the index does not project."""
    if "IndexName" not in site.members:
        return Reason.NO_INDEX
    part = base(site) | {"IndexName": GLOBAL_INDEX}
    if "KeyConditionExpression" in site.members:
        part |= {"KeyConditionExpression": "g = :pk"}
    return {"": lambda: part | {member: "v"}}


def _consistent(site: Site, member: str) -> Broken:
    if "Statement" in site.members:
        statement = f'SELECT * FROM "{TABLE}"."{GLOBAL_INDEX}" WHERE g = \'a\''
        return {"": lambda: base(site) | {"Statement": statement, member: True}}
    if "IndexName" not in site.members:
        return Reason.NO_INDEX
    return {"": lambda: base(site) | {"IndexName": GLOBAL_INDEX, member: True}}


def _segmented(site: Site, member: str) -> Broken:
    return {
        "alone": lambda: base(site) | {member: 1},
        "too large": lambda: base(site) | {"Segment": 2, "TotalSegments": 2},
    }


def _selected(site: Site, member: str) -> Broken:
    part = base(site)
    choices: dict[str, Request] = {
        "nothing named": {member: "SPECIFIC_ATTRIBUTES"},
        "no index": {member: "ALL_PROJECTED_ATTRIBUTES"},
        "something named": {member: "COUNT", "ProjectionExpression": "v"},
    }
    return given({name: part | members for name, members in choices.items()})


LEGACY_RULES: Final = (
    Rule(
        "names of legacy attributes",
        "Empty attribute name",
        named(*_MAPS[:3], "AttributeUpdates"),
        _named_attribute(""),
    ),
    _in_conditions(
        "the number of values", "Invalid number of argument", "EQ", {"S": "a"}, {"S": "b"}
    ),
    _in_conditions("one type of values", "must be of same type", "IN", {"S": "a"}, {"N": "1"}),
    _in_conditions("types of values", "is not valid for", "LT", {"BOOL": True}),
    _in_conditions("bounds of values", "lower bound is greater", "BETWEEN", {"S": "b"}, {"S": "a"}),
    _in_conditions(
        "operators of keys",
        "not supported|not an indexable",
        "NE",
        {"S": "a"},
        members=("KeyConditions",),
    ),
    _of_member(
        "something to join",
        "cannot be used without Filter or Expected",
        "ConditionalOperator",
        "AND",
    ),
    _of_member("names to get", "Empty attribute name", "AttributesToGet", [""]),
    _of_member(
        "attributes once", "Duplicate value in attribute name", "AttributesToGet", ["v", "v"]
    ),
    _of_member(
        "types of legacy ADD",
        "ADD action is not supported",
        "AttributeUpdates",
        {"v": {"Action": "ADD", "Value": {"S": "a"}}},
    ),
    _of_member(
        "types of legacy DELETE",
        "DELETE action with value is not supported",
        "AttributeUpdates",
        {"v": {"Action": "DELETE", "Value": {"S": "a"}}},
    ),
    _of_member(
        "values of legacy PUT",
        "Only DELETE action is allowed",
        "AttributeUpdates",
        {"v": {"Action": "PUT"}},
    ),
    _of_member("values of Expected", "Value must be provided", "Expected", {"v": {"Exists": True}}),
    Rule(
        "filters without keys",
        "non-primary key attributes",
        named("FilterExpression", "QueryFilter", "ScanFilter"),
        _filtered_key,
    ),
    Rule(
        "what global indexes hold",
        "does not project",
        named("ProjectionExpression"),
        _unprojected,
    ),
    Rule(
        "consistent reads of global indexes",
        "are not supported on global|not supported on Global",
        named("ConsistentRead"),
        _consistent,
    ),
    Rule("segments", "Segment", named("Segment", "TotalSegments"), _segmented),
    Rule("selections", "Must specify|can be used only|Cannot specify", named("Select"), _selected),
    Rule(
        "start keys within a query",
        "starting key|start key|restarted",
        named("ExclusiveStartKey"),
        lambda site, member: (
            {"": lambda: base(site) | {member: KEY | {"pk": {"S": "other"}}}}
            if "KeyConditionExpression" in site.members
            # The key is in segment 1, and the request reads segment 0.
            else {"": lambda: base(site) | {member: KEY, "Segment": 0, "TotalSegments": 2}}
        ),
    ),
)
