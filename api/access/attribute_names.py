"""The names of attributes in the expressions and legacy parameters of a request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, Final

from msgspec import Struct

from dynactor.model.expressions import syntax
from dynactor.model.expressions.parser import (
    ConditionKind,
    condition_tree,
    projection_tree,
    update_tree,
)

_MEMBERS: Final = frozenset(
    {
        "AttributeUpdates",
        "AttributesToGet",
        "ConditionExpression",
        "Expected",
        "ExpressionAttributeNames",
        "FilterExpression",
        "KeyConditionExpression",
        "KeyConditions",
        "ProjectionExpression",
        "QueryFilter",
        "ScanFilter",
        "UpdateExpression",
    }
)
_CACHED_TEXTS: Final = 2048


def request_attributes(request: Struct) -> Iterator[str]:
    """The attributes in a request's parameters, with repetitions; raises ``ValidationException``.

    All names of ExpressionAttributeNames count, even names inside of maps.
    """
    read, names = _named_members(type(request))
    for name, given in zip(names, read(request), strict=True):
        if given is None:
            continue
        match name:
            case "ExpressionAttributeNames":
                yield from given.values()
            case "ConditionExpression" | "FilterExpression" | "KeyConditionExpression":
                yield from _in_condition(given, name)
            case "ProjectionExpression":
                yield from _in_projection(given)
            case "UpdateExpression":
                yield from _in_update(given)
            case _:
                # A list of names, or a map by names.
                yield from given


@cache
def _named_members(
    shape: type[Struct],
) -> tuple[Callable[[Struct], tuple[Any, ...]], list[str]]:
    """A function that reads the members with attributes, and their names."""
    names = [name for name in shape.__struct_fields__ if name in _MEMBERS]
    if len(names) > 1:
        return attrgetter(*names), names
    return lambda request: tuple(getattr(request, name) for name in names), names


@lru_cache(maxsize=_CACHED_TEXTS)
def _in_condition(text: str, kind: ConditionKind) -> tuple[str, ...]:
    return _without_placeholders(condition_tree(text, kind))


@lru_cache(maxsize=_CACHED_TEXTS)
def _in_projection(text: str) -> tuple[str, ...]:
    return _without_placeholders(projection_tree(text))


@lru_cache(maxsize=_CACHED_TEXTS)
def _in_update(text: str) -> tuple[str, ...]:
    return _without_placeholders(update_tree(text))


def _without_placeholders(tree: object) -> tuple[str, ...]:
    return tuple(name for name in paths_in(tree) if not name.startswith("#"))


def paths_in(tree: object) -> Iterator[str]:
    """The attributes, or their placeholders, at the start of all paths of a tree."""
    if isinstance(tree, syntax.ParsedPath):
        yield str(tree.parts[0])
    elif isinstance(tree, Struct):
        for member in tree.__struct_fields__:
            yield from paths_in(getattr(tree, member))
    elif isinstance(tree, tuple):
        for element in tree:
            yield from paths_in(element)
