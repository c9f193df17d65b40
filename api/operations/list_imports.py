"""ListImports."""

from __future__ import annotations

from msgspec import json

from dynactor.api.requests import shapes, structures
from dynactor.api.requests.operation import Call, Operation
from dynactor.api.requests.table_arn import table_name
from dynactor.model.errors import ValidationException


class ListImportsInput(structures.Shape, frozen=True):
    """The members of ListImports."""

    TableArn: shapes.ControlTableName | None = None
    PageSize: shapes.ListImportsMaxLimit | None = None
    NextToken: shapes.ImportNextToken | None = None


def handle(call: Call[ListImportsInput]) -> bytes:
    """Return an empty list, because imports are not implemented."""
    request = call.request
    if request.TableArn is not None:
        table_name(request.TableArn)
    if request.NextToken is not None:
        raise ValidationException("Invalid NextToken")
    return json.encode({"ImportSummaryList": []})


OPERATION = Operation("ListImports", ListImportsInput, handle)
