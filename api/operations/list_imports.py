"""ListImports."""

from __future__ import annotations

from typing import Any, Final

from msgspec import json

from dynactor.api.answers import transfers
from dynactor.api.requests import shapes, structures
from dynactor.api.requests.operation import Call, Operation
from dynactor.api.requests.table_arn import table_name
from dynactor.model.errors import ValidationException
from dynactor.model.limits import LIST_IMPORTS_PAGE

# A token is hexadecimal, in groups of 16 digits, at least 7 of them.
_TOKEN_BYTES: Final = 56


class ListImportsInput(structures.Shape, frozen=True):
    """The members of ListImports."""

    TableArn: shapes.ControlTableName | None = None
    PageSize: shapes.ListImportsMaxLimit | None = None
    NextToken: shapes.ImportNextToken | None = None


def handle(call: Call[ListImportsInput]) -> bytes:
    """A page of the imports, the newest first; the token has the id of the last one."""
    request, database = call.request, call.database
    name = None if request.TableArn is None else table_name(request.TableArn)
    before = None if request.NextToken is None else _read_token(request.NextToken)
    found = [
        each
        for each in database.imports.imports
        if (name is None or each.table_name == name) and (before is None or each.import_id < before)
    ]
    page = found[: request.PageSize or LIST_IMPORTS_PAGE]
    answer: dict[str, Any] = {
        "ImportSummaryList": [transfers.import_summary(database, each) for each in page]
    }
    if len(page) < len(found):
        answer["NextToken"] = page[-1].import_id.encode().ljust(_TOKEN_BYTES, b"\x00").hex()
    return json.encode(answer)


def _read_token(token: str) -> str:
    text = bytes.fromhex(token).rstrip(b"\x00")
    if not text.isascii() or not text.replace(b"-", b"").isalnum():
        raise ValidationException("Invalid NextToken")
    return text.decode()


OPERATION = Operation("ListImports", ListImportsInput, handle)
