"""Rules that the service model states for its members, such as minimum and maximum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.guards.rules import Broken, Reason, Rule, named
from tests.guards.sites import Request, Site, sites
from tests.guards.valid_requests import TABLE, base


def whole_base(site: Site) -> Request | None:
    """A valid structure of a site, with one element if it is a batch; None if there is none."""
    if site.required <= base(site).keys():
        return base(site)
    for inner in sites():
        if (
            inner.operation == site.operation
            and inner.path
            and inner.required <= base(inner).keys()
        ):
            return inner.enclosed(TABLE, base(inner))
    return None


def _broken_member(value: Any) -> Callable[[Site, str], Broken]:
    def broken(site: Site, member: str) -> Broken:
        part = whole_base(site)
        if part is None:
            part = {}
        return {"": lambda: part | {member: value}}

    return broken


def _is_enum(_name: str, shape: Any) -> bool:
    return shape.type_name == "string" and bool(shape.enum)


def _has_minimum(_name: str, shape: Any) -> bool:
    minimum: int = shape.metadata.get("min", 0)
    return shape.type_name in ("integer", "long") and minimum > 0


def _is_filled_list(_name: str, shape: Any) -> bool:
    minimum: int = shape.metadata.get("min", 0)
    return shape.type_name == "list" and minimum > 0


def _missing_table(site: Site, member: str) -> Broken:
    if "KeySchema" in site.members:
        return Reason.MAKES_TABLE
    if member not in site.required:
        return Reason.NARROWS
    return _broken_member("no-such-table-anywhere")(site, member)


MEMBER_RULES: Final = (
    Rule("enumerations", "enum value set|Invalid table-class", _is_enum, _broken_member("BOGUS")),
    Rule("least values", "greater than or equal to 1", _has_minimum, _broken_member(0)),
    Rule(
        "lists are not empty",
        "greater than or equal to 1|is empty",
        _is_filled_list,
        _broken_member([]),
    ),
    Rule(
        "the form of tables' names",
        "regular expression pattern",
        named("TableName", "TargetTableName"),
        _broken_member("no!name"),
    ),
    Rule(
        "the form of tables' ARNs",
        "ARN|arn",
        named("TableName"),
        _broken_member("arn:nothing"),
    ),
    Rule(
        "tables that are there",
        "ResourceNotFoundException|TableNotFoundException|ResourceNotFound",
        named("TableName"),
        _missing_table,
    ),
    Rule(
        "the form of indexes' names",
        "length greater than or equal to 3|IndexName must be at least 3",
        named("IndexName"),
        _broken_member("ab"),
    ),
    Rule(
        "indexes that are there",
        "does not have the specified index|ResourceNotFound",
        named("IndexName"),
        _broken_member("no-such-index"),
    ),
)
