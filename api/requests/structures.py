"""The structures in the inputs of DynamoDB's operations.

Each has its name from botocore's service model and the suffix ``Shape``. The suffix distinguishes
it from members and from types of ``model/``. ``dynactor.api.requests.shapes`` has the simple types.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from dynactor.api.requests import shapes
from dynactor.model.limits import (
    BATCH_GET_KEYS,
    BATCH_STATEMENTS,
    BATCH_WRITE_REQUESTS,
    CSV_HEADERS,
    GLOBAL_INDEXES,
    KEY_ATTRIBUTE_NAME_BYTES,
    TABLE_KEY_ATTRIBUTES,
    TRANSACTION_ITEMS,
)


class Shape(Struct, frozen=True):
    """The base of all input structures, including those of operations."""


class ExpectedAttributeValueShape(Shape, frozen=True):
    """The legacy form of a write's condition, for one attribute."""

    Value: shapes.AttributeValue | None = None
    Exists: bool | None = None
    ComparisonOperator: shapes.ComparisonOperator | None = None
    AttributeValueList: list[shapes.AttributeValue] | None = None


class ConditionShape(Shape, frozen=True):
    """The legacy form of a key condition or filter, for one attribute."""

    ComparisonOperator: shapes.ComparisonOperator
    AttributeValueList: list[shapes.AttributeValue] | None = None


class AttributeValueUpdateShape(Shape, frozen=True):
    """The legacy form of an update, for one attribute."""

    Value: shapes.AttributeValue | None = None
    Action: shapes.AttributeAction | None = None


class KeysAndAttributesShape(Shape, frozen=True):
    """The keys that BatchGetItem reads in one table."""

    Keys: Annotated[list[shapes.Key], Meta(min_length=1, max_length=BATCH_GET_KEYS)]
    AttributesToGet: shapes.AttributeNameList | None = None
    ConsistentRead: bool | None = None
    ProjectionExpression: str | None = None
    ExpressionAttributeNames: shapes.ExpressionAttributeNames | None = None


class PutRequestShape(Shape, frozen=True):
    """One item that BatchWriteItem puts."""

    Item: shapes.AttributeMap


class DeleteRequestShape(Shape, frozen=True):
    """One item that BatchWriteItem deletes."""

    Key: shapes.Key


class WriteRequestShape(Shape, frozen=True):
    """One write of BatchWriteItem. The operation checks that it is a put or a delete."""

    PutRequest: PutRequestShape | None = None
    DeleteRequest: DeleteRequestShape | None = None


BatchGetRequests: TypeAlias = Annotated[
    dict[shapes.TableName, KeysAndAttributesShape], Meta(min_length=1, max_length=BATCH_GET_KEYS)
]
WriteRequests: TypeAlias = Annotated[
    list[WriteRequestShape], Meta(min_length=1, max_length=BATCH_WRITE_REQUESTS)
]
BatchWriteRequests: TypeAlias = Annotated[
    dict[shapes.TableName, WriteRequests],
    Meta(min_length=1, max_length=BATCH_WRITE_REQUESTS),
    shapes.NotEmptyRule("The requestItems parameter is required for BatchWriteItem"),
]


class BatchStatementRequestShape(Shape, frozen=True):
    """One statement of BatchExecuteStatement."""

    Statement: shapes.PartiQLStatement
    Parameters: shapes.PreparedStatementParameters | None = None
    ConsistentRead: bool | None = None
    ReturnValuesOnConditionCheckFailure: shapes.ReturnValuesOnConditionCheckFailure | None = None


BatchStatements: TypeAlias = Annotated[
    list[BatchStatementRequestShape], Meta(min_length=1, max_length=BATCH_STATEMENTS)
]


class ConditionCheckShape(Shape, frozen=True):
    """A condition in a transaction, on an item that the transaction does not change."""

    Key: shapes.Key
    TableName: shapes.TableName
    ConditionExpression: str
    ExpressionAttributeNames: shapes.ExpressionAttributeNames | None = None
    ExpressionAttributeValues: shapes.ExpressionAttributeValues | None = None
    ReturnValuesOnConditionCheckFailure: shapes.ReturnValuesOnConditionCheckFailure | None = None


class PutShape(Shape, frozen=True):
    """A put in a transaction."""

    Item: shapes.AttributeMap
    TableName: shapes.TableName
    ConditionExpression: str | None = None
    ExpressionAttributeNames: shapes.ExpressionAttributeNames | None = None
    ExpressionAttributeValues: shapes.ExpressionAttributeValues | None = None
    ReturnValuesOnConditionCheckFailure: shapes.ReturnValuesOnConditionCheckFailure | None = None


class DeleteShape(Shape, frozen=True):
    """A delete in a transaction."""

    Key: shapes.Key
    TableName: shapes.TableName
    ConditionExpression: str | None = None
    ExpressionAttributeNames: shapes.ExpressionAttributeNames | None = None
    ExpressionAttributeValues: shapes.ExpressionAttributeValues | None = None
    ReturnValuesOnConditionCheckFailure: shapes.ReturnValuesOnConditionCheckFailure | None = None


class UpdateShape(Shape, frozen=True):
    """An update in a transaction."""

    Key: shapes.Key
    UpdateExpression: str
    TableName: shapes.TableName
    ConditionExpression: str | None = None
    ExpressionAttributeNames: shapes.ExpressionAttributeNames | None = None
    ExpressionAttributeValues: shapes.ExpressionAttributeValues | None = None
    ReturnValuesOnConditionCheckFailure: shapes.ReturnValuesOnConditionCheckFailure | None = None


class TransactWriteItemShape(Shape, frozen=True):
    """One action of a transaction. The operation checks that exactly one of the four is set."""

    ConditionCheck: ConditionCheckShape | None = None
    Put: PutShape | None = None
    Delete: DeleteShape | None = None
    Update: UpdateShape | None = None


class GetShape(Shape, frozen=True):
    """An item that is read in a transaction."""

    Key: shapes.Key
    TableName: shapes.TableName
    ProjectionExpression: str | None = None
    ExpressionAttributeNames: shapes.ExpressionAttributeNames | None = None


class TransactGetItemShape(Shape, frozen=True):
    """One read of a transaction."""

    Get: GetShape


TransactWriteItems: TypeAlias = Annotated[
    list[TransactWriteItemShape], Meta(min_length=1, max_length=TRANSACTION_ITEMS)
]
TransactGetItems: TypeAlias = Annotated[
    list[TransactGetItemShape], Meta(min_length=1, max_length=TRANSACTION_ITEMS)
]


class ParameterizedStatementShape(Shape, frozen=True):
    """One statement of ExecuteTransaction."""

    Statement: shapes.PartiQLStatement
    Parameters: shapes.PreparedStatementParameters | None = None
    ReturnValuesOnConditionCheckFailure: shapes.ReturnValuesOnConditionCheckFailure | None = None


ParameterizedStatements: TypeAlias = Annotated[
    list[ParameterizedStatementShape], Meta(min_length=1, max_length=TRANSACTION_ITEMS)
]


class AttributeDefinitionShape(Shape, frozen=True):
    """The name and type of an attribute that keys use."""

    AttributeName: shapes.KeySchemaAttributeName
    AttributeType: shapes.ScalarAttributeType


class KeySchemaElementShape(Shape, frozen=True):
    """One attribute of a key."""

    AttributeName: shapes.KeySchemaAttributeName
    KeyType: shapes.KeyType


KeySchemaShape: TypeAlias = Annotated[list[KeySchemaElementShape], Meta(min_length=1)]
# The service model no longer has a maximum, because keys of global indexes may have more
# attributes. DynamoDB itself still refuses more for a table or a local index.
TableKeySchemaShape: TypeAlias = Annotated[
    list[KeySchemaElementShape], Meta(min_length=1, max_length=TABLE_KEY_ATTRIBUTES)
]


class ProjectionShape(Shape, frozen=True):
    """The attributes that an index holds in addition to keys."""

    ProjectionType: shapes.ProjectionType | None = None
    NonKeyAttributes: (
        Annotated[list[shapes.NonKeyAttributeName], Meta(min_length=1, max_length=20)] | None
    ) = None


class ProvisionedThroughputShape(Shape, frozen=True):
    """Capacity units per second."""

    ReadCapacityUnits: shapes.PositiveLong
    WriteCapacityUnits: shapes.PositiveLong


class OnDemandThroughputShape(Shape, frozen=True):
    """The maximum throughput of an on-demand table; -1 removes the limit."""

    MaxReadRequestUnits: shapes.Long | None = None
    MaxWriteRequestUnits: shapes.Long | None = None


class WarmThroughputShape(Shape, frozen=True):
    """The throughput that a table must be ready for."""

    ReadUnitsPerSecond: shapes.Long | None = None
    WriteUnitsPerSecond: shapes.Long | None = None


class LocalSecondaryIndexShape(Shape, frozen=True):
    """A local secondary index to create."""

    IndexName: shapes.IndexName
    KeySchema: TableKeySchemaShape
    Projection: ProjectionShape


class GlobalSecondaryIndexShape(Shape, frozen=True):
    """A global secondary index to create with its table."""

    IndexName: shapes.IndexName
    KeySchema: KeySchemaShape
    Projection: ProjectionShape
    ProvisionedThroughput: ProvisionedThroughputShape | None = None
    OnDemandThroughput: OnDemandThroughputShape | None = None
    WarmThroughput: WarmThroughputShape | None = None


class CreateGlobalSecondaryIndexActionShape(GlobalSecondaryIndexShape, frozen=True):
    """A global secondary index to add to a table."""


class UpdateGlobalSecondaryIndexActionShape(Shape, frozen=True):
    """New throughput for a global secondary index."""

    IndexName: shapes.IndexName
    ProvisionedThroughput: ProvisionedThroughputShape | None = None
    OnDemandThroughput: OnDemandThroughputShape | None = None
    WarmThroughput: WarmThroughputShape | None = None


class DeleteGlobalSecondaryIndexActionShape(Shape, frozen=True):
    """A global secondary index to delete."""

    IndexName: shapes.IndexName


class GlobalSecondaryIndexUpdateShape(Shape, frozen=True):
    """One change of UpdateTable to the global secondary indexes."""

    Update: UpdateGlobalSecondaryIndexActionShape | None = None
    Create: CreateGlobalSecondaryIndexActionShape | None = None
    Delete: DeleteGlobalSecondaryIndexActionShape | None = None


class StreamSpecificationShape(Shape, frozen=True):
    """Whether a table has a stream, and the contents of its records."""

    StreamEnabled: bool
    StreamViewType: shapes.StreamViewType | None = None


class TimeToLiveSpecificationShape(Shape, frozen=True):
    """Whether items expire, and the attribute that has their expiry time."""

    AttributeName: shapes.TimeToLiveAttributeName
    Enabled: bool


class PointInTimeRecoverySpecificationShape(Shape, frozen=True):
    """Whether continuous backups are taken, and for how long they are kept."""

    PointInTimeRecoveryEnabled: bool
    RecoveryPeriodInDays: shapes.RecoveryPeriodInDays | None = None


class SSESpecificationShape(Shape, frozen=True):
    """Server-side encryption."""

    Enabled: bool | None = None
    SSEType: shapes.SSEType | None = None
    KMSMasterKeyId: str | None = None


class TagShape(Shape, frozen=True):
    """A key and a value on a resource."""

    Key: shapes.TagKeyString
    Value: shapes.TagValueString


class VectorAttributeShape(Shape, frozen=True):
    """The attribute of a vector index."""

    AttributeName: Annotated[str, Meta(min_length=1, max_length=KEY_ATTRIBUTE_NAME_BYTES)]


class SearchSchemaElementShape(Shape, frozen=True):
    """An attribute that a search in a vector index may name."""

    AttributeName: shapes.AttributeName
    SearchSchemaElementType: Literal["HASH", "INLINE_FILTER"]


class VectorIndexShape(Shape, frozen=True):
    """A vector index to create."""

    IndexName: shapes.IndexName
    VectorAttribute: VectorAttributeShape
    Projection: ProjectionShape
    Dimensions: shapes.PositiveLong
    DistanceFunction: Literal["COSINE", "DOT_PRODUCT", "EUCLIDEAN"]
    SearchSchema: Annotated[list[SearchSchemaElementShape], Meta(min_length=1)] | None = None


class DeleteVectorIndexActionShape(Shape, frozen=True):
    """A vector index to delete."""

    IndexName: shapes.IndexName


class VectorIndexUpdateShape(Shape, frozen=True):
    """One change of UpdateTable to the vector indexes."""

    Create: VectorIndexShape | None = None
    Delete: DeleteVectorIndexActionShape | None = None


class ProvisionedThroughputOverrideShape(Shape, frozen=True):
    """A replica's own read capacity."""

    ReadCapacityUnits: shapes.PositiveLong | None = None


class OnDemandThroughputOverrideShape(Shape, frozen=True):
    """A replica's own maximum."""

    MaxReadRequestUnits: shapes.Long | None = None


class ReplicaGlobalSecondaryIndexShape(Shape, frozen=True):
    """A replica's own settings for an index."""

    IndexName: shapes.IndexName
    ProvisionedThroughputOverride: ProvisionedThroughputOverrideShape | None = None
    OnDemandThroughputOverride: OnDemandThroughputOverrideShape | None = None


class ReplicationGroupMemberShape(Shape, frozen=True):
    """A replica to create or update."""

    RegionName: str
    KMSMasterKeyId: str | None = None
    ProvisionedThroughputOverride: ProvisionedThroughputOverrideShape | None = None
    OnDemandThroughputOverride: OnDemandThroughputOverrideShape | None = None
    GlobalSecondaryIndexes: (
        Annotated[list[ReplicaGlobalSecondaryIndexShape], Meta(min_length=1)] | None
    ) = None
    TableClassOverride: shapes.TableClass | None = None


class RegionActionShape(Shape, frozen=True):
    """A region to remove from, or to add to, a global table."""

    RegionName: str


class DisassociateReplicationGroupMemberShape(Shape, frozen=True):
    """A replica to disassociate."""

    RegionName: str
    DisassociationMode: Literal["WAIT_FOR_REPLICATION"]


class ReplicationGroupUpdateShape(Shape, frozen=True):
    """One change of UpdateTable to the replicas."""

    Create: ReplicationGroupMemberShape | None = None
    Update: ReplicationGroupMemberShape | None = None
    Delete: RegionActionShape | None = None
    Disassociate: DisassociateReplicationGroupMemberShape | None = None


class GlobalTableWitnessGroupUpdateShape(Shape, frozen=True):
    """One change of UpdateTable to the witnesses."""

    Create: RegionActionShape | None = None
    Delete: RegionActionShape | None = None


class ShardFilterShape(Shape, frozen=True):
    """The filter of DescribeStream: shards with this parent."""

    Type: shapes.ShardFilterType | None = None
    ShardId: shapes.ShardId | None = None


class EnableKinesisStreamingConfigurationShape(Shape, frozen=True):
    """The precision of times for a destination."""

    ApproximateCreationDateTimePrecision: shapes.ApproximateCreationDateTimePrecision | None = None


class UpdateKinesisStreamingConfigurationShape(Shape, frozen=True):
    """The new precision of times for a destination."""

    ApproximateCreationDateTimePrecision: shapes.ApproximateCreationDateTimePrecision | None = None


class IncrementalExportSpecificationShape(Shape, frozen=True):
    """The period and the images of an incremental export."""

    ExportFromTime: shapes.Timestamp | None = None
    ExportToTime: shapes.Timestamp | None = None
    ExportViewType: shapes.ExportViewType | None = None


class FilterSpecificationShape(Shape, frozen=True):
    """The items and attributes of an export."""

    FilterExpression: str | None = None
    ProjectionExpression: str | None = None
    KeyConditionExpression: str | None = None
    ExpressionAttributeNames: shapes.ExpressionAttributeNames | None = None
    ExpressionAttributeValues: shapes.ExpressionAttributeValues | None = None


class S3BucketSourceShape(Shape, frozen=True):
    """The bucket and the prefix of the files of an import."""

    S3Bucket: shapes.S3Bucket
    S3BucketOwner: shapes.S3BucketOwner | None = None
    S3KeyPrefix: shapes.S3Prefix | None = None


class InputS3ConfigurationShape(Shape, frozen=True):
    """The bucket, the prefix and the format of the objects of a bulk operation."""

    S3Bucket: shapes.S3Bucket
    InputFormat: shapes.BulkOperationInputFormat
    S3BucketOwner: shapes.S3BucketOwner | None = None
    S3KeyPrefix: shapes.S3Prefix | None = None
    InputCompressionType: shapes.InputCompressionType | None = None


class OutputS3ConfigurationShape(Shape, frozen=True):
    """The bucket and the prefix of the output of a bulk operation, and the kinds of output."""

    OutputType: list[shapes.BulkOutputType]
    S3BucketOwner: shapes.S3BucketOwner | None = None
    S3Bucket: shapes.S3Bucket | None = None
    S3KeyPrefix: shapes.S3Prefix | None = None
    S3SseAlgorithm: shapes.S3SseAlgorithm | None = None
    S3SseKmsKeyId: shapes.S3SseKmsKeyId | None = None


class CsvOptionsShape(Shape, frozen=True):
    """The form of CSV files."""

    Delimiter: shapes.CsvDelimiter | None = None
    HeaderList: (
        Annotated[list[shapes.CsvHeader], Meta(min_length=1, max_length=CSV_HEADERS)] | None
    ) = None


class InputFormatOptionsShape(Shape, frozen=True):
    """The form of the files of an import."""

    Csv: CsvOptionsShape | None = None


class TableCreationParametersShape(Shape, frozen=True):
    """The table that an import creates."""

    TableName: shapes.PlainTableName
    AttributeDefinitions: list[AttributeDefinitionShape]
    KeySchema: TableKeySchemaShape
    BillingMode: shapes.BillingMode | None = None
    ProvisionedThroughput: ProvisionedThroughputShape | None = None
    OnDemandThroughput: OnDemandThroughputShape | None = None
    SSESpecification: SSESpecificationShape | None = None
    GlobalSecondaryIndexes: list[GlobalSecondaryIndexShape] | None = None
    VectorIndexes: list[VectorIndexShape] | None = None


# -- global tables --------------------------------------------------------------------------------

_GLOBAL_TABLE_REGIONS: Final = 50  # <= (botocore's service model)


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
    list[ReplicaSettingsUpdateShape], Meta(min_length=1, max_length=_GLOBAL_TABLE_REGIONS)
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
