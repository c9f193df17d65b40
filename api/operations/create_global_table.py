"""CreateGlobalTable."""

from __future__ import annotations

from dynactor.api.access import asks
from dynactor.api.execution.operation import Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import CreateGlobalTableInput
from dynactor.model.tables import global_tables


def handle(call: Call[CreateGlobalTableInput]) -> bytes:
    """Refuse the request, as the service does."""
    del call
    raise global_tables.not_supported()


OPERATION = Operation(CreateGlobalTableInput, handle, asks=asks.global_table)
