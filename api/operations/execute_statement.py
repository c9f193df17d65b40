"""ExecuteStatement."""

from __future__ import annotations

from msgspec import MsgspecError, Struct, json

from dynactor.api.access import data_asks
from dynactor.api.answers.item_answers import array_member, capacity_member, joined
from dynactor.api.execution.operation import DATA_FAULTS, Location, Operation
from dynactor.api.execution.statements import Reading, bound, statement_task
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import ExecuteStatementInput
from dynactor.model.partiql.next_token import Position, next_token, read_position
from dynactor.model.partiql.statement import SelectStatement, Statement
from dynactor.model.values.attribute_value import AttributeValue


async def handle(call: Call[ExecuteStatementInput]) -> bytes:
    """Execute one PartiQL statement."""
    request = call.request
    parameters = request.Parameters or []
    statement = bound(call.database, request.Statement, parameters)
    task = statement_task(
        call.database,
        statement,
        reading=Reading(
            limit=request.Limit,
            consistent=request.ConsistentRead is True,
            start=_start(request, statement, parameters),
        ),
        return_item_on_failure=request.ReturnValuesOnConditionCheckFailure == "ALL_OLD",
    )
    outcome = await call.noting(task.table, task.run())
    members = [array_member(b"Items", outcome.items)]
    if outcome.position is not None:
        token = next_token(outcome.position, request.Statement, parameters)
        members.append(b'"NextToken":' + json.encode(token))
    if outcome.last_key is not None:
        members.append(b'"LastEvaluatedKey":' + json.encode(outcome.last_key))
    members += capacity_member(task.table.name, outcome.receipt, request.ReturnConsumedCapacity)
    return joined(members)


def _start(
    request: ExecuteStatementInput, statement: Statement, parameters: list[AttributeValue]
) -> Position:
    """The position where a SELECT continues; a write ignores the token."""
    if request.NextToken is None or not isinstance(statement, SelectStatement):
        return Position(0)
    return read_position(request.NextToken, request.Statement, parameters)


class _Statement(Struct, frozen=True):
    """The member that says whether a request reads."""

    Statement: str = ""


def _reads_only(body: bytes) -> bool:
    try:
        statement = json.decode(body, type=_Statement).Statement
    except MsgspecError:
        # The operation refuses such a body.
        return True
    return statement.lstrip()[:6].upper() == "SELECT"


OPERATION = Operation(
    ExecuteStatementInput,
    handle,
    asks=lambda asking: data_asks.statements(asking, (asking.request,)),
    location=Location.HOME,
    reads_only=_reads_only,
    faults=DATA_FAULTS,
)
