"""Conversion of members of the operations on tables to types of the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from dynactor.api.requests.inputs import (
    AttributeDefinitionShape,
    CreateGlobalSecondaryIndexActionShape,
    GlobalSecondaryIndexShape,
    KeySchemaElementShape,
    LocalSecondaryIndexShape,
    ProvisionedThroughputShape,
    StreamSpecificationShape,
)
from dynactor.model.definitions.table import Throughput
from dynactor.model.keys.key import KeyAttribute
from dynactor.model.tables.global_index_rules import NewGlobalIndex
from dynactor.model.tables.schema_rules import KeyElement, NewIndex
from dynactor.model.tables.stream_rules import StreamChange
from dynactor.streams.shard import stream_label


def throughput(shape: ProvisionedThroughputShape | None) -> Throughput | None:
    """The provisioned throughput of a request."""
    return None if shape is None else Throughput(shape.ReadCapacityUnits, shape.WriteCapacityUnits)


def given(shape: Struct | None) -> dict[str, Any] | None:
    """A structure as a dict of the members in the request."""
    if shape is None:
        return None
    return {name: value for name, value in asdict(shape).items() if value is not None}


def attribute_definitions(
    shapes: Sequence[AttributeDefinitionShape],
) -> tuple[KeyAttribute, ...]:
    """The names and types of key attributes."""
    return tuple(KeyAttribute(shape.AttributeName, shape.AttributeType) for shape in shapes)


def key_elements(shapes: Sequence[KeySchemaElementShape]) -> tuple[KeyElement, ...]:
    """A key schema, not yet checked against the attribute definitions."""
    return tuple(KeyElement(shape.AttributeName, shape.KeyType) for shape in shapes)


def new_local_index(shape: LocalSecondaryIndexShape) -> NewIndex:
    """A local secondary index to create."""
    names = shape.Projection.NonKeyAttributes
    return NewIndex(
        name=shape.IndexName,
        key_schema=key_elements(shape.KeySchema),
        projection_type=shape.Projection.ProjectionType,
        non_key_attributes=None if names is None else tuple(names),
    )


def new_global_index(
    shape: GlobalSecondaryIndexShape | CreateGlobalSecondaryIndexActionShape,
) -> NewGlobalIndex:
    """A global secondary index to create."""
    names = shape.Projection.NonKeyAttributes
    return NewGlobalIndex(
        name=shape.IndexName,
        key_schema=key_elements(shape.KeySchema),
        projection_type=shape.Projection.ProjectionType,
        non_key_attributes=None if names is None else tuple(names),
        throughput=throughput(shape.ProvisionedThroughput),
        on_demand_throughput=given(shape.OnDemandThroughput),
        warm_throughput=given(shape.WarmThroughput),
    )


def stream_change(
    shape: StreamSpecificationShape | None, now_epoch_seconds: float
) -> StreamChange | None:
    """The change of a table's stream; a new stream has the time as its label."""
    if shape is None:
        return None
    return StreamChange(shape.StreamEnabled, shape.StreamViewType, stream_label(now_epoch_seconds))
