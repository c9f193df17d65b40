"""The properties of a request that rules match: operation, tables, index, access key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Self

from msgspec import Struct

from dynactor.api.execution.operation import Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.named_tables import named_tables

# The table of a stream's ARN, or of a shard iterator, which starts with the ARN.
_STREAM_TABLE: Final = re.compile(r"arn:[^|]*?:table/([^/|]+)/stream/")
# The tables of a PartiQL statement: the names after these words.
_STATEMENT_TABLE: Final = re.compile(r'\b(?:FROM|INTO|UPDATE)\s+"?([A-Za-z0-9_.-]+)', re.IGNORECASE)
_KEY_ID: Final = re.compile(r"Credential=([^/,\s]+)/")


class FaultFacts(Struct, frozen=True):
    """The facts of a request. ``batch_size``: the items of a batch or a transaction."""

    operation: Operation
    tables: tuple[str, ...]
    index: str | None
    key_id: str | None
    batch_size: int

    @classmethod
    def of(cls, operation: Operation, call: Call[Any]) -> Self:
        """The facts of a decoded request."""
        request = call.request
        names = tuple(dict.fromkeys(_tables(request)))
        key_id = _KEY_ID.search(call.headers.get("authorization", ""))
        return cls(
            operation,
            names,
            getattr(request, "IndexName", None),
            None if key_id is None else key_id[1],
            _batch_size(request),
        )


def _tables(request: Struct) -> Iterator[str]:
    yield from named_tables(request)
    for text in (getattr(request, "StreamArn", None), getattr(request, "ShardIterator", None)):
        found = _STREAM_TABLE.match(text or "")
        if found is not None:
            yield found[1]
    statements: list[Any] = getattr(request, "Statements", [])
    transacted: list[Any] = getattr(request, "TransactStatements", [])
    for each in (request, *statements, *transacted):
        yield from _STATEMENT_TABLE.findall(getattr(each, "Statement", ""))


def _batch_size(request: Struct) -> int:
    for member in ("TransactItems", "TransactStatements", "Statements"):
        listed = getattr(request, member, None)
        if listed is not None:
            return len(listed)
    items = getattr(request, "RequestItems", {})
    return sum(len(getattr(each, "Keys", each)) for each in items.values())
