"""Document paths: the location of a value in an item, ``a.b[1]`` as ``("a", "b", 1)``.

A name is an attribute or a member of a map. A number is a position in a list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final, TypeAlias

from msgspec import Struct

from dynactor.model.errors import ValidationException
from dynactor.model.values.attribute_value import AttributeValue
from dynactor.model.values.item import Item

Path: TypeAlias = tuple[str | int, ...]

# Applications have few expressions; ``parser`` caches their texts for the same reason.
_CACHED_PATHS: Final = 2048


class Branch(Struct, frozen=True):
    """A node in a tree of paths, and the nodes below it; a path's last node has none."""

    part: str | int
    below: tuple[Branch, ...] = ()


def get(item: Item, path: Path) -> AttributeValue | None:
    """The value at a path, or None if absent."""
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
    """The tree of these paths; no path is a prefix of another. List positions are sorted."""
    rests: dict[str | int, list[Path]] = {}
    for path in paths:
        rests.setdefault(path[0], [])
        if len(path) > 1:
            rests[path[0]].append(path[1:])
    parts = [Branch(part, branches(rest) if rest else ()) for part, rest in rests.items()]
    if len(parts) > 1 and isinstance(parts[0].part, int):
        parts.sort(key=lambda branch: branch.part)
    return tuple(parts)


def project(item: Item, wanted: Sequence[Branch]) -> Item:
    """The parts of an item that a tree of paths selects, without empty containers.

    The selected elements of a list keep their order and become consecutive.
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


def edited(item: Item, changes: Iterable[tuple[Path, AttributeValue | None]]) -> Item:
    """An item with other values at some paths; None removes a value.

    The paths are distinct, and all but the last part of each lead to a map or list of the right
    kind. Positions refer to the item before the edit. Only changed containers are copied.
    """
    new = dict(item)
    nested: _Edits = {}
    for path, value in changes:
        name = path[0]
        assert isinstance(name, str)
        if len(path) > 1:
            _plant(nested, path, _Leaf(value))
        elif value is None:
            new.pop(name, None)
        else:
            new[name] = value
    if nested:
        _edit_members(new, nested)
    return new


@lru_cache(maxsize=_CACHED_PATHS)
def cached_branches(paths: tuple[Path, ...]) -> tuple[Branch, ...]:
    """The tree of ``branches``, cached because paths are likely to recur."""
    return branches(paths)


class _Leaf(Struct, frozen=True):
    """The value to set at the end of a path; None to remove it."""

    value: AttributeValue | None


_Edits: TypeAlias = "dict[str | int, _Leaf | _Edits]"


def _plant(edits: _Edits, path: Path, leaf: _Leaf) -> None:
    for part in path[:-1]:
        below = edits.setdefault(part, {})
        assert isinstance(below, dict)
        edits = below
    edits[path[-1]] = leaf


def _edit_members(members: dict[str, AttributeValue], edits: _Edits) -> None:
    for name, change in edits.items():
        assert isinstance(name, str)
        if isinstance(change, dict):
            members[name] = _edited(members[name], change)
        elif change.value is None:
            members.pop(name, None)
        else:
            members[name] = change.value


def _edited(value: AttributeValue, edits: _Edits) -> AttributeValue:
    if "L" in value:
        return {"L": _edited_elements(value["L"], edits)}
    members = dict(value["M"])
    _edit_members(members, edits)
    return {"M": members}


def _edited_elements(elements: list[AttributeValue], edits: _Edits) -> list[AttributeValue]:
    """Positions beyond the end are appended in order, without gaps."""
    new: list[AttributeValue | None] = list(elements)
    beyond: dict[int, AttributeValue | None] = {}
    for position, change in edits.items():
        assert isinstance(position, int)
        if isinstance(change, dict):
            new[position] = _edited(elements[position], change)
        elif position < len(elements):
            new[position] = change.value
        else:
            beyond[position] = change.value
    new.extend(beyond[position] for position in sorted(beyond))
    return [element for element in new if element is not None]


def distinct(paths: Iterable[Path]) -> list[Path]:
    """The same paths, if none contains another or uses one part as both list and map.

    Raises:
        ValidationException: a path overlaps or conflicts with an earlier one. DynamoDB checks the
            paths of an expression from last to first, and its message numbers them in this order.
    """
    taken: list[Path] = []
    root = _Step(first=())
    for path in paths:
        step = root
        for part in path:
            if any(type(part) is not type(sibling) for sibling in islice(step.below, 1)):
                raise _contradiction("conflict", path, step.first)
            below = step.below.get(part)
            if below is None:
                below = step.below[part] = _Step(first=path)
            elif not below.below:
                raise _contradiction("overlap", path, below.first)
            step = below
        if step.below:
            raise _contradiction("overlap", path, step.first)
        taken.append(path)
    return taken


@lru_cache(maxsize=_CACHED_PATHS)
def check_distinct(paths: tuple[Path, ...]) -> None:
    """Check paths like ``distinct``, and remember distinct ones."""
    distinct(paths)


class _Step(Struct):
    """A node in the tree of checked paths: the first path through it, and the nodes below it.

    A path ends at a node without nodes below it.
    """

    first: Path
    below: dict[str | int, _Step] = {}


def _contradiction(relation: str, path: Path, other: Path) -> ValidationException:
    return ValidationException(
        f"Two document paths {relation} with each other; "
        "must remove or rewrite one of these paths; "
        f"path one: {text(path)}, path two: {text(other)}"
    )


def text(path: Path) -> str:
    """A path as DynamoDB writes it in messages: ``[a, b, [1]]``."""
    return "[" + ", ".join(f"[{part}]" if type(part) is int else str(part) for part in path) + "]"
