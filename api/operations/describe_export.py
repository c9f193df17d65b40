"""DescribeExport."""

from __future__ import annotations

from msgspec import json

from dynactor.api.access import asks
from dynactor.api.answers import transfers
from dynactor.api.execution.operation import Effect, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import DescribeExportInput


def handle(call: Call[DescribeExportInput]) -> bytes:
    """Show an export."""
    export = transfers.find_export(call.database, call.request.ExportArn)
    description = transfers.export_description(call.database, export)
    return json.encode({"ExportDescription": description})


OPERATION = Operation(
    DescribeExportInput, handle, asks=asks.member("ExportArn"), effect=Effect.DESCRIBES
)
