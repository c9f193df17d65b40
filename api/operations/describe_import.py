"""DescribeImport."""

from __future__ import annotations

from msgspec import json

from dynactor.api.answers import transfers
from dynactor.api.requests import shapes, structures
from dynactor.api.requests.operation import Call, Operation


class DescribeImportInput(structures.Shape, frozen=True):
    """The members of DescribeImport."""

    ImportArn: shapes.ImportArn


def handle(call: Call[DescribeImportInput]) -> bytes:
    """Show an import, with the counts of this moment."""
    found = transfers.find_import(call.database, call.request.ImportArn)
    description = transfers.import_description(call.database, found)
    return json.encode({"ImportTableDescription": description})


OPERATION = Operation("DescribeImport", DescribeImportInput, handle)
