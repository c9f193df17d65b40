"""Decodes a body to an operation's input, or finds the error that DynamoDB would answer.

The common case is one msgspec decode. If it fails, a second walk follows the input's type hints in
DynamoDB's order: first JSON types anywhere in the body (SerializationException), then the
constraints of all members. ``dynactor.api.requests.validation_errors`` has the texts and the order
of these errors. A body that DynamoDB's parser accepts and msgspec refuses is decoded by the walk.

DynamoDB lists several violations in the order of a hash map. Orders that were not captured are
replaced by the order of the members.

Source of messages: dynalite 4, measured on AWS; newer ones are in
``dynactor.api.requests.validation_errors``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta, Struct

from dynactor.api.requests import shapes
from dynactor.api.requests.hints import Hint, ShapeMember, java_class, parse_hint, shape_members
from dynactor.api.requests.json_types import check_attribute_value
from dynactor.api.requests.validation_errors import (
    MOST_VIOLATIONS,
    OLDER,
    ConstraintRule,
    ConstraintViolation,
    Layer,
    MemberPath,
    shortest_constraint,
)
from dynactor.model.errors import SerializationException, ValidationException
from dynactor.model.limits import NEWER_LAYER_JSON_LEVELS, TABLE_NAME_CHARACTERS
from dynactor.model.values import json_types

InputT = TypeVar("InputT", bound=Struct)

# Errors of msgspec for a body that is not JSON or does not fit the shape.
UNDECODABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class InputDecoder(Generic[InputT]):
    """Decodes the bodies of one operation; ``layer`` is AWS's request layer of the operation."""

    def __init__(self, shape: type[InputT], layer: Layer = OLDER) -> None:
        self._shape = shape
        self._layer = layer
        self._decode: Callable[[bytes], InputT] = self._decode_first

    def decode(self, body: bytes) -> InputT:
        """Decode the operation's input.

        Raises ``SerializationException`` if the body is not a JSON object, or a member has another
        JSON type than its shape; ``ValidationException`` if members break the constraints of their
        shapes.
        """
        try:
            return self._decode(body)
        except UNDECODABLE:
            return self._explain(body)

    def _decode_first(self, body: bytes) -> InputT:
        # Making the decoders of all operations would take a third of the time to start.
        self._decode = msgspec.json.Decoder(self._shape).decode
        return self._decode(body)

    def _explain(self, body: bytes) -> InputT:
        walk = _Walk()
        parsed = _parse(body)
        corrected = walk.visit_input(parsed, self._shape)
        walk.raise_violations(self._find_layer(parsed))
        return msgspec.convert(corrected, self._shape)

    def check_serialization(self, body: bytes) -> None:
        """Raise the SerializationException that DynamoDB would have raised first.

        DynamoDB checks all JSON types first. An operation checks attribute values late, so it may
        have raised an error of another kind before.
        """
        _Walk().visit_input(_parse(body), self._shape)

    def worded(self, error: ValidationException, body: bytes) -> ValidationException:
        """An operation's error for a body, with the text of the layer that checks the body."""
        return self._find_layer(_parse(body)).worded(error)

    def _find_layer(self, parsed: dict[str, Any]) -> Layer:
        is_left = self._layer.is_newer and _nests_deeper(parsed, NEWER_LAYER_JSON_LEVELS)
        return OLDER if is_left else self._layer


def _parse(body: bytes) -> dict[str, Any]:
    """The body as plain JSON; DynamoDB's error for other bodies has no message."""
    try:
        parsed = msgspec.json.decode(body)
    except UNDECODABLE:
        raise SerializationException("") from None
    if type(parsed) is not dict:
        raise SerializationException("")
    return parsed


def _nests_deeper(parsed: dict[str, Any], levels: int) -> bool:
    """Whether a body has objects or arrays below this many levels of them."""
    level: list[Any] = [parsed]
    for _ in range(levels):
        members = (each.values() if type(each) is dict else each for each in level)
        level = [one for each in members for one in each if type(one) in (dict, list)]
    return bool(level)


class _Walk:
    """One pass over a body: raises serialization errors, and collects constraint violations."""

    def __init__(self) -> None:
        self._foremost: str | None = None
        self._hindmost: str | None = None
        self._violations: list[ConstraintViolation] = []

    def raise_violations(self, layer: Layer) -> None:
        """Raise the collected violations, if any, with the texts of a layer."""
        if self._foremost is not None:
            raise ValidationException(self._foremost)
        if self._violations:
            raise layer.refusal(self._violations)
        if self._hindmost is not None:
            raise ValidationException(self._hindmost)

    def visit_input(self, body: dict[str, Any], shape: type[Struct]) -> dict[str, Any]:
        """Walk a whole body; without violations msgspec accepts the result."""
        return self._visit_members(body, shape, MemberPath())

    def _visit_members(
        self, value: dict[str, Any], shape: type[Struct], path: MemberPath
    ) -> dict[str, Any]:
        corrected = {}
        for member in shape_members(shape):
            content = value.get(member.name)
            if content is not None:
                corrected[member.name] = self._visit(content, member.hint, path.member(member.name))
            elif member.required:
                self._miss(member, path.member(member.name))
        return corrected

    def _miss(self, member: ShapeMember, path: MemberPath) -> None:
        rule = member.hint.table_name
        if rule is not None and rule.missing_first:
            self._foremost = (
                f"The parameter '{member.name}' is required but was not present in the request"
            )
        else:
            self._violate(
                ConstraintRule.PRESENCE, None, member.hint, path, "Member must not be null"
            )

    def _violate(
        self, rule: ConstraintRule, value: Any, hint: Hint, path: MemberPath, constraint: str
    ) -> None:
        if sum(one.rule is rule for one in self._violations) < MOST_VIOLATIONS:
            self._violations.append(ConstraintViolation(rule, path, value, hint, constraint))

    def _visit(
        self, value: Any, hint: Hint, path: MemberPath, *, in_collection: bool = False
    ) -> Any:
        if hint.type == shapes.AttributeValue:
            check_attribute_value(value, in_collection=in_collection)
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
                self._violate(ConstraintRule.LIMIT, number, hint, path, fault)
            return number
        if kind is bool:
            return json_types.boolean(value)
        if kind is float:
            return json_types.timestamp(value)
        if kind is Literal:
            return self._visit_choice(value, hint, path)
        fields_given = json_types.structure(value, java_class(hint), in_collection=in_collection)
        return self._visit_members(fields_given, hint.type, path)

    def _visit_text(self, value: Any, hint: Hint, path: MemberPath) -> str:
        text = json_types.string(value)
        faults = _text_faults(text, hint)
        fewest, most = TABLE_NAME_CHARACTERS
        if hint.length_first and not fewest <= len(text) <= most:
            self._foremost = (
                f"{path.wire} must be at least {fewest} characters long "
                f"and at most {most} characters long"
            )
        rule = ConstraintRule.LIMIT if hint.table_name is None else ConstraintRule.NAME
        for fault in faults:
            self._violate(rule, text, hint, path, fault)
        return text

    def _visit_choice(self, value: Any, hint: Hint, path: MemberPath) -> str:
        text = json_types.string(value)
        choices = get_args(hint.type)
        if text not in choices and hint.choice is not None:
            self._hindmost = hint.choice.message
        elif text not in choices:
            listed = ", ".join(choices)
            constraint = f"Member must satisfy enum value set: [{listed}]"
            self._violate(ConstraintRule.CHOICE, text, hint, path, constraint)
        return text

    def _visit_list(self, value: Any, hint: Hint, path: MemberPath) -> list[Any]:
        elements = json_types.array(value)
        for fault in _length_faults(len(elements), hint.limits):
            self._violate(ConstraintRule.LIMIT, elements, hint, path, fault)
        return [
            self._visit_element(element, hint.elements, path.element(position))
            for position, element in enumerate(elements, start=1)
        ]

    def _visit_map(self, value: Any, hint: Hint, path: MemberPath) -> dict[str, Any]:
        elements = json_types.mapping(value, java_class(hint.elements))
        if not elements and hint.not_empty is not None:
            self._foremost = hint.not_empty.message
        for fault in _length_faults(len(elements), hint.limits):
            self._violate(ConstraintRule.LIMIT, elements, hint, path, fault)
        if any(_text_faults(key, hint.keys) for key in elements):
            constraints = ", ".join(_list_constraints(_effective_limits(hint.keys)))
            constraint = f"Map keys must satisfy constraint: [{constraints}]"
            rule = (
                ConstraintRule.LIMIT if hint.keys.table_name is None else ConstraintRule.NAME_IN_MAP
            )
            self._violate(rule, elements, hint, path, constraint)
        element_hint = hint.elements
        if any(
            type(element) is list and _length_faults(len(element), element_hint.limits)
            for element in elements.values()
        ):
            constraints = ", ".join(_list_constraints(element_hint.limits))
            constraint = f"Map value must satisfy constraint: [{constraints}]"
            self._violate(ConstraintRule.LIMIT, elements, hint, path, constraint)
        # The lengths of its lists are reported for the map as a whole, not for each list.
        element_hint = Hint(element_hint.type)
        return {
            key: self._visit_element(element, element_hint, path.element(key))
            for key, element in elements.items()
        }

    def _visit_element(self, element: Any, hint: Hint, path: MemberPath) -> Any:
        if element is not None:
            return self._visit(element, hint, path, in_collection=True)
        if hint.type == shapes.AttributeValue:
            # The operation reports an empty value with a message of its own.
            return {}
        self._violate(ConstraintRule.PRESENCE, None, hint, path, "Member must not be null")
        return None


def _effective_limits(hint: Hint) -> Meta:
    """The limits of a text. A table's name has the limits of a plain name unless it is an ARN."""
    return hint.limits if hint.table_name is None else parse_hint(shapes.PlainTableName).limits


def _text_faults(text: str, hint: Hint) -> list[str]:
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
        faults.append(shortest_constraint(limits.min_length))
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


def _list_constraints(limits: Meta) -> Iterator[str]:
    """All constraints of a map's keys or values, in the order of the message."""
    if limits.max_length is not None:
        yield _longest_constraint(limits.max_length)
    if limits.min_length is not None:
        yield shortest_constraint(limits.min_length)
    if limits.pattern is not None:
        yield _pattern_constraint(limits.pattern)


def _longest_constraint(length: int) -> str:
    return f"Member must have length less than or equal to {length}"


def _pattern_constraint(pattern: str) -> str:
    shown = pattern.removeprefix("^").removesuffix(r"\Z")
    return f"Member must satisfy regular expression pattern: {shown}"
