"""RestoreTableToPointInTime."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import json

from dynactor.actors.restores.restore_phases import RestoreTableToTime
from dynactor.api.access import asks
from dynactor.api.access.ask import Ask, Asking
from dynactor.api.answers import continuous_backups
from dynactor.api.answers.table_description import table_description
from dynactor.api.execution.operation import Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.foreign_arns import RESTORE_ARN_ERRORS
from dynactor.api.requests.inputs import RestoreTableToPointInTimeInput
from dynactor.api.requests.restore_request import restore_overrides
from dynactor.api.requests.table_arn import table_name
from dynactor.model.errors import ValidationException
from dynactor.model.tables.restore_rules import restored


async def handle(call: Call[RestoreTableToPointInTimeInput]) -> bytes:
    """Start to restore a table; it becomes ACTIVE when it is complete."""
    request, database = call.request, call.database
    name = _source(request)
    if (request.RestoreDateTime is None) != bool(request.UseLatestRestorableTime):
        raise ValidationException(
            "Exactly one of RestoreDateTime and UseLatestRestorableTime must be specified"
        )
    source = continuous_backups.source_table(database, name)
    definition = restored(
        source.definition,
        request.TargetTableName,
        restore_overrides(request),
        call.database.settings.region,
    )
    state = await database.ask(RestoreTableToTime(definition, name, request.RestoreDateTime))
    return json.encode({"TableDescription": table_description(database, state)})


def _source(request: RestoreTableToPointInTimeInput) -> str:
    arn, name = request.SourceTableArn, request.SourceTableName
    if (arn is None) == (name is None):
        raise ValidationException(
            "Exactly one of SourceTableName and SourceTableArn must be specified"
        )
    return table_name(arn or name or "")


def _asks(asking: Asking) -> Iterator[Ask]:
    """The table, and the new table."""
    request = asking.request
    if request.SourceTableName is not None:
        yield asks.on_table(asking, request.SourceTableName)
    if request.SourceTableArn is not None:
        yield from asks.member("SourceTableArn")(asking)
    yield from asks.restored_table(asking)


OPERATION = Operation(
    RestoreTableToPointInTimeInput, handle, asks=_asks, arn_errors=RESTORE_ARN_ERRORS
)
