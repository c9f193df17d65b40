"""BatchExecuteStatement."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Raw, json

from dynactor.api.access import data_asks
from dynactor.api.answers.item_answers import joined
from dynactor.api.execution.operation import DATA_FAULTS, Location, Operation
from dynactor.api.execution.statements import Reading, StatementResult, Task, bound, statement_task
from dynactor.api.requests import inputs
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import BatchExecuteStatementInput
from dynactor.api.requests.json_types import check_attribute_value
from dynactor.model.capacity import consumed_capacity
from dynactor.model.errors import (
    ConditionalCheckFailedException,
    DuplicateItemException,
    DynamoDBError,
    InternalServerError,
    ItemCollectionSizeLimitExceededException,
    ProvisionedThroughputExceededException,
    RequestLimitExceeded,
    ResourceNotFoundException,
    ThrottlingException,
    TransactionConflictException,
    ValidationException,
)
from dynactor.model.partiql.binding import is_read
from dynactor.model.partiql.statement import ExistsStatement, SelectStatement, Statement

# Errors of a single statement. Any other error fails the whole request.
_CODES: Final[dict[type[DynamoDBError], str]] = {
    ConditionalCheckFailedException: "ConditionalCheckFailed",
    DuplicateItemException: "DuplicateItem",
    InternalServerError: "InternalServerError",
    ItemCollectionSizeLimitExceededException: "ItemCollectionSizeLimitExceeded",
    ProvisionedThroughputExceededException: "ProvisionedThroughputExceeded",
    RequestLimitExceeded: "RequestLimitExceeded",
    ResourceNotFoundException: "ResourceNotFound",
    ThrottlingException: "ThrottlingError",
    TransactionConflictException: "TransactionConflict",
    ValidationException: "ValidationError",
}


async def handle(call: Call[BatchExecuteStatementInput]) -> bytes:
    """Execute statements independently. All must be reads of one item each, or all writes.

    The response to a failed statement has its error; the other statements are still executed.
    """
    request = call.request
    statements = [_bound(call, one) for one in request.Statements]
    _check_not_mixed(statements, request.Statements)
    tasks = [
        statement if isinstance(statement, DynamoDBError) else _task(call, statement, one)
        for statement, one in zip(statements, request.Statements, strict=True)
    ]
    _check_distinct(tasks)
    outcomes = await _outcomes(call, tasks)
    responses = [_response(task, one) for task, one in zip(tasks, outcomes, strict=True)]
    members = [b'"Responses":' + json.encode(responses)]
    consumed = [
        units
        for task, one in zip(tasks, outcomes, strict=True)
        if isinstance(task, Task)
        and isinstance(one, StatementResult)
        and (
            units := consumed_capacity(task.table.name, one.receipt, request.ReturnConsumedCapacity)
        )
    ]
    if consumed:
        members.append(b'"ConsumedCapacity":' + json.encode(consumed))
    return joined(members)


def _bound(
    call: Call[BatchExecuteStatementInput], request: inputs.BatchStatementRequestShape
) -> Statement | DynamoDBError:
    try:
        return bound(call.database, request.Statement, request.Parameters or [])
    except ValidationException as error:
        # The JSON types of all parameters are checked before any statement.
        for value in request.Parameters or ():
            check_attribute_value(value)
        return error


def _check_not_mixed(
    statements: Sequence[Statement | DynamoDBError],
    requests: Sequence[inputs.BatchStatementRequestShape],
) -> None:
    """Refuse reads together with writes; invalid statements count too."""
    kinds = set()
    for statement, request in zip(statements, requests, strict=True):
        if isinstance(statement, DynamoDBError):
            kinds.add(is_read(request.Statement))
        elif not isinstance(statement, ExistsStatement):
            kinds.add(isinstance(statement, SelectStatement))
    if kinds >= {True, False}:
        raise ValidationException(
            "Read and write requests together in the same batch is not supported."
        )


def _task(
    call: Call[BatchExecuteStatementInput],
    statement: Statement,
    request: inputs.BatchStatementRequestShape,
) -> Task | DynamoDBError:
    try:
        return statement_task(
            call.database,
            statement,
            reading=Reading(consistent=request.ConsistentRead is True, one_item=True),
            return_item_on_failure=request.ReturnValuesOnConditionCheckFailure == "ALL_OLD",
        )
    except (ValidationException, ResourceNotFoundException) as error:
        return error


def _check_distinct(tasks: Sequence[Task | DynamoDBError]) -> None:
    named = [(task.table.name, task.key) for task in tasks if isinstance(task, Task)]
    if len(set(named)) < len(named):
        raise ValidationException("Provided list of item keys contains duplicates")


async def _outcomes(
    call: Call[BatchExecuteStatementInput], tasks: Sequence[Task | DynamoDBError]
) -> list[StatementResult | DynamoDBError]:
    """The outcome of each statement; raises errors that fail the whole request."""
    runs = [call.noting(task.table, task.run()) for task in tasks if isinstance(task, Task)]
    results = iter(await asyncio.gather(*runs, return_exceptions=True))
    outcomes: list[StatementResult | DynamoDBError] = []
    for task in tasks:
        outcome = next(results) if isinstance(task, Task) else task
        if isinstance(outcome, BaseException) and not isinstance(outcome, tuple(_CODES)):
            raise outcome
        assert isinstance(outcome, StatementResult | DynamoDBError)
        outcomes.append(outcome)
    return outcomes


def _response(
    task: Task | DynamoDBError, outcome: StatementResult | DynamoDBError
) -> dict[str, Any]:
    response: dict[str, Any] = {}
    if isinstance(outcome, DynamoDBError):
        error: dict[str, Any] = {"Code": _CODES[type(outcome)], "Message": outcome.message}
        if isinstance(outcome, ConditionalCheckFailedException) and outcome.item is not None:
            error["Item"] = outcome.item
        response["Error"] = error
    # A statement that never started has no table.
    if isinstance(task, Task):
        response["TableName"] = task.table.name
    if isinstance(outcome, StatementResult) and outcome.items:
        (item,) = outcome.items
        response["Item"] = Raw(item)
    return response


OPERATION = Operation(
    BatchExecuteStatementInput,
    handle,
    asks=lambda asking: data_asks.statements(asking, asking.request.Statements),
    location=Location.HOME,
    faults=DATA_FAULTS,
)
