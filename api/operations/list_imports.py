"""ListImports."""

from __future__ import annotations

from typing import Any

from msgspec import json

from dynactor.actors.transfers.table_imports import TableImports
from dynactor.api.access import asks
from dynactor.api.answers import transfers
from dynactor.api.execution.operation import Effect, Location, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import ListImportsInput
from dynactor.api.requests.table_arn import table_name
from dynactor.model.limits import LIST_IMPORTS


def handle(call: Call[ListImportsInput]) -> bytes:
    """A page of the imports, the newest first; the token has the id of the last one."""
    request, database = call.request, call.database
    name = None if request.TableArn is None else table_name(request.TableArn)
    before = None if request.NextToken is None else transfers.read_token(request.NextToken)
    found = [
        each
        for each in database.part(TableImports).imports
        if (name is None or each.table_name == name) and (before is None or each.import_id < before)
    ]
    page = found[: request.PageSize or LIST_IMPORTS]
    answer: dict[str, Any] = {
        "ImportSummaryList": [transfers.import_summary(database, each) for each in page]
    }
    if len(page) < len(found):
        answer["NextToken"] = transfers.next_token(page[-1].import_id)
    return json.encode(answer)


OPERATION = Operation(
    ListImportsInput,
    handle,
    asks=asks.no_resource,
    effect=Effect.DESCRIBES,
    location=Location.LEADER,
)
