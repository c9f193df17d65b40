"""The condition of a write, from the members beside the item of a record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import SerializationException
from dynactor.model.expressions.condition import Condition
from dynactor.model.expressions.condition_binding import parse_condition
from dynactor.model.expressions.key_paths import check_scalar_keys
from dynactor.model.expressions.parameters import check_parameters
from dynactor.model.expressions.placeholders import Placeholders

_EXPRESSION: Final = "ConditionExpression"


class _Members(Struct):
    ConditionExpression: str | None = None
    ExpressionAttributeNames: dict[str, str] | None = None
    ExpressionAttributeValues: dict[str, dict[str, Any]] | None = None


def put_condition(table: TableDefinition, members: Mapping[str, Any]) -> Condition | None:
    """The condition of a record, with the members and the errors of PutItem."""
    given = {name: members[name] for name in _Members.__struct_fields__ if name in members}
    if not given:
        return None
    try:
        condition = msgspec.convert(given, _Members)
    except msgspec.ValidationError as error:
        raise SerializationException(f"The condition is malformed: {error}") from None
    names, values = condition.ExpressionAttributeNames, condition.ExpressionAttributeValues
    text = condition.ConditionExpression
    check_parameters({_EXPRESSION: text}, {}, names, values)
    if text is None:
        return None
    placeholders = Placeholders(names, values)
    parsed = parse_condition(text, placeholders, kind=_EXPRESSION)
    placeholders.check_all_used()
    check_scalar_keys(table, placeholders.nested)
    return parsed
