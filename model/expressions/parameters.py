"""Checks which parameters of a request may be combined: expressions, placeholders, legacy ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dynactor.model.errors import ValidationException
from dynactor.model.validation_faults import ValuesWithoutExpression

VALUES_ALONE: Final = "ExpressionAttributeValues can only be specified when using expressions"


def check_parameters(
    expressions: Mapping[str, str | None],
    legacy: Mapping[str, Any],
    names: Mapping[str, str] | None,
    values: Mapping[str, Any] | None = None,
) -> None:
    """Refuse legacy parameters beside expressions, and placeholders without expressions.

    An empty map or list counts as present (measured on AWS by dynalite; absent in DynamoDB Local).

    Parameters are given by name, None if absent, in the order in which DynamoDB's messages list
    them. The orders are:

        PutItem, DeleteItem   ConditionExpression | Expected, ConditionalOperator
        UpdateItem            UpdateExpression, ConditionExpression
                              | AttributeUpdates, Expected, ConditionalOperator
        GetItem, BatchGetItem ProjectionExpression | AttributesToGet
        Scan                  ProjectionExpression, FilterExpression
                              | AttributesToGet, ScanFilter, ConditionalOperator
        Query                 ProjectionExpression, FilterExpression, KeyConditionExpression
                              | AttributesToGet, QueryFilter, ConditionalOperator, KeyConditions

    Raises:
        ValidationException: the request combines parameters that exclude each other.
    """
    given = [name for name, text in expressions.items() if text is not None]
    if given:
        old = [
            name
            for name, value in legacy.items()
            if value is not None
            # KeyConditions may be combined with expressions other than KeyConditionExpression.
            and not (name == "KeyConditions" and expressions.get("KeyConditionExpression") is None)
        ]
        if old:
            raise ValidationException(
                "Can not use both expression and non-expression parameters in the same request: "
                f"Non-expression parameters: {{{', '.join(old)}}} "
                f"Expression parameters: {{{', '.join(given)}}}"
            )
    elif names is not None:
        raise ValidationException(
            "ExpressionAttributeNames can only be specified when using expressions"
        )
    with_values = [name for name in expressions if name != "ProjectionExpression"]
    if values is not None and not any(name in with_values for name in given):
        raise ValidationException(
            f"{VALUES_ALONE}: {' and '.join(with_values)} "
            f"{'are' if len(with_values) > 1 else 'is'} null",
            fault=ValuesWithoutExpression(),
        )
