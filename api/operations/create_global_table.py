"""CreateGlobalTable."""

from __future__ import annotations

from dynactor.api.requests import global_tables, shapes, structures
from dynactor.api.requests.operation import Call, Operation


class CreateGlobalTableInput(structures.Shape, frozen=True):
    """The members of CreateGlobalTable."""

    GlobalTableName: shapes.PlainTableName
    ReplicationGroup: list[global_tables.ReplicaShape]


def handle(call: Call[CreateGlobalTableInput]) -> bytes:
    """Refuse the request, as the service does."""
    del call
    raise global_tables.not_supported()


OPERATION = Operation("CreateGlobalTable", CreateGlobalTableInput, handle)
