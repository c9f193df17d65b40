"""Converts literals into attribute values. Source of the messages: DynamoDB Local 3.3."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from dynactor.model.errors import ValidationException, invalid_value
from dynactor.model.limits import NESTING_LEVELS
from dynactor.model.partiql import syntax
from dynactor.model.partiql.syntax import Expression
from dynactor.model.partiql.tokens import StatementToken
from dynactor.model.values import attribute_value, number
from dynactor.model.values.attribute_value import AttributeValue

_SETS: Final = {"S": "SS", "N": "NS"}
EMPTY_BAG: Final = "Empty bags are not supported"
_ONLY_STRINGS_AND_NUMBERS: Final = (
    "Unsupported data type in Bag. DynamoDB only supports either numbers or strings in bags"
)
_ION_TYPE: Final = re.compile(
    r"""(?P<TIMESTAMP>\d{4}(?:T|-\d\d)) | (?P<INT>[+-]?(?:\d[\d_]*|0[xX][\da-fA-F_]+|0[bB][01_]+)\Z)
    | (?P<DECIMAL>[+-]?[\d_]+\.?[\d_]*(?:[dD][+-]?\d+)?\Z)
    | (?P<FLOAT>[+-]?[\d_]+\.?[\d_]*[eE][+-]?\d+\Z) | (?P<BOOL>(?:true|false)\Z)
    | (?P<NULL>null(?:\.[a-z]+)?\Z) | (?P<STRING>"|\'\'\') | (?P<BLOB>\{\{) | (?P<STRUCT>\{)
    | (?P<LIST>\[) | (?P<SEXP>\()""",
    re.VERBOSE | re.ASCII,
)


def literal_value(expression: Expression) -> AttributeValue:
    """The canonical attribute value of a literal; raises ``ValidationException`` for any other."""
    value = _value(expression, "root", "root")
    attribute_value.check(value)
    return value


def named_members(
    members: syntax.Tuple, *, is_item: bool = True
) -> Iterator[tuple[str, Expression]]:
    """The members of a tuple in order, with their names; raises ``ValidationException``.

    If two names are equal, the message shows the second for an item, the tuple for a value.
    """
    names: set[str] = set()
    for expression, member in members.members:
        if not (isinstance(expression, syntax.Literal) and "S" in expression.value):
            kind = _literal_kind(expression) or type_name(expression)
            raise ValidationException(
                f"Tuple keys must be of type String. Actual type: {kind} "
                f"under root{expression.token.at}"
            )
        name: str = expression.value["S"]
        check_name(name)
        yield name, member
        # DynamoDB reports a fault of the value first.
        if name in names:
            token = expression.token if is_item else members.token
            raise ValidationException(f"Duplicate keys in tuple. Key: {name} under root{token.at}")
        names.add(name)


def check_name(name: str) -> None:
    """Refuse an empty name; raises ``ValidationException``."""
    if name == "":
        raise ValidationException("Path component cannot be an empty string")


def type_name(expression: Expression) -> str:
    """DynamoDB's name for an expression that is not a value."""
    match expression:
        case syntax.VariableNode():
            return "VariableReference"
        case syntax.Path():
            return "PATH"
        case syntax.Missing():
            return "MISSING"
        case syntax.CallNode(name) | syntax.OperationNode(name):
            return name
        case syntax.Subquery():
            return "SELECT"
        case syntax.Unsupported(_, shown):
            return shown
        case syntax.Symbol():
            return "SYMBOL"
        case _:
            return type(expression).__name__


def _value(expression: Expression, place: str, number_place: str, level: int = 1) -> AttributeValue:
    """A value; ``number_place`` is its position in messages on numbers, sets and nesting.

    Other messages show ``place``.
    """
    match expression:
        case syntax.Literal({"N": text}):
            return {"N": _number(text, number_place)}
        case syntax.Literal(value):
            return dict(value)
        case syntax.Sequence(elements, token, is_bag):
            if is_bag:
                return _set(elements, token, number_place)
            _check_depth(level, number_place)
            return {
                "L": [
                    _value(one, f"{place}.{at}", f"{number_place}[{at}]", level + 1)
                    for at, one in enumerate(elements)
                ]
            }
        case syntax.Tuple():
            _check_depth(level, number_place)
            return {
                "M": {
                    name: _value(one, f"{place}.{name}", f"{number_place}.{name}", level + 1)
                    for name, one in named_members(expression, is_item=False)
                }
            }
        case syntax.Ion(token):
            raise ValidationException(
                f"Ion Literals are not supported: {_ion_type(token.text[1:-1])} "
                f"under key {place}{token.at}"
            )
        case syntax.NegativeZero(token):
            raise ValidationException(
                f"Negative zero decimal is not supported under key {place}{token.at}"
            )
        case syntax.Path():
            raise ValidationException(f"Unsupported data type: PATH under key {place}")
        case syntax.VariableNode(name) if place == "root":
            kind = name
        case syntax.Missing() if place != "root":
            kind = "LiteralMissing"
        case _:
            kind = type_name(expression)
    raise ValidationException(
        f"Unsupported data type: {kind} under key {place}{expression.token.at}"
    )


def _check_depth(level: int, place: str) -> None:
    # The item itself is a level. The exact place is inferred.
    if level >= NESTING_LEVELS:
        raise ValidationException(f"{attribute_value.NESTING} under {place}")


def _number(text: str, place: str) -> str:
    try:
        return number.canonical(text)
    except ValidationException as error:
        raise ValidationException(f"{error.message} under {place}") from None


def _set(elements: tuple[Expression, ...], token: StatementToken, place: str) -> AttributeValue:
    if not elements:
        raise ValidationException(EMPTY_BAG + token.at)
    types = set()
    written = []
    contents = []
    for at, element in enumerate(elements):
        scalar = _literal_type(element)
        if scalar not in _SETS:
            raise ValidationException(_ONLY_STRINGS_AND_NUMBERS + element.token.at)
        assert isinstance(element, syntax.Literal)
        types.add(scalar)
        content: str = element.value[scalar]
        written.append(content)
        contents.append(_number(content, f"{place}[{at}]") if scalar == "N" else content)
    if len(types) > 1:
        raise ValidationException(_ONLY_STRINGS_AND_NUMBERS)
    if types == {"N"} and len(set(contents)) < len(contents):
        raise invalid_value(
            f"Input collection [{', '.join(written)}] contains duplicates! under {place}"
        )
    return {_SETS[types.pop()]: contents}


def _literal_type(expression: Expression) -> str | None:
    if not isinstance(expression, syntax.Literal):
        return None
    return attribute_value.data_type(expression.value)


def _literal_kind(expression: Expression) -> str | None:
    """The type of a literal in PartiQL's terms."""
    match expression:
        case syntax.Literal({"N": text}):
            return "INT" if text.removeprefix("-").isdigit() else "DECIMAL"
        case _:
            return _literal_type(expression)


def _ion_type(text: str) -> str:
    form = _ION_TYPE.match(text.strip())
    return "SYMBOL" if form is None else str(form.lastgroup)
