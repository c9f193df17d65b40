"""DescribeImport."""

from __future__ import annotations

from msgspec import json

from dynactor.api.access import asks
from dynactor.api.answers import transfers
from dynactor.api.execution.operation import Effect, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import DescribeImportInput


def handle(call: Call[DescribeImportInput]) -> bytes:
    """Show an import, with the counts of this moment."""
    found = transfers.find_import(call.database, call.request.ImportArn)
    description = transfers.import_description(call.database, found)
    return json.encode({"ImportTableDescription": description})


OPERATION = Operation(
    DescribeImportInput, handle, asks=asks.member("ImportArn"), effect=Effect.DESCRIBES
)
