"""Conditions, filters, projections and updates from the members of the item operations.

A request has either expressions or legacy parameters, never both.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from operator import attrgetter
from typing import Any, Protocol

from msgspec import Struct, structs

from dynactor.api.requests import inputs, shapes
from dynactor.model.expressions.condition import Condition
from dynactor.model.expressions.condition_binding import parse_condition
from dynactor.model.expressions.parameters import check_parameters
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.expressions.projection import Projector, parse_projection, projector_of_names
from dynactor.model.expressions.update import BoundUpdate, parse_update
from dynactor.model.key_conditions import legacy
from dynactor.model.key_conditions.key_condition import KeyTerms, bind_key_condition
from dynactor.model.key_conditions.legacy import LegacyKeyTerms

# The members are in the order of DynamoDB's messages.
_EXPRESSIONS = (
    "ProjectionExpression",
    "FilterExpression",
    "KeyConditionExpression",
    "UpdateExpression",
    "ConditionExpression",
)
_LEGACY = (
    "AttributesToGet",
    "QueryFilter",
    "ScanFilter",
    "AttributeUpdates",
    "Expected",
    "ConditionalOperator",
    "KeyConditions",
)
_PLACEHOLDERS = ("ExpressionAttributeNames", "ExpressionAttributeValues")

# Valid combinations of parameters: the input's shape, and whether each parameter is absent. The
# number of entries is bounded by the possible combinations of each operation.
_VALID_COMBINATIONS: set[tuple[type[Struct], tuple[bool, ...]]] = set()


class ConditionMembers(Protocol):
    """The members of a write's condition."""

    @property
    def ConditionExpression(self) -> str | None: ...  # noqa: N802, D102 - the wire's name
    @property
    def Expected(self) -> Mapping[str, inputs.ExpectedAttributeValueShape] | None: ...  # noqa: N802, D102
    @property
    def ConditionalOperator(self) -> str | None: ...  # noqa: N802, D102


class Projecting(Protocol):
    """The members that say which attributes are returned."""

    @property
    def ProjectionExpression(self) -> str | None: ...  # noqa: N802, D102
    @property
    def AttributesToGet(self) -> list[str] | None: ...  # noqa: N802, D102


def check_together(request: Struct) -> None:
    """Check that the parameters of a request can be combined; their contents are checked later.

    Raises ``ValidationException``.
    """
    shape = type(request)
    # Only the presence of parameters matters, so most requests find a cached result.
    are_absent = tuple([member is None for member in _plainness(shape)[0](request)])
    if (shape, are_absent) in _VALID_COMBINATIONS:
        return
    expressions, legacy = _parameters(shape)
    check_parameters(
        {name: getattr(request, name) for name in expressions},
        {name: getattr(request, name) for name in legacy},
        getattr(request, "ExpressionAttributeNames", None),
        getattr(request, "ExpressionAttributeValues", None),
    )
    _VALID_COMBINATIONS.add((shape, are_absent))


def is_plain(request: Struct) -> bool:
    """Whether a request has no expression, no placeholder and no legacy parameter."""
    read, nothing = _plainness(type(request))
    members: tuple[object, ...] = read(request)
    return members == nothing


@cache
def _plainness(shape: type[Struct]) -> tuple[attrgetter[Any], tuple[None, ...]]:
    """The getter of all expression members of an input, and its result if there are none."""
    known = (*_EXPRESSIONS, *_LEGACY, *_PLACEHOLDERS)
    names = [name for name in known if name in shape.__struct_fields__]
    return attrgetter(*names), (None,) * len(names)


def read_placeholders(request: Struct) -> Placeholders:
    """A request's placeholders, checked after keys and items; raises ``ValidationException``."""
    names: dict[str, str] | None = getattr(request, "ExpressionAttributeNames", None)
    values: shapes.ExpressionAttributeValues | None = getattr(
        request, "ExpressionAttributeValues", None
    )
    return Placeholders(names, values)


@cache
def _parameters(shape: type[Struct]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The expressions and the legacy parameters among the members of an input."""
    members = shape.__struct_fields__
    return (
        tuple(name for name in _EXPRESSIONS if name in members),
        tuple(name for name in _LEGACY if name in members),
    )


def read_condition(request: ConditionMembers, placeholders: Placeholders) -> Condition | None:
    """The condition of a write, if any.

    Raises ``ValidationException`` or ``SerializationException`` if the condition is invalid.
    """
    if request.ConditionExpression is not None:
        return parse_condition(
            request.ConditionExpression, placeholders, kind="ConditionExpression"
        )
    return legacy.expected_condition(_members(request.Expected), request.ConditionalOperator)


def read_filter(
    expression: str | None, legacy_filter: Condition | None, placeholders: Placeholders
) -> Condition | None:
    """The filter of a Query or Scan, if any; raises ``ValidationException``."""
    if expression is not None:
        return parse_condition(expression, placeholders, kind="FilterExpression")
    return legacy_filter


def read_legacy_filter(
    conditions: Mapping[str, inputs.ConditionShape] | None, conditional_operator: str | None
) -> Condition | None:
    """The condition of QueryFilter or ScanFilter, which DynamoDB checks before expressions.

    Raises ``ValidationException`` or ``SerializationException`` if the condition is invalid.
    """
    return legacy.filter_condition(_members(conditions), conditional_operator)


def read_key_terms(
    expression: str | None,
    conditions: Mapping[str, inputs.ConditionShape] | None,
    placeholders: Placeholders,
) -> KeyTerms | LegacyKeyTerms:
    """The key condition of a Query, not yet checked against the key schema.

    Raises ``ValidationException`` or ``SerializationException`` if the condition is invalid.
    """
    if expression is not None:
        return bind_key_condition(expression, placeholders)
    return legacy.bind_key_conditions(_members(conditions) or {})


def read_projector(request: Projecting, placeholders: Placeholders) -> Projector | None:
    """The projection of a request; None returns all attributes. Raises ``ValidationException``."""
    if request.ProjectionExpression is not None:
        return parse_projection(request.ProjectionExpression, placeholders)
    return read_legacy_projector(request)


def read_legacy_projector(request: Projecting) -> Projector | None:
    """The projection of AttributesToGet, before expressions; raises ``ValidationException``."""
    if request.AttributesToGet is None:
        return None
    return projector_of_names(request.AttributesToGet)


def read_update(
    expression: str | None,
    updates: Mapping[str, inputs.AttributeValueUpdateShape] | None,
    placeholders: Placeholders,
) -> BoundUpdate | None:
    """The update of an UpdateItem; None if it changes no attribute.

    Raises ``ValidationException`` or ``SerializationException`` if the update is invalid.
    """
    if expression is not None:
        return parse_update(expression, placeholders)
    members = _members(updates)
    return legacy.attribute_updates(members) if members else None


def _members(shapes_by_name: Mapping[str, Struct] | None) -> dict[str, dict[str, Any]] | None:
    if shapes_by_name is None:
        return None
    return {name: structs.asdict(shape) for name, shape in shapes_by_name.items()}
