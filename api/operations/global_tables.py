"""Operations on global tables of the version 2017.11.29, and on the auto scaling of replicas.

The service has no global tables of this version any more: the operations create nothing and find
nothing. This server has no replicas, so no table has settings of replicas.

Source: answers of the service, October 2026.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NoReturn

from msgspec import json

from dynactor.api.access import asks
from dynactor.api.execution.operation import Effect, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import (
    CreateGlobalTableInput,
    DescribeGlobalTableInput,
    DescribeGlobalTableSettingsInput,
    DescribeTableReplicaAutoScalingInput,
    ListGlobalTablesInput,
    UpdateGlobalTableInput,
    UpdateGlobalTableSettingsInput,
    UpdateTableReplicaAutoScalingInput,
)
from dynactor.api.requests.table_arn import table_name
from dynactor.model.errors import (
    GlobalTableNotFoundException,
    ResourceNotFoundException,
    ValidationException,
    invalid_value,
)


def _create(_call: Call[Any]) -> NoReturn:
    raise invalid_value(
        "DynamoDB global tables version 2017.11.29 is not supported. We recommend using DynamoDB "
        "global tables version 2019.11.21, instead of version 2017.11.29 (Legacy)."
    )


def _list(_call: Call[ListGlobalTablesInput]) -> bytes:
    return json.encode({"GlobalTables": []})


def _describe(call: Call[DescribeGlobalTableInput]) -> NoReturn:
    name = call.request.GlobalTableName
    raise GlobalTableNotFoundException(f"Global table not found: {_not_there(name)}")


def _update(call: Call[UpdateGlobalTableInput]) -> NoReturn:
    updates = call.request.ReplicaUpdates
    if not updates:
        raise ValidationException("One or more parameter values were invalid")
    if any(update.Create is not None for update in updates):
        _create(call)
    _find(call)


def _find(call: Call[Any]) -> NoReturn:
    raise GlobalTableNotFoundException(_not_there(call.request.GlobalTableName))


def _find_replicas(call: Call[Any]) -> NoReturn:
    raise ResourceNotFoundException(_not_there(table_name(call.request.TableName)))


def _not_there(name: str) -> str:
    return f"Global table with name: '{name}' does not exist."


_reading = partial(Operation, effect=Effect.DESCRIBES)
OPERATIONS = (
    Operation(CreateGlobalTableInput, _create, asks=asks.global_table),
    Operation(UpdateGlobalTableInput, _update, asks=asks.global_table),
    Operation(UpdateGlobalTableSettingsInput, _find, asks=asks.global_table),
    Operation(UpdateTableReplicaAutoScalingInput, _find_replicas, asks=asks.table),
    _reading(ListGlobalTablesInput, _list, asks=asks.no_resource),
    _reading(DescribeGlobalTableInput, _describe, asks=asks.global_table),
    _reading(DescribeGlobalTableSettingsInput, _find, asks=asks.global_table),
    _reading(DescribeTableReplicaAutoScalingInput, _find_replicas, asks=asks.table),
)
