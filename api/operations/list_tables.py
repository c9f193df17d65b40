"""ListTables."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from msgspec import json

from dynactor.api.access.ask import Ask, Asking
from dynactor.api.access.facts import ActionFacts
from dynactor.api.execution.operation import Effect, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import ListTablesInput
from dynactor.model.limits import LIST_TABLES_PAGE


async def handle(call: Call[ListTablesInput]) -> bytes:
    """A page of the table names, in order; the start table need not exist."""
    request = call.request
    names = call.database.table_names()
    start = (
        0
        if request.ExclusiveStartTableName is None
        else bisect_right(names, request.ExclusiveStartTableName)
    )
    end = start + (request.Limit or LIST_TABLES_PAGE)
    page: dict[str, Any] = {"TableNames": names[start:end]}
    if end < len(names):
        page["LastEvaluatedTableName"] = names[end - 1]
    return json.encode(page)


def _asks(asking: Asking) -> Iterator[Ask]:
    yield Ask(asking.action, asking.arn("table/*"), ActionFacts(asking.facts))


OPERATION = Operation(ListTablesInput, handle, asks=_asks, effect=Effect.DESCRIBES)
