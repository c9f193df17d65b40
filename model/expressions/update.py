"""Updates: the effect of an UpdateItem on an item.

Right sides read the old item; positions in lists are those before the update. The old item is never
changed: containers on the path to a change are copied, and the rest is shared.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, TypeAlias

from msgspec import Struct

from dynactor.model.errors import ValidationException
from dynactor.model.expressions import syntax
from dynactor.model.expressions.parser import invalid, update_tree
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.values import document_path, number
from dynactor.model.values.attribute_value import SET_TYPES, AttributeValue, data_type
from dynactor.model.values.document_path import Branch, Path
from dynactor.model.values.item import Item

_ABSENT: Final = "The provided expression refers to an attribute that does not exist in the item"
_WRONG_TYPE: Final = "An operand in the update expression has an incorrect data type"


class OldValue(Struct, frozen=True, tag="Attribute"):
    """The value at a path of the old item, which must exist."""

    path: Path

    def compute(self, item: Item) -> AttributeValue:
        """The value for this old item."""
        value = document_path.get(item, self.path)
        if value is None:
            raise ValidationException(_ABSENT)
        return value


class GivenValue(Struct, frozen=True, tag="Constant"):
    """A value of the request."""

    value: AttributeValue

    def compute(self, item: Item) -> AttributeValue:  # noqa: ARG002 (as its siblings)
        """The value, whatever the old item."""
        return self.value


class IfNotExists(Struct, frozen=True, tag=True):
    """``if_not_exists(path, otherwise)``."""

    path: Path
    otherwise: Operand

    def compute(self, item: Item) -> AttributeValue:
        """The value for this old item; an attribute missing in ``otherwise`` is an error."""
        otherwise = self.otherwise.compute(item)
        value = document_path.get(item, self.path)
        return otherwise if value is None else value


class ListAppend(Struct, frozen=True, tag=True):
    """``list_append(first, second)``."""

    first: Operand
    second: Operand

    def compute(self, item: Item) -> AttributeValue:
        """The value for this old item."""
        first = self.first.compute(item)
        second = self.second.compute(item)
        if "L" not in first or "L" not in second:
            raise ValidationException(_WRONG_TYPE)
        return {"L": first["L"] + second["L"]}


class Sum(Struct, frozen=True, tag=True):
    """``left + right``, exact."""

    left: Operand
    right: Operand

    def compute(self, item: Item) -> AttributeValue:
        """The value for this old item."""
        left, right = _numbers(self.left.compute(item), self.right.compute(item))
        return {"N": number.add(left, right)}


class Difference(Struct, frozen=True, tag=True):
    """``left - right``, exact."""

    left: Operand
    right: Operand

    def compute(self, item: Item) -> AttributeValue:
        """The value for this old item."""
        left, right = _numbers(self.left.compute(item), self.right.compute(item))
        return {"N": number.subtract(left, right)}


Operand: TypeAlias = OldValue | GivenValue | IfNotExists | ListAppend | Sum | Difference

# Operands whose type is always known.
_COMPUTED_TYPES: Final[dict[type, str]] = {Sum: "N", Difference: "N", ListAppend: "L"}


def _numbers(left: AttributeValue, right: AttributeValue) -> tuple[str, str]:
    if "N" not in left or "N" not in right:
        raise ValidationException(_WRONG_TYPE)
    return left["N"], right["N"]


class SetAction(Struct, frozen=True, tag="Set"):
    """``SET path = operand``."""

    path: Path
    operand: Operand


class RemoveAction(Struct, frozen=True, tag="Remove"):
    """``REMOVE path``."""

    path: Path


class AddAction(Struct, frozen=True, tag="Add"):
    """``ADD path value``: to a number or a set; with the legacy parameter also to a list."""

    path: Path
    value: AttributeValue


class DeleteAction(Struct, frozen=True, tag="Delete"):
    """``DELETE path value``: from a set."""

    path: Path
    value: AttributeValue


Action: TypeAlias = SetAction | RemoveAction | AddAction | DeleteAction


class UpdateResult(Struct, frozen=True):
    """The result of an update.

    ``item`` is None if no item is created. ``updated_old`` and ``updated_new`` are the values at
    the update's paths before and after, for UPDATED_OLD and UPDATED_NEW.
    """

    item: Item | None
    updated_old: Item
    updated_new: Item


class BoundUpdate(Struct, frozen=True, tag="Update"):
    """A bound update, whose actions' paths don't overlap or conflict.

    ``mismatch`` is the message for ADD and DELETE on a value of another type.
    """

    actions: tuple[Action, ...]
    branches: tuple[Branch, ...]
    mismatch: str = _WRONG_TYPE

    @property
    def attributes(self) -> frozenset[str]:
        """The attributes that the update writes, in whole or in part."""
        return frozenset([str(branch.part) for branch in self.branches])

    @property
    def literals(self) -> Item:
        """The request's values in actions on top-level attributes, by attribute."""
        values: Item = {}
        for action in self.actions:
            if isinstance(action, AddAction | DeleteAction):
                value = action.value
            elif isinstance(action, SetAction) and isinstance(action.operand, GivenValue):
                value = action.operand.value
            else:
                continue
            if len(action.path) == 1:
                values[str(action.path[0])] = value
        return values

    @property
    def static_types(self) -> dict[str, str]:
        """The new types of top-level attributes that are known before the item is read.

        A literal has its own type, sums and differences are numbers, and ``list_append`` returns a
        list for any operands.
        """
        types = {name: data_type(value) for name, value in self.literals.items()}
        for action in self.actions:
            if isinstance(action, SetAction) and len(action.path) == 1:
                computed = _COMPUTED_TYPES.get(type(action.operand))
                if computed is not None:
                    types[str(action.path[0])] = computed
        return types

    def apply(self, old: Item | None, key: Item) -> UpdateResult:
        """Update an item like ``edited``, and return the values at the update's paths."""
        item = self.edited(old, key)
        if item is None:
            return UpdateResult(None, {}, {})
        return UpdateResult(item, {} if old is None else self.updated(old), self.updated(item))

    def edited(self, old: Item | None, key: Item) -> Item | None:
        """Update an item, or create it with this key if it does not exist.

        Raises ``ValidationException`` for a missing or wrong operand, a path without a parent, or a
        number out of range.
        """
        if old is None and self.actions and not any(map(_writes, self.actions)):
            # An update that only removes creates no item. Nested paths in it are no error.
            return None
        before = key if old is None else old
        return document_path.edited(
            before,
            [(action.path, _outcome(action, before, self.mismatch)) for action in self.actions],
        )

    def updated(self, item: Item) -> Item:
        """The values at the update's paths in an item."""
        return document_path.project(item, self.branches)


def _writes(action: Action) -> bool:
    return isinstance(action, SetAction | AddAction)


def _outcome(action: Action, item: Item, mismatch: str) -> AttributeValue | None:
    """The new value at an action's path; None to remove it."""
    if len(action.path) > 1:
        _check_parent(item, action.path)
    match action:
        case SetAction():
            return action.operand.compute(item)
        case RemoveAction():
            return None
        case AddAction() | DeleteAction():
            old = document_path.get(item, action.path)
            if old is None:
                return action.value if isinstance(action, AddAction) else None
            type_name = data_type(action.value)
            if type_name not in old:
                raise ValidationException(mismatch)
            if isinstance(action, AddAction):
                return _added(type_name, old[type_name], action.value[type_name])
            return _deleted(type_name, old[type_name], action.value[type_name])


def _check_parent(item: Item, path: Path) -> None:
    container = document_path.get(item, path[:-1])
    wanted = "L" if isinstance(path[-1], int) else "M"
    if container is None or wanted not in container:
        raise ValidationException(
            "The document path provided in the update expression is invalid for update"
        )


def _added(type_name: str, old: Any, added: Any) -> AttributeValue:
    if type_name == "N":
        return {"N": number.add(old, added)}
    if type_name == "L":
        return {"L": old + added}
    return _set(type_name, {*old, *added})


def _deleted(type_name: str, old: list[str], deleted: list[str]) -> AttributeValue | None:
    left = set(old).difference(deleted)
    # Sets are never empty, so the attribute is removed.
    return _set(type_name, left) if left else None


def _set(type_name: str, elements: set[str]) -> AttributeValue:
    """A set in its canonical order."""
    return {type_name: sorted(elements, key=_SET_ORDER[type_name])}


_SET_ORDER: Final[dict[str, Callable[[str], Any] | None]] = {
    "SS": None,
    "NS": Decimal,
    "BS": b64decode,
}


def parse_update(text: str, placeholders: Placeholders) -> BoundUpdate:
    """Parse and bind an UpdateExpression; raises ``ValidationException``."""
    tree = update_tree(text)
    try:
        return bind_update(tree, placeholders, last_first=True)
    except ValidationException as error:
        raise invalid("UpdateExpression", error.message) from None


def bind_update(
    tree: tuple[syntax.Clause, ...], placeholders: Placeholders, *, last_first: bool = False
) -> BoundUpdate:
    """Bind an update's tree, from an expression or a statement; raises ``ValidationException``.

    ``last_first``: report the last of several faulty operands, as DynamoDB does for expressions.
    """
    # DynamoDB checks all paths before any operand.
    written = [action for clause in tree for action in clause.actions]
    paths = placeholders.distinct_paths([action.path for action in written])
    pairs = list(zip(written, paths, strict=True))
    if last_first:
        pairs.reverse()
    actions = [_bind_action(action, path, placeholders) for action, path in pairs]
    if last_first:
        actions.reverse()
    return BoundUpdate(tuple(actions), document_path.cached_branches(tuple(paths)))


def _bind_action(action: syntax.Action, path: Path, placeholders: Placeholders) -> Action:
    match action:
        case syntax.ParsedSet():
            return SetAction(path, _bind_operand(action.operand, placeholders))
        case syntax.ParsedRemove():
            return RemoveAction(path)
        case syntax.ParsedAdd():
            value = placeholders.value(action.value)
            _check_clause_operand("ADD", value, _ADDABLE_TYPES)
            return AddAction(path, value)
        case syntax.ParsedDelete():
            value = placeholders.value(action.value)
            _check_clause_operand("DELETE", value, SET_TYPES)
            return DeleteAction(path, value)


_ADDABLE_TYPES: Final = SET_TYPES | {"N"}
_LONG_TYPE_NAMES: Final = {
    "S": "STRING",
    "N": "NUMBER",
    "B": "BINARY",
    "NULL": "NULL",
    "BOOL": "BOOLEAN",
    "L": "LIST",
    "M": "MAP",
}


def _check_clause_operand(keyword: str, value: AttributeValue, allowed: frozenset[str]) -> None:
    type_name = data_type(value)
    if type_name not in allowed:
        raise ValidationException(
            f"Incorrect operand type for operator or function; operator: {keyword}, "
            f"operand type: {_LONG_TYPE_NAMES[type_name]}, "
            f"typeSet: ALLOWED_FOR_{keyword}_OPERAND"
        )


def _bind_operand(tree: syntax.Operand, placeholders: Placeholders) -> Operand:
    match tree:
        case syntax.ParsedPath():
            return OldValue(placeholders.path(tree))
        case syntax.Value():
            return GivenValue(placeholders.value(tree))
        case syntax.Arithmetic(operator, left, right):
            operands = [_bind_operand(operand, placeholders) for operand in (left, right)]
            _check_constants(operator, operands, "N")
            return Sum(*operands) if operator == "+" else Difference(*operands)
        case syntax.Function(name, arguments):
            operands = [_bind_operand(argument, placeholders) for argument in arguments]
            return _bind_function(name, operands)


_FUNCTION_OPERANDS: Final = 2


def _bind_function(name: str, operands: list[Operand]) -> Operand:
    if len(operands) != _FUNCTION_OPERANDS:
        raise ValidationException(
            "Incorrect number of operands for operator or function; "
            f"operator or function: {name}, number of operands: {len(operands)}"
        )
    first, second = operands
    if name == "list_append":
        _check_constants(name, operands, "L")
        return ListAppend(first, second)
    assert name == "if_not_exists"
    if not isinstance(first, OldValue):
        raise ValidationException(
            f"Operator or function requires a document path; operator or function: {name}"
        )
    if first == second:
        raise ValidationException(
            "The first operand must be distinct from the remaining operands for this operator "
            f"or function; operator: {name}, first operand: {document_path.text(first.path)}"
        )
    return IfNotExists(first.path, second)


def _check_constants(operator: str, operands: list[Operand], wanted: str) -> None:
    for operand in operands:
        if isinstance(operand, GivenValue) and wanted not in operand.value:
            raise ValidationException(
                "Incorrect operand type for operator or function; "
                f"operator or function: {operator}, operand type: {data_type(operand.value)}"
            )
