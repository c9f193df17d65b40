"""What the item operations have in common: from their members to conditions and updates.

Each takes either expressions or the legacy parameters; ``check_parameters`` holds that.
"""

from __future__ import annotations

from typing import Any

from model.expressions.condition import Condition, parse_condition
from model.expressions.key_condition import KeyTerms, bind_key_condition
from model.expressions.placeholders import Placeholders
from model.expressions.projection import Projector, parse_projection, projector_of_names
from model.expressions.update import Update, parse_update


def check_values(request: Any, *, expressions: tuple[str, ...]) -> Placeholders:
    return Placeholders(
        request.ExpressionAttributeNames,
        getattr(request, "ExpressionAttributeValues", None),
    )


def write_condition(request: Any, placeholders: Placeholders) -> Condition | None:
    if request.ConditionExpression is None:
        return None
    return parse_condition(request.ConditionExpression, placeholders, kind="ConditionExpression")


def filter_of(request: Any, legacy: Any, kind: str, placeholders: Placeholders) -> Condition | None:
    if request.FilterExpression is None:
        return None
    return parse_condition(request.FilterExpression, placeholders, kind="FilterExpression")


def projector_of(request: Any, placeholders: Placeholders) -> Projector | None:
    if request.ProjectionExpression is not None:
        return parse_projection(request.ProjectionExpression, placeholders)
    if request.AttributesToGet is not None:
        return projector_of_names(request.AttributesToGet)
    return None


def update_of(request: Any, placeholders: Placeholders) -> Update | None:
    if request.UpdateExpression is None:
        return None
    return parse_update(request.UpdateExpression, placeholders)


def key_terms_of(request: Any, placeholders: Placeholders) -> KeyTerms:
    return bind_key_condition(request.KeyConditionExpression, placeholders)
