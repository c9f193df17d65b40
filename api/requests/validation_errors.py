"""The texts and the order of request errors, by operation.

AWS checks requests in two layers. In 2026 the checks of the single-item operations, BatchGetItem
and Query moved into a newer layer. Scan, BatchWriteItem, the transactions, PartiQL and the
operations on tables still use the older layer. Each operation names its layer.

The layers differ in:

- A member's limits. Older: ``Value '0' at 'limit'``. Newer: ``Value at 'Limit'``.
- The echo of a structure. Older: Java's ``toString``. Newer: JSON.
- An invalid value of an enumeration. Older: reported together with all other errors. Newer:
  reported alone. The errors of ReturnValues and ConditionalOperator have another text there.
- The order of errors about members. Older: first all errors except those about names of maps.
  Newer: if a member is missing, all errors in the order of the members; else first limits, then
  enumerations with names of maps, then table names.
- Other errors of a request. Older: the plain text. Newer: for the three writes, the text after a
  head with the number of errors (the *envelope*, see ``detected``); for the reads, the plain text.
- A number's exponent. Older: 32 bits, and it wraps around. Newer: 64 bits.
- An invalid value in ExpressionAttributeValues. Older: the error names the placeholder. Newer: the
  error does not, if the value is a number or a set.

The newer layer leaves requests that nest deeper than it can read to the older one.

Sources: captures of AWS, May to November 2026; us-east-1 if regions differ. Errors without a
capture have texts like similar errors of their layer; docs/DIFFERENCES.md lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar, get_args

from msgspec import Struct, structs

from dynactor.api.requests import shapes
from dynactor.api.requests.echo import java_echo, json_echo
from dynactor.api.requests.hints import Hint, java_name
from dynactor.model.errors import ValidationException
from dynactor.model.expressions.parameters import VALUES_ALONE
from dynactor.model.validation_faults import (
    Fault,
    PlainFault,
    RefusedNumber,
    RepeatedMember,
    ValuesWithoutExpression,
)
from dynactor.model.values import number

_P = ParamSpec("_P")
_R = TypeVar("_R")

# The most violations that one error lists.
MOST_VIOLATIONS: Final = 10
_INVALID: Final = "One or more parameter values were invalid: "


def detected(*faults: str) -> str:
    """The envelope of errors: their number, and the list of them."""
    head = (
        "1 validation error detected"
        if len(faults) == 1
        else f"{len(faults)} validation errors detected"
    )
    return f"{head}: {'; '.join(faults)}"


class ConstraintRule(Enum):
    """The kind of constraint that a member breaks."""

    PRESENCE = auto()
    CHOICE = auto()
    LIMIT = auto()
    # The form of a table's name. The newer layer checks it when it looks up the table.
    NAME = auto()
    # The form of table names that are keys of a map.
    NAME_IN_MAP = auto()


_BESIDE_CHOICES: Final = frozenset({ConstraintRule.CHOICE, ConstraintRule.NAME_IN_MAP})


class MemberPath(Struct, frozen=True):
    """The path of a member in a request, as each layer spells it."""

    java: str = ""
    wire: str = ""

    def member(self, name: str) -> MemberPath:
        """The path of a member of this structure."""
        dot = "." if self.wire else ""
        return MemberPath(f"{self.java}{dot}{java_name(name)}", f"{self.wire}{dot}{name}")

    def element(self, key: str | int) -> MemberPath:
        """The path of an element of this list or map."""
        return MemberPath(f"{self.java}.{key}.member", f"{self.wire}.{key}.member")


class ConstraintViolation(Struct, frozen=True):
    """A broken constraint; ``hint`` is the hint of the member."""

    rule: ConstraintRule
    path: MemberPath
    value: Any
    hint: Hint
    constraint: str


class Layer(Struct, frozen=True):
    """A request layer. ``has_envelope``: errors without the table use ``detected``'s envelope."""

    is_newer: bool = False
    has_envelope: bool = False

    def refusal(self, violations: Sequence[ConstraintViolation]) -> ValidationException:
        """The error for broken constraints; there is at least one."""
        if not self.is_newer:
            shown = [
                one for one in violations if one.rule is not ConstraintRule.NAME_IN_MAP
            ] or violations
            return _listed(map(self._older_words, shown))
        violations = _with_empty_names(violations)
        rule_violations = _by_rule(violations)
        if ConstraintRule.PRESENCE in rule_violations:
            # The older checks find missing members, and list all violations.
            return _listed(map(self._older_words, violations))
        if ConstraintRule.LIMIT in rule_violations:
            return _listed(
                f"Value at '{one.path.wire}' failed to satisfy constraint: {one.constraint}"
                for one in rule_violations[ConstraintRule.LIMIT]
            )
        for one in rule_violations.get(ConstraintRule.CHOICE, ()):
            choices = _NEWER_CHOICES.get(get_args(one.hint.type))
            if choices is not None:
                return ValidationException(self._enveloped(_no_choice(choices)))
        if ConstraintRule.CHOICE in rule_violations:
            violations = [one for one in violations if one.rule in _BESIDE_CHOICES]
        return _listed(map(self._older_words, violations))

    def _older_words(self, violation: ConstraintViolation) -> str:
        value, path = violation.value, violation.path.java
        if value is None:
            shown = "null"
        elif self.is_newer:
            shown = f"'{json_echo(value)}'"
        else:
            shown = f"'{java_echo(value, violation.hint)}'"
        return f"Value {shown} at '{path}' failed to satisfy constraint: {violation.constraint}"

    def worded(self, error: ValidationException) -> ValidationException:
        """An error with this layer's text; errors from ``model/`` have the older layer's text."""
        if not self.is_newer:
            return error
        message = error.message if error.fault is None else _newer_words(error.fault)
        if error.is_of_request:
            message = self._enveloped(message)
        return ValidationException(message, error.receipt)

    def _enveloped(self, message: str) -> str:
        return detected(message) if self.has_envelope else message


OLDER: Final = Layer()
NEWER_WRITES: Final = Layer(is_newer=True, has_envelope=True)
NEWER_READS: Final = Layer(is_newer=True)

# The newer layer's lists of values, with AWS's misspellings, by the older layer's lists.
_NEWER_CHOICES: Final = {
    get_args(shapes.ReturnValue): "ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE",
    get_args(shapes.ConditionalOperator): "ALL, OR",
}


def marks_request_errors(check: Callable[_P, _R]) -> Callable[_P, _R]:
    """Mark the errors of a check as independent of the table.

    PutItem, UpdateItem and DeleteItem each have one function for all checks that need no table, and
    put this decorator on it.
    """

    @wraps(check)
    def marking(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return check(*args, **kwargs)
        except ValidationException as error:
            error.is_of_request = True
            raise

    return marking


def _listed(violations: Iterable[str]) -> ValidationException:
    return ValidationException(detected(*list(violations)[:MOST_VIOLATIONS]))


def _with_empty_names(violations: Sequence[ConstraintViolation]) -> list[ConstraintViolation]:
    """The violations, with an empty table name reported as too short, as the newer layer does.

    The newer layer finds other errors of a table name when it looks up the table.
    """
    found: list[ConstraintViolation] = []
    for one in violations:
        if one.rule is not ConstraintRule.NAME or one.value != "":
            found.append(one)
        elif found[-1:] == [] or found[-1].path != one.path:
            found.append(
                structs.replace(one, rule=ConstraintRule.LIMIT, constraint=shortest_constraint(1))
            )
    return found


def shortest_constraint(length: int) -> str:
    """The constraint of a minimum length."""
    return f"Member must have length greater than or equal to {length}"


def _by_rule(
    violations: Iterable[ConstraintViolation],
) -> dict[ConstraintRule, list[ConstraintViolation]]:
    found: dict[ConstraintRule, list[ConstraintViolation]] = {}
    for one in violations:
        found.setdefault(one.rule, []).append(one)
    return found


def _no_choice(choices: str) -> str:
    return f"Failed to satisfy constraint: Member must satisfy enum value set: [{choices}]"


def _newer_words(fault: Fault) -> str:
    match fault:
        case RefusedNumber():
            return number.number_fault(fault.text, exponent_bits=64)
        case RepeatedMember("SS"):
            quoted = ", ".join(f'"{member}"' for member in fault.shown)
            return f"{_INVALID}Input collection [{quoted}] contains duplicates."
        case RepeatedMember("BS"):
            quoted = ",".join(f'"{member}"' for member in fault.shown)
            return f"{_INVALID}Input collection [{quoted}]of type BS contains duplicates."
        case RepeatedMember():
            return f"{_INVALID}Input collection contains duplicates."
        case PlainFault(words):
            return words
        case ValuesWithoutExpression():
            return VALUES_ALONE
