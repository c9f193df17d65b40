"""UpdateGlobalTableSettings."""

from __future__ import annotations

from dynactor.api.access import asks
from dynactor.api.execution.operation import Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import UpdateGlobalTableSettingsInput
from dynactor.model.tables import global_tables


def handle(call: Call[UpdateGlobalTableSettingsInput]) -> bytes:
    """Refuse the request, as the service does."""
    raise global_tables.no_global_table(call.request.GlobalTableName)


OPERATION = Operation(UpdateGlobalTableSettingsInput, handle, asks=asks.global_table)
