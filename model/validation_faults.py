"""Faults of a request that AWS's two request layers report differently.

A ``ValidationException`` carries one of these besides its message, which is the older layer's.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct


class RefusedNumber(Struct, frozen=True):
    """A text that is not a number, or a number that is out of range or too long."""

    text: str


class RepeatedMember(Struct, frozen=True):
    """A set that holds one member twice.

    ``shown`` are the distinct members before the first repeat, in the set's order, and then the
    repeated member: texts as the request has them.
    """

    type_name: Literal["SS", "NS", "BS"]
    shown: tuple[str, ...]


class PlainFault(Struct, frozen=True):
    """A fault that the newer layer reports in these words, whatever its place in the request."""

    words: str


class ValuesWithoutExpression(Struct, frozen=True):
    """ExpressionAttributeValues without an expression that could use them."""


Fault: TypeAlias = RefusedNumber | RepeatedMember | PlainFault | ValuesWithoutExpression
