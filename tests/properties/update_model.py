"""A simple model of updates: their text as an expression, and their effect on an item.

The paths of an update do not overlap.
"""

from __future__ import annotations

import copy
from decimal import Decimal
from typing import Any, NamedTuple

from tests.properties.strategies import Item, Value

Path = tuple[str | int, ...]


class Refused(Exception):
    """The update is a ValidationException on this item."""


class Operand(NamedTuple):
    """The right side of a SET: a kind, and its arguments."""

    kind: str
    path: Path = ()
    value: Value | None = None


class Action(NamedTuple):
    """One action of an update: SET, REMOVE, ADD or DELETE, and its path."""

    keyword: str
    path: Path
    operand: Operand | None = None


class Rendered(NamedTuple):
    """The members of a request for an update."""

    text: str
    values: dict[str, Value]


def render(actions: list[Action]) -> Rendered:
    """The UpdateExpression of the actions, and its values."""
    values: dict[str, Value] = {}

    def placeholder(value: Value | None) -> str:
        assert value is not None
        values[f":v{len(values)}"] = value
        return f":v{len(values) - 1}"

    def operand_text(operand: Operand) -> str:
        match operand.kind:
            case "value":
                return placeholder(operand.value)
            case "path":
                return path_text(operand.path)
            case "plus":
                return f"{path_text(operand.path)} + {placeholder(operand.value)}"
            case "minus":
                return f"{path_text(operand.path)} - {placeholder(operand.value)}"
            case "if_not_exists":
                return f"if_not_exists({path_text(operand.path)}, {placeholder(operand.value)})"
        return f"list_append({path_text(operand.path)}, {placeholder(operand.value)})"

    clauses: dict[str, list[str]] = {}
    for action in actions:
        text = path_text(action.path)
        if action.keyword == "SET":
            assert action.operand is not None
            text += f" = {operand_text(action.operand)}"
        elif action.keyword in ("ADD", "DELETE"):
            assert action.operand is not None
            text += f" {placeholder(action.operand.value)}"
        clauses.setdefault(action.keyword, []).append(text)
    return Rendered(
        " ".join(f"{keyword} {', '.join(texts)}" for keyword, texts in clauses.items()), values
    )


def path_text(path: Path) -> str:
    """A document path as an expression writes it."""
    text = str(path[0])
    for step in path[1:]:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text


def read(item: Item, path: Path) -> Value | None:
    """The value at a path, or None."""
    value: Value | None = item.get(str(path[0]))
    for step in path[1:]:
        if value is None:
            return None
        if isinstance(step, int):
            held = value.get("L", [])
            value = held[step] if step < len(held) else None
        else:
            value = value.get("M", {}).get(step)
    return value


def _parent(item: Item, path: Path) -> Any:
    """The dict or list that contains the value at the path.

    Raises:
        Refused: the container is missing or of another type.
    """
    if len(path) == 1:
        return item
    holder = read(item, path[:-1])
    wanted = "L" if isinstance(path[-1], int) else "M"
    if holder is None or wanted not in holder:
        raise Refused
    return holder[wanted]


def _evaluate(old: Item, operand: Operand) -> Value:
    found = read(old, operand.path) if operand.path else None
    if operand.kind == "value":
        assert operand.value is not None
        return operand.value
    if operand.kind == "if_not_exists" and found is None:
        assert operand.value is not None
        return operand.value
    if found is None:
        raise Refused
    if operand.kind in ("plus", "minus"):
        assert operand.value is not None
        if "N" not in found:
            raise Refused
        change = Decimal(operand.value["N"])
        return _number(Decimal(found["N"]) + (change if operand.kind == "plus" else -change))
    if operand.kind == "list_append":
        assert operand.value is not None
        if "L" not in found:
            raise Refused
        return {"L": found["L"] + operand.value["L"]}
    return found


def _number(number: Decimal) -> Value:
    text = f"{number.normalize():f}"
    return {"N": "0" if text == "-0" else text}


def _add(found: Value | None, added: Value) -> Value:
    (type_name,) = added
    if found is None:
        return added
    if type_name not in found:
        raise Refused
    if type_name == "N":
        return _number(Decimal(found["N"]) + Decimal(added["N"]))
    return {type_name: sorted({*found[type_name], *added[type_name]})}


def apply(old: Item, actions: list[Action]) -> Item:
    """The item after the update.

    Raises:
        Refused: the update is a ValidationException.
    """
    new = copy.deepcopy(old)
    appended: list[tuple[Path, Value]] = []
    removed: list[Path] = []
    for action in actions:
        path, operand = action.path, action.operand
        holder = _parent(new, path)
        match action.keyword:
            case "SET":
                assert operand is not None
                value = copy.deepcopy(_evaluate(old, operand))
                if isinstance(path[-1], int) and path[-1] >= len(holder):
                    appended.append((path, value))
                else:
                    holder[path[-1]] = value
            case "REMOVE":
                removed.append(path)
            case "ADD":
                assert operand is not None
                assert operand.value is not None
                holder[path[-1]] = _add(read(old, path), operand.value)
            case _:
                assert operand is not None
                assert operand.value is not None
                _delete(holder, path, operand.value)
    # Paths use the positions of the old list, so append new elements last, in their order.
    for path, value in sorted(appended, key=lambda entry: entry[0][-1]):
        _parent(new, path).append(value)
    for path in sorted(
        removed, key=lambda path: (isinstance(path[-1], int), path[-1]), reverse=True
    ):
        _remove(old, new, path)
    return new


def _delete(holder: Any, path: Path, removed: Value) -> None:
    found = holder.get(path[-1])
    (type_name,) = removed
    if found is None:
        return
    if type_name not in found:
        raise Refused
    left = sorted(set(found[type_name]) - set(removed[type_name]))
    if left:
        holder[path[-1]] = {type_name: left}
    else:
        del holder[path[-1]]


def _remove(old: Item, new: Item, path: Path) -> None:
    if read(old, path) is not None:
        del _parent(new, path)[path[-1]]
