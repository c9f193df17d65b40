"""DescribeGlobalTable."""

from __future__ import annotations

from dynactor.api.requests import shapes, structures
from dynactor.api.requests.operation import Call, Operation
from dynactor.model.tables import global_tables


class DescribeGlobalTableInput(structures.Shape, frozen=True):
    """The members of DescribeGlobalTable."""

    GlobalTableName: shapes.PlainTableName


def handle(call: Call[DescribeGlobalTableInput]) -> bytes:
    """Refuse the request, as the service does."""
    raise global_tables.no_global_table(
        call.request.GlobalTableName, before="Global table not found: "
    )


OPERATION = Operation("DescribeGlobalTable", DescribeGlobalTableInput, handle)
