"""The table of rules: a cell for each rule and member, with a request that breaks the rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

from tests.guards.sites import Request, Site, holds_values, sites
from tests.guards.valid_requests import TABLE


class Reason(Enum):
    """Why a rule has no cell at a member of the model."""

    REQUIRED = "the model requires the member, so no request is without it"
    NO_EXPRESSION = "the model has no expression beside the member"
    NO_TRANSACTION = "the operation is no transaction of the model"
    NO_INDEX = "the model has no index beside the member"
    ONE_ITEM = "the model has the statement in a list, where a SELECT reads one item"
    NO_CONDITIONED_ACTION = "the member is in no action of the model that has a condition"
    NO_ACTIONS = "the member is in no action of a transaction of the model"
    NOT_BUILT = "the server refuses the member, which the model does not require"
    NO_LIST = "the model has the member once, so a request names one item"
    NO_KEY_CONDITION = "the model has no key condition beside the filter"
    NO_NEW_TABLE = "the model gives the table no key, so the operation makes none"
    MAKES_TABLE = "the model gives the table its key, so the operation makes the table"
    NO_REPLICAS = "the operation is about replicas, which no table has"
    NARROWS = "the model does not require the member: a list of tables is narrowed by it"

    def is_true(self, site: Site, member: str) -> bool:
        """Whether the service model confirms the reason."""
        expressions = [name for name in site.members if name.endswith("Expression")]
        match self:
            case Reason.REQUIRED:
                return any(name in site.required for name in expressions)
            case Reason.NO_EXPRESSION:
                return not expressions
            case Reason.NO_TRANSACTION:
                return not any(step.startswith("Transact") for step in site.path)
            case Reason.NO_INDEX:
                return "IndexName" not in site.members
            case Reason.ONE_ITEM:
                return "[]" in site.path
            case Reason.NO_CONDITIONED_ACTION:
                in_action = "TransactItems" in site.path
                return not (in_action and "ConditionExpression" in site.members)
            case Reason.NO_ACTIONS:
                return "TransactItems" not in site.path
            case Reason.NOT_BUILT:
                return member not in site.required
            case Reason.NO_LIST:
                return "[]" not in site.path and site.members[member].type_name != "list"
            case Reason.NO_KEY_CONDITION:
                return "KeyConditionExpression" not in site.members
            case Reason.NO_NEW_TABLE:
                return "KeySchema" not in site.members
            case Reason.MAKES_TABLE:
                return "KeySchema" in site.members
            case Reason.NO_REPLICAS:
                return re.search("GlobalTable|Replica", site.operation) is not None
            case Reason.NARROWS:
                return site.operation.startswith("List") and member not in site.required


# One structure at a site, or several if the site is an element of a list.
Parts = Request | tuple[Request, ...]
# Functions that create invalid structures, by variant; or the reason why there are none.
Broken = Mapping[str, Callable[[], Parts]] | Reason


def given(parts: Mapping[str, Parts]) -> Broken:
    """Functions that return these invalid structures."""
    return {variant: partial(_same, part) for variant, part in parts.items()}


def later(make: Callable[[], Mapping[str, Parts]], variants: Iterable[str]) -> Broken:
    """Functions that create large invalid structures only when they are called."""
    return {variant: partial(_one_of, make, variant) for variant in variants}


def _same(part: Parts) -> Parts:
    return part


def _one_of(make: Callable[[], Mapping[str, Parts]], variant: str) -> Parts:
    return make()[variant]


class Rule(NamedTuple):
    """A rule.

    ``concerns`` selects members by name and shape; ``message`` is a regular expression. The error
    that refuses an invalid request must match ``message``.
    """

    name: str
    message: str
    concerns: Callable[[str, Any], bool]
    broken: Callable[[Site, str], Broken]


class Cell(NamedTuple):
    """A rule at one member of one site; ``request`` makes a request that breaks the rule."""

    rule: Rule
    site: Site
    member: str
    variant: str
    request: Callable[[], Request]

    @property
    def name(self) -> str:
        """The name of the cell's test."""
        variant = f"-{self.variant}" if self.variant else ""
        return f"{self.rule.name}-{self.site.name}-{self.member}{variant}"

    @property
    def names_items(self) -> bool:
        """Whether the site has members for items, keys or statements."""
        return any(
            holds_values(shape) or shape.name == "PartiQLStatement"
            for shape in self.site.members.values()
        )


class EmptyCell(NamedTuple):
    """The rule can't be broken at this member."""

    rule: Rule
    site: Site
    member: str
    reason: Reason


def table(rules: Iterable[Rule]) -> Iterator[Cell | EmptyCell]:
    """All cells: each rule at each member that it concerns."""
    for rule in rules:
        for site in sites():
            for member, shape in site.members.items():
                if rule.concerns(member, shape):
                    yield from _cells(rule, site, member)


def _cells(rule: Rule, site: Site, member: str) -> Iterator[Cell | EmptyCell]:
    broken = rule.broken(site, member)
    if isinstance(broken, Reason):
        yield EmptyCell(rule, site, member, broken)
        return
    for variant, part in broken.items():
        yield Cell(rule, site, member, variant, _enclosing(site, part))


def _enclosing(site: Site, make: Callable[[], Parts]) -> Callable[[], Request]:
    def request() -> Request:
        parts = make()
        return site.enclosed(TABLE, *(parts if isinstance(parts, tuple) else (parts,)))

    return request


def named(*members: str) -> Callable[[str, Any], bool]:
    """A function for ``Rule.concerns`` that selects members by these names."""
    return lambda name, _shape: name in members
