"""Document paths: where in an item a value stands, ``a.b[1]`` as ``("a", "b", 1)``.

A name is an attribute or a member of a map, a number a position in a list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TypeAlias

from msgspec import Struct

from model.attribute_value import AttributeValue
from model.item import Item

Path: TypeAlias = tuple[str | int, ...]


class Branch(Struct, frozen=True):
    """One part of some paths, and what goes on below it; nothing below where a path ends."""

    part: str | int
    below: tuple[Branch, ...] = ()


def get(item: Item, path: Path) -> AttributeValue | None:
    """The value at a path, or None where there is none."""
    value: AttributeValue | None = item.get(path[0])  # type: ignore[arg-type]
    for part in path[1:]:
        if value is None:
            return None
        if type(part) is int:
            elements = value.get("L")
            value = elements[part] if elements is not None and part < len(elements) else None
        else:
            members = value.get("M")
            value = members.get(part) if members is not None else None
    return value


def branches(paths: Iterable[Path]) -> tuple[Branch, ...]:
    """Paths of which none is the beginning of another, as one tree to walk them together."""
    ordered = sorted(paths, key=_order)
    return tuple(
        Branch(part, branches([path[1:] for path in group if len(path) > 1]))
        for part, group in groupby(ordered, key=_first)
    )


def _first(path: Path) -> str | int:
    return path[0]


def _order(path: Path) -> list[tuple[bool, str | int]]:
    # Names and positions never meet at one place, but sorting must be able to compare them.
    return [(type(part) is int, part) for part in path]


def project(item: Item, wanted: Sequence[Branch]) -> Item:
    """The parts of an item on a tree of paths; no containers where nothing was found.

    Elements of a list keep their order and close their gaps.
    """
    found: Item = {}
    for branch in wanted:
        value = item.get(branch.part)  # type: ignore[arg-type]
        if value is None:
            continue
        part = _project_value(value, branch.below) if branch.below else value
        if part is not None:
            found[branch.part] = part  # type: ignore[index]
    return found


def _project_value(value: AttributeValue, wanted: Sequence[Branch]) -> AttributeValue | None:
    if "M" in value:
        members = project(value["M"], wanted)
        return {"M": members} if members else None
    if "L" not in value:
        return None
    elements: list[AttributeValue] = value["L"]
    found: list[AttributeValue] = []
    for branch in wanted:
        if type(branch.part) is not int or branch.part >= len(elements):
            continue
        element = elements[branch.part]
        part = _project_value(element, branch.below) if branch.below else element
        if part is not None:
            found.append(part)
    return {"L": found} if found else None


def text(path: Path) -> str:
    """A path as DynamoDB writes it in messages: ``[a, b, [1]]``."""
    return "[" + ", ".join(f"[{part}]" if type(part) is int else str(part) for part in path) + "]"
