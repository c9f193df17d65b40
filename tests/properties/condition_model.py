"""A simple model of conditions: their text as an expression, and their evaluation."""

from __future__ import annotations

from base64 import b64decode
from decimal import Decimal
from typing import Any, NamedTuple

from tests.properties.strategies import Item, Value, comparable
from tests.properties.update_model import Path, path_text, read


class Condition(NamedTuple):
    """A condition: an operator, with the paths, values or conditions that it needs."""

    operator: str
    path: Path = ()
    values: tuple[Value, ...] = ()
    parts: tuple[Condition, ...] = ()


def render(condition: Condition, placeholders: dict[str, Value]) -> str:
    """The text of a condition; its values are added to the placeholders."""

    def placeholder(value: Value) -> str:
        name = f":c{len(placeholders)}"
        placeholders[name] = value
        return name

    match condition.operator:
        case "AND" | "OR":
            texts = [f"({render(part, placeholders)})" for part in condition.parts]
            return f" {condition.operator} ".join(texts)
        case "NOT":
            return f"NOT ({render(condition.parts[0], placeholders)})"
    path = path_text(condition.path)
    listed = [placeholder(value) for value in condition.values]
    match condition.operator:
        case "BETWEEN":
            return f"{path} BETWEEN {listed[0]} AND {listed[1]}"
        case "IN":
            return f"{path} IN ({', '.join(listed)})"
        case "size":
            return f"size({path}) = {listed[0]}"
        case "=" | "<>" | "<" | "<=" | ">" | ">=":
            return f"{path} {condition.operator} {listed[0]}"
    return f"{condition.operator}({', '.join([path, *listed])})"


def holds(condition: Condition, item: Item) -> bool:
    """Whether the condition is true for the item."""
    operator, values = condition.operator, condition.values
    if operator == "AND":
        return all(holds(part, item) for part in condition.parts)
    if operator == "OR":
        return any(holds(part, item) for part in condition.parts)
    if operator == "NOT":
        return not holds(condition.parts[0], item)
    found = read(item, condition.path)
    if operator == "attribute_not_exists":
        return found is None
    if operator == "<>":
        return found is None or not _equal(found, values[0])
    if found is None:
        return False
    match operator:
        case "attribute_exists":
            return True
        case "attribute_type":
            return values[0]["S"] in found
        case "=":
            return _equal(found, values[0])
        case "IN":
            return any(_equal(found, value) for value in values)
        case "BETWEEN":
            return _less(values[0], found, or_equal=True) and _less(found, values[1], or_equal=True)
        case "<" | "<=":
            return _less(found, values[0], or_equal=operator == "<=")
        case ">" | ">=":
            return _less(values[0], found, or_equal=operator == ">=")
        case "begins_with":
            return _begins(found, values[0])
        case "contains":
            return _contains(found, values[0])
    return _size(found) == int(values[0]["N"])


def _equal(one: Value, other: Value) -> bool:
    return bool(comparable(one) == comparable(other))


def order(value: Value) -> Any:
    """The sort key of a string, number or binary."""
    if "N" in value:
        return Decimal(value["N"])
    if "S" in value:
        return value["S"].encode()
    return b64decode(value["B"])


def _less(one: Value, other: Value, *, or_equal: bool) -> bool:
    if one.keys() != other.keys() or not one.keys() & {"S", "N", "B"}:
        return False
    return bool(order(one) <= order(other) if or_equal else order(one) < order(other))


def _begins(found: Value, prefix: Value) -> bool:
    if found.keys() != prefix.keys() or "N" in found:
        return False
    return bool(order(found).startswith(order(prefix)))


def _contains(found: Value, part: Value) -> bool:
    if "L" in found:
        return any(_equal(member, part) for member in found["L"])
    for set_type, type_name in (("SS", "S"), ("NS", "N"), ("BS", "B")):
        if set_type in found:
            return type_name in part and part[type_name] in found[set_type]
    if found.keys() == part.keys() and found.keys() & {"S", "B"}:
        return order(part) in order(found)
    return False


def _size(found: Value) -> int | None:
    if "S" in found:
        return len(found["S"])
    if "B" in found:
        return len(b64decode(found["B"]))
    for type_name in ("SS", "NS", "BS", "L", "M"):
        if type_name in found:
            return len(found[type_name])
    return None
