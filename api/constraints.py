"""From a body to an operation's input, or to DynamoDB's account of what is wrong with it.

The common case is one msgspec decode. Where that fails, the body is walked once more along
the input's own type hints, as DynamoDB does it: first JSON types anywhere in the body
(SerializationException), then the constraints of all members together ("2 validation errors
detected: …"). What DynamoDB's parser lets through and msgspec does not comes out decoded.

Left out: the order in which DynamoDB lists several violations, which is that of a hash map;
here it is the members' own.

Source of messages: dynalite 4, measured on AWS.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Generic, Literal, TypeVar, Union, get_type_hints
from typing import get_args as arguments_of
from typing import get_origin as origin_of

import msgspec
from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import fields

from api import shapes
from api.json_types import check_attribute_value
from model import json_types
from model.errors import SerializationException, ValidationException
from model.limits import TABLE_NAME_CHARACTERS

InputT = TypeVar("InputT", bound=Struct)

_MOST_VIOLATIONS: Final = 10
_JAVA_PACKAGE: Final = "com.amazonaws.dynamodb.v20120810."
_UNDECODABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class InputDecoder(Generic[InputT]):
    """Decodes the bodies of one operation."""

    def __init__(self, shape: type[InputT]) -> None:
        self._shape = shape
        self._decode = msgspec.json.Decoder(shape).decode

    def decode(self, body: bytes) -> InputT:
        """The operation's input.

        Raises:
            SerializationException: the body is no JSON object, or a member has another JSON
                type than its shape.
            ValidationException: members break the constraints of their shapes.
        """
        try:
            return self._decode(body)
        except _UNDECODABLE:
            return self._explain(body)

    def _explain(self, body: bytes) -> InputT:
        walk = _Walk()
        corrected = walk.visit_input(_parse(body), self._shape)
        walk.raise_violations()
        return msgspec.convert(corrected, self._shape)

    def check_serialization(self, body: bytes) -> None:
        """Raise the SerializationException that DynamoDB would have raised before all else.

        Operations check attribute values when they come to them, and may have found a fault
        of another kind before.
        """
        _Walk().visit_input(_parse(body), self._shape)


def _parse(body: bytes) -> dict[str, Any]:
    """The body as plain JSON; DynamoDB gives no message where it is none."""
    try:
        parsed = msgspec.json.decode(body)
    except _UNDECODABLE:
        raise SerializationException("") from None
    if type(parsed) is not dict:
        raise SerializationException("")
    return parsed


class _Hint(Struct, frozen=True):
    """A type hint taken apart: its bare type, and the constraints on it."""

    type: Any
    limits: Meta = Meta()
    table_name: shapes.TableNameRule | None = None
    is_long: bool = False

    @property
    def kind(self) -> Any:
        """The class to decide by: ``str``, ``list``, ``Literal``, a structure, …."""
        return origin_of(self.type) or self.type

    @property
    def elements(self) -> _Hint:
        """The hint of a list's or map's elements."""
        return _hint_of(arguments_of(self.type)[-1])

    @property
    def keys(self) -> _Hint:
        """The hint of a map's keys."""
        return _hint_of(arguments_of(self.type)[0])


@lru_cache(maxsize=1024)
def _hint_of(annotation: Any) -> _Hint:
    origin = origin_of(annotation)
    if origin is Union or origin is UnionType:
        (inner,) = (option for option in arguments_of(annotation) if option is not NoneType)
        return _hint_of(inner)
    if origin is not Annotated:
        return _Hint(annotation)
    bare, *annotations = arguments_of(annotation)
    found: dict[str, Any] = {}
    for constraint in annotations:
        if isinstance(constraint, Meta):
            found["limits"] = constraint
        elif isinstance(constraint, shapes.TableNameRule):
            found["table_name"] = constraint
        elif isinstance(constraint, shapes.LongRule):
            found["is_long"] = True
    return _Hint(bare, **found)


class _Member(Struct, frozen=True):
    name: str
    hint: _Hint
    required: bool


@lru_cache(maxsize=256)
def _members_of(shape: type[Struct]) -> tuple[_Member, ...]:
    hints = get_type_hints(shape, include_extras=True)
    return tuple(
        _Member(
            field.name,
            _hint_of(hints[field.name]),
            required=field.default is NODEFAULT and field.default_factory is NODEFAULT,
        )
        for field in fields(shape)
    )


class _Walk:
    """One way through a body: serialization faults are raised, violations collected."""

    def __init__(self) -> None:
        self._foremost: str | None = None
        self._violations: list[str] = []

    def raise_violations(self) -> None:
        """Raise what was found, if anything was."""
        if self._foremost is not None:
            raise ValidationException(self._foremost)
        if self._violations:
            count = len(self._violations)
            errors = "error" if count == 1 else "errors"
            raise ValidationException(
                f"{count} validation {errors} detected: {'; '.join(self._violations)}"
            )

    def visit_input(self, body: dict[str, Any], shape: type[Struct]) -> dict[str, Any]:
        """Walk a whole body; without violations the result is one that msgspec accepts."""
        return self._visit_members(body, shape, "")

    def _visit_members(
        self, value: dict[str, Any], shape: type[Struct], parent: str
    ) -> dict[str, Any]:
        corrected = {}
        for member in _members_of(shape):
            path = f"{parent}{member.name[0].lower()}{member.name[1:]}"
            content = value.get(member.name)
            if content is not None:
                corrected[member.name] = self._visit(content, member.hint, path)
            elif member.required:
                self._miss(member, path)
        return corrected

    def _miss(self, member: _Member, path: str) -> None:
        rule = member.hint.table_name
        if rule is not None and rule.checked_first:
            self._foremost = (
                f"The parameter '{member.name}' is required but was not present in the request"
            )
        else:
            self._violate(None, path, "Member must not be null")

    def _violate(self, value: Any, path: str, constraint: str) -> None:
        if len(self._violations) < _MOST_VIOLATIONS:
            self._violations.append(
                f"Value{_shown(value)} at '{path}' failed to satisfy constraint: {constraint}"
            )

    def _visit(self, value: Any, hint: _Hint, path: str, *, in_collection: bool = False) -> Any:
        if hint.type == shapes.AttributeValue:
            check_attribute_value(value)
            return value
        kind = hint.kind
        if kind is list:
            return self._visit_list(value, hint, path)
        if kind is dict:
            return self._visit_map(value, hint, path)
        if kind is str:
            return self._visit_text(value, hint, path)
        if kind is int:
            number = json_types.integer(value, "Long" if hint.is_long else "Integer")
            for fault in _range_faults(number, hint.limits):
                self._violate(number, path, fault)
            return number
        if kind is bool:
            return json_types.boolean(value)
        if kind is float:
            return json_types.timestamp(value)
        if kind is Literal:
            return self._visit_choice(value, arguments_of(hint.type), path)
        fields_given = json_types.structure(value, _java_class(hint), in_collection=in_collection)
        return self._visit_members(fields_given, hint.type, path + ".")

    def _visit_text(self, value: Any, hint: _Hint, path: str) -> str:
        text = json_types.string(value)
        faults = _text_faults(text, hint)
        if faults and hint.table_name is not None and hint.table_name.checked_first:
            fewest, most = TABLE_NAME_CHARACTERS
            if not fewest <= len(text) <= most:
                self._foremost = (
                    f"TableName must be at least {fewest} characters long "
                    f"and at most {most} characters long"
                )
        for fault in faults:
            self._violate(text, path, fault)
        return text

    def _visit_choice(self, value: Any, choices: tuple[str, ...], path: str) -> str:
        text = json_types.string(value)
        if text not in choices:
            listed = ", ".join(choices)
            self._violate(text, path, f"Member must satisfy enum value set: [{listed}]")
        return text

    def _visit_list(self, value: Any, hint: _Hint, path: str) -> list[Any]:
        elements = json_types.array(value)
        for fault in _length_faults(len(elements), hint.limits):
            self._violate(elements, path, fault)
        return [
            self._visit_element(element, hint.elements, f"{path}.{position}.member")
            for position, element in enumerate(elements, start=1)
        ]

    def _visit_map(self, value: Any, hint: _Hint, path: str) -> dict[str, Any]:
        elements = json_types.mapping(value, _java_class(hint.elements))
        for fault in _length_faults(len(elements), hint.limits):
            self._violate(elements, path, fault)
        if any(_text_faults(key, hint.keys) for key in elements):
            constraints = ", ".join(_constraints_of(_effective_limits(hint.keys)))
            self._violate(elements, path, f"Map keys must satisfy constraint: [{constraints}]")
        element_hint = hint.elements
        if any(
            type(element) is list and _length_faults(len(element), element_hint.limits)
            for element in elements.values()
        ):
            constraints = ", ".join(_constraints_of(element_hint.limits))
            self._violate(elements, path, f"Map value must satisfy constraint: [{constraints}]")
        # The lengths of its lists are told of the map as a whole, and not again of each.
        element_hint = _Hint(element_hint.type)
        return {
            key: self._visit_element(element, element_hint, f"{path}.{key}.member")
            for key, element in elements.items()
        }

    def _visit_element(self, element: Any, hint: _Hint, path: str) -> Any:
        if element is not None:
            return self._visit(element, hint, path, in_collection=True)
        if hint.type == shapes.AttributeValue:
            # An empty value, for whose fault the operation has the words.
            return {}
        self._violate(None, path, "Member must not be null")
        return None


def _effective_limits(hint: _Hint) -> Meta:
    """The limits of a text; a table's name has those of a name alone, unless it is an ARN."""
    return hint.limits if hint.table_name is None else _hint_of(shapes.PlainTableName).limits


def _text_faults(text: str, hint: _Hint) -> list[str]:
    if hint.table_name is not None and ":" in text:
        return _length_faults(len(text), hint.limits)
    limits = _effective_limits(hint)
    faults = _length_faults(len(text), limits)
    if limits.pattern is not None and re.search(limits.pattern, text) is None:
        faults.insert(0, _pattern_constraint(limits.pattern))
    return faults


def _length_faults(length: int, limits: Meta) -> list[str]:
    faults = []
    if limits.min_length is not None and length < limits.min_length:
        faults.append(_shortest_constraint(limits.min_length))
    if limits.max_length is not None and length > limits.max_length:
        faults.append(_longest_constraint(limits.max_length))
    return faults


def _range_faults(number: int, limits: Meta) -> list[str]:
    faults = []
    if limits.ge is not None and number < limits.ge:
        faults.append(f"Member must have value greater than or equal to {limits.ge}")
    if limits.le is not None and number > limits.le:
        faults.append(f"Member must have value less than or equal to {limits.le}")
    return faults


def _constraints_of(limits: Meta) -> Iterator[str]:
    """All constraints of a map's keys or values, in the order in which they are listed."""
    if limits.max_length is not None:
        yield _longest_constraint(limits.max_length)
    if limits.min_length is not None:
        yield _shortest_constraint(limits.min_length)
    if limits.pattern is not None:
        yield _pattern_constraint(limits.pattern)


def _shortest_constraint(length: int) -> str:
    return f"Member must have length greater than or equal to {length}"


def _longest_constraint(length: int) -> str:
    return f"Member must have length less than or equal to {length}"


def _pattern_constraint(pattern: str) -> str:
    shown = pattern.removeprefix("^").removesuffix(r"\Z")
    return f"Member must satisfy regular expression pattern: {shown}"


def _shown(value: Any) -> str:
    """A value as a violation shows it, with a blank before; what holds items is not shown."""
    if value is None:
        return " null"
    if isinstance(value, (str, int)):
        return f" '{value}'"
    if not value:
        return " '[]'" if isinstance(value, list) else " '{}'"
    if isinstance(value, list) and all(isinstance(element, str) for element in value):
        return f" '[{', '.join(value)}]'"
    return ""


def _java_class(hint: _Hint) -> str:
    if hint.type == shapes.AttributeValue:
        return _JAVA_PACKAGE + "AttributeValue"
    if hint.kind is list:
        return f"java.util.List<{_java_class(hint.elements)}>"
    if hint.kind is str:
        return "java.lang.String"
    name: str = hint.type.__name__
    return _JAVA_PACKAGE + name.removesuffix("Shape")
