"""DescribeContinuousBackups."""

from __future__ import annotations

from dynactor.api.answers import continuous_backups
from dynactor.api.requests import shapes, structures
from dynactor.api.requests.operation import Call, Operation
from dynactor.api.requests.table_arn import table_name


class DescribeContinuousBackupsInput(structures.Shape, frozen=True):
    """The members of DescribeContinuousBackups."""

    TableName: shapes.ControlTableName


def handle(call: Call[DescribeContinuousBackupsInput]) -> bytes:
    """Show the window of times to which a table can be restored."""
    return continuous_backups.describe(call.database, table_name(call.request.TableName))


OPERATION = Operation("DescribeContinuousBackups", DescribeContinuousBackupsInput, handle)
