"""CreateTable."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import json

from dynactor.actors.table.messages import CreateTable
from dynactor.api.access import asks
from dynactor.api.access.ask import Ask, Asking
from dynactor.api.access.facts import TagFacts
from dynactor.api.answers.table_description import created_table_description
from dynactor.api.execution.operation import Location, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import CreateTableInput
from dynactor.api.requests.policy_resource import check_policy
from dynactor.api.requests.table_arn import table_name
from dynactor.api.requests.table_request import (
    attribute_definitions,
    given,
    key_elements,
    new_global_index,
    new_local_index,
    stream_change,
    throughput,
)
from dynactor.model.definitions.table import AttachedPolicy
from dynactor.model.errors import ValidationException
from dynactor.model.tables.policy_rules import new_policy
from dynactor.model.tables.table_rules import NewTable, define, without_unused_definitions


async def handle(call: Call[CreateTableInput]) -> bytes:
    """Create a table; it exists when the answer is sent."""
    request = call.request
    name = table_name(request.TableName)
    refuse_unsupported(request)
    new = new_table(name, request, call.database.clock.now_epoch_seconds())
    is_like_dynamodb_local = call.database.settings.is_like_dynamodb_local
    if is_like_dynamodb_local:
        new = without_unused_definitions(new)
    definition = define(new, call.database.settings.region)
    state = await call.database.ask(CreateTable(definition))
    if is_like_dynamodb_local:
        state = await call.database.describe(name)
    return json.encode({"TableDescription": created_table_description(call.database, state)})


def new_table(name: str, request: CreateTableInput, now_epoch_seconds: float) -> NewTable:
    """The table of a request, not checked yet."""
    return NewTable(
        name=name,
        key_schema=key_elements(request.KeySchema),
        attribute_definitions=attribute_definitions(request.AttributeDefinitions),
        local_indexes=(
            None
            if request.LocalSecondaryIndexes is None
            else tuple(map(new_local_index, request.LocalSecondaryIndexes))
        ),
        global_indexes=(
            None
            if request.GlobalSecondaryIndexes is None
            else tuple(map(new_global_index, request.GlobalSecondaryIndexes))
        ),
        stream=stream_change(request.StreamSpecification, now_epoch_seconds),
        billing_mode=request.BillingMode,
        throughput=throughput(request.ProvisionedThroughput),
        table_class=request.TableClass,
        deletion_protection=request.DeletionProtectionEnabled,
        sse_specification=given(request.SSESpecification),
        on_demand_throughput=given(request.OnDemandThroughput),
        warm_throughput=given(request.WarmThroughput),
        tags=tuple((tag.Key, tag.Value) for tag in request.Tags or ()),
        policies=_policies(request, now_epoch_seconds),
    )


def _policies(request: CreateTableInput, now_epoch_seconds: float) -> tuple[AttachedPolicy, ...]:
    if request.ResourcePolicy is None:
        return ()
    check_policy(request.ResourcePolicy)
    return (new_policy(request.ResourcePolicy, now_epoch_seconds),)


def refuse_unsupported(request: CreateTableInput) -> None:
    """Refuse members that the server does not have; raises ``ValidationException``."""
    if request.VectorIndexes:
        raise ValidationException("VectorIndexes are not supported yet")
    if request.GlobalTableSourceArn is not None:
        raise ValidationException("GlobalTableSourceArn is not supported yet")
    if request.GlobalTableSettingsReplicationMode is not None:
        raise ValidationException("GlobalTableSettingsReplicationMode is not supported yet")


def _asks(asking: Asking) -> Iterator[Ask]:
    """The table, and the actions for its tags and its policy."""
    request = asking.request
    tags = asks.tags(request)
    arn = asking.table_arn(table_name(request.TableName))
    facts = TagFacts(asking.facts, None, tags)
    yield Ask(asking.action, arn, facts)
    if tags:
        yield Ask("dynamodb:TagResource", arn, facts)
    if request.ResourcePolicy is not None:
        yield Ask("dynamodb:PutResourcePolicy", arn, facts)


OPERATION = Operation(CreateTableInput, handle, asks=_asks, location=Location.HOME)
