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
    for one in getattr(request, "TransactItems", ()):
        for member in one.__struct_fields__:
            action = getattr(one, member)
            if action is not None:
                yield action.TableName
