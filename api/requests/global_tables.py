"""The settings of the operations on global tables, and their errors.

The service has no global tables of the version 2017.11.29 any more: the operations of that version
create nothing and find nothing. This server has no replicas, so no table has settings of replicas.

Source: answers of the service, October 2026.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from msgspec import Meta

from dynactor.api.requests import shapes
from dynactor.api.requests.structures import Shape
from dynactor.model.errors import (
    GlobalTableNotFoundException,
    ResourceNotFoundException,
    ValidationException,
)
from dynactor.model.limits import GLOBAL_INDEXES
from dynactor.model.tables.schema_rules import INVALID

_REGIONS: Final = 50  # <= (botocore's service model)


class ReplicaShape(Shape, frozen=True):
    """A region of a global table."""

    RegionName: str | None = None


class CreateReplicaActionShape(Shape, frozen=True):
    """A region to add to a global table."""

    RegionName: str


class DeleteReplicaActionShape(Shape, frozen=True):
    """A region to remove from a global table."""

    RegionName: str


class ReplicaUpdateShape(Shape, frozen=True):
    """One change of a global table's regions."""

    Create: CreateReplicaActionShape | None = None
    Delete: DeleteReplicaActionShape | None = None


class TargetTrackingShape(Shape, frozen=True):
    """The use of units at which auto scaling changes them."""

    TargetValue: float
    DisableScaleIn: bool | None = None
    ScaleInCooldown: shapes.Integer | None = None
    ScaleOutCooldown: shapes.Integer | None = None


class AutoScalingPolicyUpdateShape(Shape, frozen=True):
    """A policy of auto scaling."""

    TargetTrackingScalingPolicyConfiguration: TargetTrackingShape
    PolicyName: shapes.AutoScalingPolicyName | None = None


class AutoScalingSettingsUpdateShape(Shape, frozen=True):
    """The bounds and the policy of auto scaling."""

    MinimumUnits: shapes.PositiveLong | None = None
    MaximumUnits: shapes.PositiveLong | None = None
    AutoScalingDisabled: bool | None = None
    AutoScalingRoleArn: shapes.AutoScalingRoleArn | None = None
    ScalingPolicyUpdate: AutoScalingPolicyUpdateShape | None = None


class GlobalTableGlobalSecondaryIndexSettingsUpdateShape(Shape, frozen=True):
    """Write units of an index in all regions."""

    IndexName: shapes.IndexName
    ProvisionedWriteCapacityUnits: shapes.PositiveLong | None = None
    ProvisionedWriteCapacityAutoScalingSettingsUpdate: AutoScalingSettingsUpdateShape | None = None


class ReplicaGlobalSecondaryIndexSettingsUpdateShape(Shape, frozen=True):
    """Read units of an index in a region."""

    IndexName: shapes.IndexName
    ProvisionedReadCapacityUnits: shapes.PositiveLong | None = None
    ProvisionedReadCapacityAutoScalingSettingsUpdate: AutoScalingSettingsUpdateShape | None = None


class ReplicaSettingsUpdateShape(Shape, frozen=True):
    """Settings of a global table in a region."""

    RegionName: str
    ReplicaProvisionedReadCapacityUnits: shapes.PositiveLong | None = None
    ReplicaProvisionedReadCapacityAutoScalingSettingsUpdate: (
        AutoScalingSettingsUpdateShape | None
    ) = None
    ReplicaGlobalSecondaryIndexSettingsUpdate: (
        Annotated[
            list[ReplicaGlobalSecondaryIndexSettingsUpdateShape],
            Meta(min_length=1, max_length=GLOBAL_INDEXES),
        ]
        | None
    ) = None
    ReplicaTableClass: shapes.TableClass | None = None


IndexSettingsUpdates: TypeAlias = Annotated[
    list[GlobalTableGlobalSecondaryIndexSettingsUpdateShape],
    Meta(min_length=1, max_length=GLOBAL_INDEXES),
]
ReplicaSettingsUpdates: TypeAlias = Annotated[
    list[ReplicaSettingsUpdateShape], Meta(min_length=1, max_length=_REGIONS)
]


class GlobalSecondaryIndexAutoScalingUpdateShape(Shape, frozen=True):
    """Auto scaling of an index's write units."""

    IndexName: shapes.IndexName | None = None
    ProvisionedWriteCapacityAutoScalingUpdate: AutoScalingSettingsUpdateShape | None = None


class ReplicaGlobalSecondaryIndexAutoScalingUpdateShape(Shape, frozen=True):
    """Auto scaling of an index's read units in a region."""

    IndexName: shapes.IndexName | None = None
    ProvisionedReadCapacityAutoScalingUpdate: AutoScalingSettingsUpdateShape | None = None


class ReplicaAutoScalingUpdateShape(Shape, frozen=True):
    """Auto scaling of a table's read units in a region."""

    RegionName: str
    ReplicaGlobalSecondaryIndexUpdates: (
        list[ReplicaGlobalSecondaryIndexAutoScalingUpdateShape] | None
    ) = None
    ReplicaProvisionedReadCapacityAutoScalingUpdate: AutoScalingSettingsUpdateShape | None = None


def not_supported() -> ValidationException:
    """The error of an operation that would add a region to a global table of 2017."""
    return ValidationException(
        f"{INVALID}DynamoDB global tables version 2017.11.29 is not supported. We recommend using "
        "DynamoDB global tables version 2019.11.21, instead of version 2017.11.29 (Legacy)."
    )


def no_global_table(name: str, before: str = "") -> GlobalTableNotFoundException:
    """The error of the other operations on global tables of 2017."""
    return GlobalTableNotFoundException(before + _not_there(name))


def no_replicas(name: str) -> ResourceNotFoundException:
    """The error of operations on auto scaling, for a table without replicas."""
    return ResourceNotFoundException(_not_there(name))


def _not_there(name: str) -> str:
    return f"Global table with name: '{name}' does not exist."
