"""UpdateGlobalTable."""

from __future__ import annotations

from dynactor.api.access import asks
from dynactor.api.execution.operation import Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import UpdateGlobalTableInput
from dynactor.model.errors import ValidationException
from dynactor.model.tables import global_tables


def handle(call: Call[UpdateGlobalTableInput]) -> bytes:
    """Refuse the request, as the service does."""
    updates = call.request.ReplicaUpdates
    if not updates:
        raise ValidationException("One or more parameter values were invalid")
    if any(update.Create is not None for update in updates):
        raise global_tables.not_supported()
    raise global_tables.no_global_table(call.request.GlobalTableName)


OPERATION = Operation(UpdateGlobalTableInput, handle, asks=asks.global_table)
