"""ListExports."""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec import json

from dynactor.actors.transfers.table_exports import TableExports
from dynactor.api.access import asks
from dynactor.api.answers import transfers
from dynactor.api.execution.operation import Effect, Location, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import ListExportsInput
from dynactor.api.requests.table_arn import table_name
from dynactor.model.errors import ValidationException
from dynactor.model.limits import LIST_EXPORTS_PAGE

_TOKEN: Final = re.compile(r"[0-9]{14,}-[0-9a-f]{8}\Z", re.ASCII)


def handle(call: Call[ListExportsInput]) -> bytes:
    """A page of the exports, the newest first; the token is the id of the last one."""
    request, database = call.request, call.database
    name = None if request.TableArn is None else table_name(request.TableArn)
    token = request.NextToken
    if token is not None and _TOKEN.match(token) is None:
        raise ValidationException("Invalid NextToken")
    found = [
        export
        for export in database.part(TableExports).exports
        if (name is None or export.table_name == name)
        and (token is None or export.export_id < token)
    ]
    page = found[: request.MaxResults or LIST_EXPORTS_PAGE]
    answer: dict[str, Any] = {
        "ExportSummaries": [transfers.export_summary(database, export) for export in page]
    }
    if len(page) < len(found):
        answer["NextToken"] = page[-1].export_id
    return json.encode(answer)


OPERATION = Operation(
    ListExportsInput,
    handle,
    asks=asks.no_resource,
    effect=Effect.DESCRIBES,
    location=Location.LEADER,
)
