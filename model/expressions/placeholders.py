"""The placeholders of a request, ``#name`` and ``:value``: their meaning, and which are used."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from dynactor.model.errors import ValidationException
from dynactor.model.expressions import syntax
from dynactor.model.limits import (
    ATTRIBUTE_NAME_BYTES,
    DOCUMENT_PATH_DEPTH,
    EXPRESSION_VALUES_BYTES,
    PLACEHOLDER_BYTES,
)
from dynactor.model.values import attribute_value, document_path
from dynactor.model.values.attribute_value import AttributeValue
from dynactor.model.values.document_path import Path

_NAME: Final = re.compile(r"#[A-Za-z0-9_]+\Z")
_VALUE: Final = re.compile(r":[A-Za-z0-9_]+\Z")


class Placeholders:
    """ExpressionAttributeNames and ExpressionAttributeValues of one request.

    Values are checked here, because their errors name the placeholder. Messages of ``path`` and
    ``value`` lack the name of the expression's parameter; the caller adds it.
    """

    __slots__ = ("_names", "_unused_names", "_unused_values", "_values", "nested", "size_bytes")

    size_bytes: int
    """The size of all names, values and placeholders."""

    nested: set[str]
    """The attributes with a path into them, such as ``a`` of ``a.b``; none may be a key."""

    def __init__(self, names: dict[str, str] | None, values: dict[str, Any] | None) -> None:
        """Check and store names and values.

        Raises ``ValidationException`` or ``SerializationException``.
        """
        self._names: dict[str, str] = {}
        self._values: dict[str, AttributeValue] = {}
        # Dicts instead of sets: the message lists unused placeholders in the request's order.
        self._unused_names: dict[str, None] = {}
        self._unused_values: dict[str, None] = {}
        self.size_bytes = 0
        if names is not None:
            self.size_bytes += _check_names(names)
            self._names, self._unused_names = names, dict.fromkeys(names)
        if values is not None:
            self.size_bytes += _check_values(values)
            self._values, self._unused_values = values, dict.fromkeys(values)
        self.nested = set()

    @property
    def are_none(self) -> bool:
        """Whether the request has no placeholders."""
        return not (self._names or self._values)

    def path(self, path: syntax.ParsedPath) -> Path:
        """A path with its placeholders replaced, which now count as used.

        Raises ``ValidationException`` if a name is not defined, or the path is too deep.
        """
        parts = path.parts
        if len(parts) > DOCUMENT_PATH_DEPTH:
            raise ValidationException(
                f"The document path has too many nesting levels; nesting levels: {len(parts)}"
            )
        first = parts[0]
        assert type(first) is str
        if len(parts) == 1:
            return (self._name(first),) if first[0] == "#" else parts
        bound = tuple(
            self._name(part) if type(part) is str and part[0] == "#" else part for part in parts
        )
        self.nested.add(str(bound[0]))
        return bound

    def distinct_paths(self, paths: Sequence[syntax.ParsedPath]) -> list[Path]:
        """Paths in their order; none contains or contradicts another."""
        try:
            bound = tuple([self.path(path) for path in reversed(paths)])
            document_path.check_distinct(bound)
        except ValidationException:
            # DynamoDB binds and compares one path after the other, from last to first. Repeat both
            # steps in this order to report its first fault.
            document_path.distinct(self.path(path) for path in reversed(paths))
            raise
        return list(reversed(bound))

    def _name(self, placeholder: str) -> str:
        name = self._names.get(placeholder)
        if name is None:
            raise ValidationException(
                "An expression attribute name used in the document path is not defined; "
                f"attribute name: {placeholder}"
            )
        self._unused_names.pop(placeholder, None)
        return name

    def value(self, value: syntax.Value) -> AttributeValue:
        """The value of a placeholder, which now counts as used."""
        found = self._values.get(value.name)
        if found is None:
            raise ValidationException(
                "An expression attribute value used in expression is not defined; "
                f"attribute value: {value.name}"
            )
        self._unused_values.pop(value.name, None)
        return found

    def check_all_used(self) -> None:
        """Refuse placeholders that no bound expression has used; raises ``ValidationException``."""
        if self._unused_names:
            raise _unused("ExpressionAttributeNames", self._unused_names)
        if self._unused_values:
            raise _unused("ExpressionAttributeValues", self._unused_values)


def _unused(parameter: str, placeholders: Iterable[str]) -> ValidationException:
    return ValidationException(
        f"Value provided in {parameter} unused in expressions: keys: {{{', '.join(placeholders)}}}"
    )


def _check_names(names: dict[str, str]) -> int:
    """Check names; returns the size of all names and placeholders."""
    _check_placeholders("ExpressionAttributeNames", names, _NAME)
    total_bytes = 0
    for placeholder, name in names.items():
        name_bytes = len(name) if name.isascii() else len(name.encode())
        total_bytes += len(placeholder) + name_bytes
        fault = None
        if name == "":
            fault = attribute_value.EMPTY_NAME
        elif name_bytes > ATTRIBUTE_NAME_BYTES:
            fault = attribute_value.NAME_TOO_LARGE
        if fault is not None:
            raise ValidationException(
                f"ExpressionAttributeNames contains invalid value: {fault} for key {placeholder}"
            )
    return _checked_total("ExpressionAttributeNames", total_bytes)


def _check_values(values: dict[str, Any]) -> int:
    """Check values, and make them canonical; returns the size of all values and placeholders."""
    _check_placeholders("ExpressionAttributeValues", values, _VALUE)
    total_bytes = 0
    for placeholder, value in values.items():
        try:
            total_bytes += len(placeholder) + attribute_value.check(value)
        except ValidationException as error:
            raise ValidationException(
                f"ExpressionAttributeValues contains invalid value: {error.message} "
                f"for key {placeholder}",
                fault=error.fault,
            ) from None
    return _checked_total("ExpressionAttributeValues", total_bytes)


def _check_placeholders(parameter: str, given: dict[str, Any], form: re.Pattern[str]) -> None:
    if not given:
        raise ValidationException(f"{parameter} must not be empty")
    for placeholder in given:
        if form.match(placeholder) is None:
            raise ValidationException(
                f'{parameter} contains invalid key: Syntax error; key: "{placeholder}"'
            )
        if len(placeholder) > PLACEHOLDER_BYTES:
            raise ValidationException(
                f"{parameter} contains invalid key: The expression attribute map contains a key "
                f"that is too long; size of key: {len(placeholder)}"
            )


def _checked_total(parameter: str, total_bytes: int) -> int:
    if total_bytes > EXPRESSION_VALUES_BYTES:
        raise ValidationException(f"{parameter} exceeds max size")
    return total_bytes
