"""Conditions: bound to a request's values, and evaluated on items.

A bound condition is a tree of frozen nodes, so messages can carry it. Evaluation raises no errors:
faults are found when a condition is bound, and an attribute of an unexpected type makes a condition
false.
"""

from __future__ import annotations

from base64 import b64decode
from typing import TypeAlias

from msgspec import Struct, structs

from dynactor.model.values import attribute_value, document_path, number
from dynactor.model.values.attribute_value import ORDERED_TYPES, AttributeValue
from dynactor.model.values.document_path import Path
from dynactor.model.values.item import Item


class Attribute(Struct, frozen=True, tag=True):
    """The value of an attribute, if the item has it."""

    name: str

    def resolve(self, item: Item) -> AttributeValue | None:
        """The value in this item."""
        return item.get(self.name)


class NestedValue(Struct, frozen=True, tag="Member"):
    """A value within an attribute."""

    path: Path

    def resolve(self, item: Item) -> AttributeValue | None:
        """The value in this item."""
        return document_path.get(item, self.path)


class Constant(Struct, frozen=True, tag=True):
    """A value of the request."""

    value: AttributeValue

    def resolve(self, item: Item) -> AttributeValue | None:  # noqa: ARG002 (as its siblings)
        """The value, whatever the item."""
        return self.value


class Size(Struct, frozen=True, tag=True):
    """``size(operand)``; no value for types that have no size."""

    operand: Operand

    def resolve(self, item: Item) -> AttributeValue | None:
        """The size as a number."""
        value = self.operand.resolve(item)
        if value is None:
            return None
        for type_name, content in value.items():
            if type_name == "S":
                # DynamoDB counts UTF-16 code units, like Java.
                length = (
                    len(content) if content.isascii() else len(content.encode("utf-16-le")) // 2
                )
                return {"N": str(length)}
            if type_name == "B":
                return {"N": str(attribute_value.size_bytes(value))}
            if type_name in ("SS", "NS", "BS", "L", "M"):
                return {"N": str(len(content))}
        return None


class Truth(Struct, frozen=True, tag=True):
    """The outcome of a condition as a value, which PartiQL allows in comparisons."""

    condition: Node

    def resolve(self, item: Item) -> AttributeValue | None:
        """The outcome as a boolean."""
        return {"BOOL": self.condition.evaluate(item)}


Operand: TypeAlias = Attribute | NestedValue | Constant | Size | Truth


class Equal(Struct, frozen=True, tag=True):
    """``left = right``; false if one is missing."""

    left: Operand
    right: Operand

    def evaluate(self, item: Item) -> bool:
        """Whether the condition is true for this item."""
        left = self.left.resolve(item)
        return left is not None and left == self.right.resolve(item)


class NotEqual(Struct, frozen=True, tag=True):
    """``left <> right``; true if one is missing."""

    left: Operand
    right: Operand

    def evaluate(self, item: Item) -> bool:
        """Whether the condition is true for this item."""
        left = self.left.resolve(item)
        return left is None or left != self.right.resolve(item)


class Ordered(Struct, frozen=True, tag=True):
    """``left < right`` and similar comparisons; false for values of two types.

    The comparison is true if the outcome of ``compare`` is in ``signs``.
    """

    left: Operand
    right: Operand
    signs: tuple[int, ...]

    def evaluate(self, item: Item) -> bool:
        """Whether the condition is true for this item."""
        return compare(self.left.resolve(item), self.right.resolve(item)) in self.signs


class Between(Struct, frozen=True, tag=True):
    """``operand BETWEEN lower AND upper``, both bounds included."""

    operand: Operand
    lower: Operand
    upper: Operand

    def evaluate(self, item: Item) -> bool:
        """Whether the condition is true for this item."""
        value = self.operand.resolve(item)
        order = compare(value, self.lower.resolve(item))
        if order is None or order < 0:
            return False
        order = compare(value, self.upper.resolve(item))
        return order is not None and order <= 0


class In(Struct, frozen=True, tag=True):
    """``operand IN (choices)``."""

    operand: Operand
    choices: tuple[Operand, ...]

    def evaluate(self, item: Item) -> bool:
        """Whether the condition is true for this item."""
        value = self.operand.resolve(item)
        if value is None:
            return False
        for choice in self.choices:  # noqa: SIM110 (a generator costs twice as much)
            if value == choice.resolve(item):
                return True
        return False


class Exists(Struct, frozen=True, tag=True):
    """``attribute_exists(path)``."""

    operand: Operand

    def evaluate(self, item: Item) -> bool:
        """Whether the condition is true for this item."""
        return self.operand.resolve(item) is not None


class NotExists(Struct, frozen=True, tag=True):
    """``attribute_not_exists(path)``."""

    operand: Operand

    def evaluate(self, item: Item) -> bool:
        """Whether the condition is true for this item."""
        return self.operand.resolve(item) is None


class HasType(Struct, frozen=True, tag=True):
    """``attribute_type(operand, :type)``."""

    operand: Operand
    type_name: str

    def evaluate(self, item: Item) -> bool:
        """Whether the condition is true for this item."""
        value = self.operand.resolve(item)
        return value is not None and self.type_name in value


class BeginsWith(Struct, frozen=True, tag=True):
    """``begins_with(operand, prefix)``, of strings or binaries."""

    operand: Operand
    prefix: Operand

    def evaluate(self, item: Item) -> bool:
        """Whether the condition is true for this item."""
        value = self.operand.resolve(item)
        prefix = self.prefix.resolve(item)
        if value is None or prefix is None:
            return False
        if "S" in value and "S" in prefix:
            return bool(value["S"].startswith(prefix["S"]))
        if "B" in value and "B" in prefix:
            return b64decode(value["B"]).startswith(b64decode(prefix["B"]))
        return False


class Contains(Struct, frozen=True, tag=True):
    """``contains(operand, part)``: a part of a string or binary, an element of a set or list."""

    operand: Operand
    part: Operand

    def evaluate(self, item: Item) -> bool:
        """Whether the condition is true for this item."""
        value = self.operand.resolve(item)
        part = self.part.resolve(item)
        return value is not None and part is not None and contains(value, part)


class Not(Struct, frozen=True, tag=True):
    """``NOT condition``."""

    condition: Node

    def evaluate(self, item: Item) -> bool:
        """Whether the condition is true for this item."""
        return not self.condition.evaluate(item)


class And(Struct, frozen=True, tag=True):
    """Conditions joined by AND; true if there are none."""

    conditions: tuple[Node, ...]

    def evaluate(self, item: Item) -> bool:
        """Whether the condition is true for this item."""
        for condition in self.conditions:  # noqa: SIM110 (as above)
            if not condition.evaluate(item):
                return False
        return True


class Or(Struct, frozen=True, tag=True):
    """Conditions joined by OR."""

    conditions: tuple[Node, ...]

    def evaluate(self, item: Item) -> bool:
        """Whether the condition is true for this item."""
        for condition in self.conditions:  # noqa: SIM110 (as above)
            if condition.evaluate(item):
                return True
        return False


Node: TypeAlias = (
    Equal
    | NotEqual
    | Ordered
    | Between
    | In
    | Exists
    | NotExists
    | HasType
    | BeginsWith
    | Contains
    | Not
    | And
    | Or
)


class Condition(Struct, frozen=True):
    """A bound condition, and the attributes it reads."""

    root: Node
    attributes: frozenset[str] = frozenset()

    def evaluate(self, item: Item) -> bool:
        """Whether the condition is true for this item; a missing item counts as empty."""
        return self.root.evaluate(item)


def read_attributes(part: object) -> frozenset[str]:
    """The attributes that a node, an operand or a tuple of them reads."""
    match part:
        case Attribute(name) | NestedValue((str(name), *_)):
            return frozenset({name})
        case Struct():
            return read_attributes(structs.astuple(part))
        case tuple():
            return frozenset().union(*map(read_attributes, part))
        case _:
            return frozenset()


def compare(left: AttributeValue | None, right: AttributeValue | None) -> int | None:
    """The order of two values: -1, 0 or 1; None if they can't be ordered."""
    if left is None or right is None:
        return None
    for type_name, content in left.items():
        other = right.get(type_name)
        if other is None or type_name not in ORDERED_TYPES:
            return None
        if content == other:
            return 0
        if type_name == "S":
            # Python compares code points, which have the same order as UTF-8's bytes.
            return -1 if content < other else 1
        if type_name == "N":
            return -1 if number.encode(content) < number.encode(other) else 1
        return -1 if b64decode(content) < b64decode(other) else 1
    return None


def contains(value: AttributeValue, part: AttributeValue) -> bool:
    """Whether a value contains another."""
    for type_name, content in value.items():
        if type_name == "L":
            return part in content
        if type_name in ("SS", "NS", "BS"):
            element = part.get(type_name[0])
            return element is not None and element in content
        wanted = part.get(type_name)
        if wanted is None:
            return False
        if type_name == "S":
            return wanted in content
        if type_name == "B":
            return b64decode(wanted) in b64decode(content)
    return False
