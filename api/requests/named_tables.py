"""The tables that a request names by its members. Statements and streams are ignored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from msgspec import Struct

from dynactor.api.requests.table_arn import table_name
from dynactor.model.errors import ValidationException


def named_tables(request: Struct) -> Iterator[str]:
    """The names of tables in a request, with repetitions and without invalid names."""
    for text in _texts(request):
        with suppress(ValidationException):
            yield table_name(text)


def _texts(request: Struct) -> Iterator[str]:
    named = getattr(request, "TableName", None)
    if named is not None:
        yield named
    yield from getattr(request, "RequestItems", ())
    for item in getattr(request, "TransactItems", ()):
        yield from action_tables(item)


def action_tables(item: Struct) -> Iterator[str]:
    """The tables that an element of TransactItems names."""
    for member in item.__struct_fields__:
        action = getattr(item, member)
        if action is not None:
            yield action.TableName
