"""PartiQL statements with their parameters."""

from __future__ import annotations

from collections.abc import Sequence

from dynactor.model.partiql.binding import check_parameters, prepare
from dynactor.model.partiql.statement import Statement
from dynactor.model.values.attribute_value import AttributeValue


def bind(text: str, parameters: Sequence[AttributeValue]) -> Statement:
    """A statement with its parameters, which are checked and made canonical in place."""
    check_parameters(parameters)
    return prepare(text).bound(parameters)
