"""The condition operators: whether a value of the request matches a value of the policy.

Source: IAM User Guide, "IAM JSON policy elements: Condition operators".
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from dynactor.model.access.templates import Matcher, Template, arn_pattern, text_pattern

Qualifier: TypeAlias = Literal["", "ForAllValues", "ForAnyValue"]

_IF_EXISTS: Final = "IfExists"
_DAY_SECONDS: Final = 86_400
_ISO_TIME: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(\.[0-9]+)?)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?\Z",
    re.ASCII,
)
_EPOCH: Final = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,9})?\Z", re.ASCII)


class BadOperand(Exception):
    """A value of a policy does not fit the operator; the message says why."""


class _Family(Struct, frozen=True):
    """Operators that compare in the same way.

    ``matcher`` makes a function from a policy's values. The function tells whether a value of the
    request matches any of them.
    """

    matcher: Callable[[Sequence[Template]], Matcher]
    wildcards: bool = False
    variables: bool = False


class Operator(Struct, frozen=True):
    """An operator by its name in policies, such as ``ForAllValues:StringNotLikeIfExists``."""

    name: str
    family: str
    negated: bool = False
    if_exists: bool = False
    qualifier: Qualifier = ""

    @property
    def wildcards(self) -> bool:
        """Whether ``*`` and ``?`` in the policy's values are wildcards."""
        return _FAMILIES[self.family].wildcards

    @property
    def variables(self) -> bool:
        """Whether the policy's values may have variables."""
        return _FAMILIES[self.family].variables

    def matcher(self, values: Sequence[Template]) -> Matcher:
        """A function that tells whether a value of the request matches any of these values.

        ``negated`` is not applied. Templates have no variables any more. Raises ``BadOperand``.
        """
        return _FAMILIES[self.family].matcher(values)


def find_operator(name: str) -> Operator | None:
    """The operator with this name; None if there is none."""
    qualifier: Qualifier = ""
    rest = name
    before, colon, after = name.partition(":")
    if colon:
        match before:
            case "ForAllValues" | "ForAnyValue":
                qualifier, rest = before, after
            case _:
                return None
    base = rest.removesuffix(_IF_EXISTS)
    if base == "Null":
        is_plain = rest == base and not qualifier
        return Operator(name, "Null") if is_plain else None
    known = _OPERATORS.get(base)
    if known is None:
        return None
    family, negated = known
    return Operator(name, family, negated, rest != base, qualifier)


def epoch_seconds(text: str) -> Decimal | None:
    """The time in an ISO 8601 text or in epoch seconds; None for any other text."""
    if _EPOCH.match(text) is not None:
        return Decimal(text)
    found = _ISO_TIME.match(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second <= 60):  # noqa: PLR2004 - the calendar
        return None
    seconds = _days(year, month, day) * _DAY_SECONDS + hour * 3600 + minute * 60 + second
    zone = found[8]
    if zone not in (None, "Z"):
        offset = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
        seconds -= offset if zone[0] == "+" else -offset
    return Decimal(seconds) + Decimal(found[7] or 0)


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the Gregorian calendar. A year starts in March here."""
    year -= month <= 2  # noqa: PLR2004 - January and February
    era, era_year = divmod(year, 400)
    year_day = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + era_year * 365 + era_year // 4 - era_year // 100 + year_day - 719_468


def _literals(values: Sequence[Template]) -> list[str]:
    texts = [value.literal for value in values]
    return [text for text in texts if text is not None]


def _equal(values: Sequence[Template]) -> Matcher:
    return frozenset(_literals(values)).__contains__


def literal_values(operator: Operator, values: Sequence[Template]) -> frozenset[str] | None:
    """The texts that an operator compares for equality, if it does, for a comparison at once."""
    return frozenset(_literals(values)) if operator.family == "StringEquals" else None


def _equal_ignoring_case(values: Sequence[Template]) -> Matcher:
    wanted = frozenset(text.casefold() for text in _literals(values))
    return lambda given: given.casefold() in wanted


def _any_match(patterns: Sequence[Matcher]) -> Matcher:
    if len(patterns) == 1:
        return patterns[0]
    return lambda given: any(pattern(given) for pattern in patterns)


def _like(values: Sequence[Template]) -> Matcher:
    exact = frozenset(_literals(values))
    starts = tuple(start for value in values if (start := value.start) is not None)
    others = [
        text_pattern(value) for value in values if value.literal is None and value.start is None
    ]
    if not others:
        return lambda given: given in exact or given.startswith(starts)
    return _any_match([exact.__contains__, lambda given: given.startswith(starts), *others])


def _arn_like(values: Sequence[Template]) -> Matcher:
    return _any_match([arn_pattern(value) for value in values])


def _ordered(
    read: Callable[[str], Decimal | None], kind: str, wanted: frozenset[int]
) -> Callable[[Sequence[Template]], Matcher]:
    """Comparisons whose result, -1, 0 or 1, is in ``wanted``."""

    def matcher(values: Sequence[Template]) -> Matcher:
        bounds = [_read(text, read, kind) for text in _literals(values)]

        def matches(given: str) -> bool:
            one = read(given)
            return one is not None and any(
                (one > bound) - (one < bound) in wanted for bound in bounds
            )

        return matches

    return matcher


def _read(text: str, read: Callable[[str], Decimal | None], kind: str) -> Decimal:
    found = read(text)
    if found is None:
        raise BadOperand(f"{text!r} is not a {kind}")
    return found


def _number(text: str) -> Decimal | None:
    try:
        found = Decimal(text)
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


def _bool(values: Sequence[Template]) -> Matcher:
    wanted = frozenset(text.lower() for text in _literals(values))
    for text in wanted - {"true", "false"}:
        raise BadOperand(f"{text!r} is neither true nor false")
    return lambda given: given.lower() in wanted


def _binary(values: Sequence[Template]) -> Matcher:
    wanted = frozenset(_decoded(text) for text in _literals(values))
    if None in wanted:
        raise BadOperand("a value is not Base64")
    return lambda given: _decoded(given) in wanted


def _decoded(text: str) -> bytes | None:
    try:
        return b64decode(text, validate=True)
    except (Error, ValueError):
        return None


def _addresses(values: Sequence[Template]) -> Matcher:
    networks = [_network(text) for text in _literals(values)]

    @lru_cache(maxsize=256)
    def matches(given: str) -> bool:
        try:
            address = ip_address(given)
        except ValueError:
            return False
        return any(address in network for network in networks)

    return matches


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        raise BadOperand(f"{text!r} is not an IP address or a range of addresses") from None


_EQUAL: Final = frozenset({0})
_LESS: Final = frozenset({-1})
_LESS_OR_EQUAL: Final = frozenset({-1, 0})
_GREATER: Final = frozenset({1})
_GREATER_OR_EQUAL: Final = frozenset({0, 1})

_FAMILIES: Final[dict[str, _Family]] = {
    "StringEquals": _Family(_equal, variables=True),
    "StringEqualsIgnoreCase": _Family(_equal_ignoring_case, variables=True),
    "StringLike": _Family(_like, wildcards=True, variables=True),
    "Arn": _Family(_arn_like, wildcards=True, variables=True),
    "Bool": _Family(_bool),
    "BinaryEquals": _Family(_binary),
    "IpAddress": _Family(_addresses),
    "Null": _Family(_bool),
    **{
        f"{kind}{comparison}": _Family(_ordered(read, name, wanted))
        for kind, read, name in (
            ("Numeric", _number, "number"),
            ("Date", epoch_seconds, "time in ISO 8601 or epoch seconds"),
        )
        for comparison, wanted in (
            ("Equals", _EQUAL),
            ("LessThan", _LESS),
            ("LessThanEquals", _LESS_OR_EQUAL),
            ("GreaterThan", _GREATER),
            ("GreaterThanEquals", _GREATER_OR_EQUAL),
        )
    },
}
# The family of each operator, and whether the operator negates it.
_OPERATORS: Final[dict[str, tuple[str, bool]]] = {
    **{name: (name, False) for name in _FAMILIES if name not in ("Arn", "Null")},
    "StringNotEquals": ("StringEquals", True),
    "StringNotEqualsIgnoreCase": ("StringEqualsIgnoreCase", True),
    "StringNotLike": ("StringLike", True),
    "NumericNotEquals": ("NumericEquals", True),
    "DateNotEquals": ("DateEquals", True),
    "NotIpAddress": ("IpAddress", True),
    "ArnEquals": ("Arn", False),
    "ArnLike": ("Arn", False),
    "ArnNotEquals": ("Arn", True),
    "ArnNotLike": ("Arn", True),
}
