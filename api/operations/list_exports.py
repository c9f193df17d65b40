"""ListExports."""

from __future__ import annotations

from msgspec import json

from dynactor.api.requests import shapes, structures
from dynactor.api.requests.operation import Call, Operation
from dynactor.api.requests.table_arn import table_name
from dynactor.model.errors import ValidationException


class ListExportsInput(structures.Shape, frozen=True):
    """The members of ListExports."""

    TableArn: shapes.ControlTableName | None = None
    MaxResults: shapes.ListExportsMaxLimit | None = None
    NextToken: str | None = None


def handle(call: Call[ListExportsInput]) -> bytes:
    """Return an empty list, because exports are not implemented."""
    request = call.request
    if request.TableArn is not None:
        table_name(request.TableArn)
    if request.NextToken is not None:
        raise ValidationException("Invalid NextToken")
    return json.encode({"ExportSummaries": []})


OPERATION = Operation("ListExports", ListExportsInput, handle)
