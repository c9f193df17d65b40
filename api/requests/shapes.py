"""The strings, numbers, enumerations and maps in the inputs of DynamoDB's operations.

Each has its name and its constraints from botocore's service model (2012-08-10); a test compares
them with the model. The decoder of msgspec checks the constraints, and
``dynactor.api.requests.input_decoder`` finds the errors to report. Attribute values are plain JSON
here; ``dynactor.model.values.attribute_value`` checks them. Structures are in
``dynactor.api.requests.structures``.

Import the module instead of the names: a class with a member ``TableName`` can't use a type
``TableName``, but can use ``shapes.TableName``.

Enumerations have the order of DynamoDB's messages, as dynalite's suites measured it on AWS. This
order often differs from the service model's.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from dynactor.model.limits import (
    BACKUP_NAME_CHARACTERS,
    BUCKET_NAME_CHARACTERS,
    BUCKET_PREFIX_CHARACTERS,
    BULK_WRITE_UNITS,
    CLIENT_TOKEN_CHARACTERS,
    CSV_HEADER_CHARACTERS,
    KEY_ATTRIBUTE_NAME_BYTES,
    LIST_BACKUPS_PAGE,
    LIST_BULK_OPERATIONS,
    LIST_CONTRIBUTOR_INSIGHTS_PAGE,
    LIST_EXPORTS_PAGE,
    LIST_IMPORTS,
    LIST_TABLES_PAGE,
    NAME_CHARACTER,
    RECOVERY_DAYS,
    SCAN_TOTAL_SEGMENTS,
    TABLE_NAME_CHARACTERS,
    TAG_KEY_CHARACTERS,
    TAG_VALUE_CHARACTERS,
    TIME_TO_LIVE_ATTRIBUTE_CHARACTERS,
)
from dynactor.model.values.json_types import INTEGER_MOST, LONG_MOST

NAME_PATTERN: Final = NAME_CHARACTER + "+"
_FEWEST, _MOST = TABLE_NAME_CHARACTERS
_ARN_CHARACTERS: Final = 1024
_RESOURCE_ARN_CHARACTERS: Final = 1283


class TableNameRule(Struct, frozen=True):
    """Marks a table's name, which may be an ARN.

    Operations on tables report a missing name before all other errors (``missing_first``).
    Operations on items report it together with their other errors.
    """

    missing_first: bool = False


class LengthFirstRule(Struct, frozen=True):
    """Marks a plain name whose wrong length is reported before all other errors."""


class NotEmptyRule(Struct, frozen=True):
    """Marks a map that may not be empty; its operation has its own message for that."""

    message: str


class ChoiceRule(Struct, frozen=True):
    """Marks an enumeration whose operation has its own message, after all broken constraints."""

    message: str


class LongRule(Struct, frozen=True):
    """Marks a number that is Java's long; other numbers are Java's int."""


# A plain name, or any text with a colon, which ``dynactor.api.requests.table_arn`` checks.
_TABLE_NAME_OR_ARN: Final = rf"^(?:{NAME_CHARACTER}{{{_FEWEST},{_MOST}}}\Z|[^:]*:)"

TableName: TypeAlias = Annotated[
    str, Meta(pattern=_TABLE_NAME_OR_ARN, max_length=_ARN_CHARACTERS), TableNameRule()
]
ControlTableName: TypeAlias = Annotated[
    str,
    Meta(pattern=_TABLE_NAME_OR_ARN, max_length=_ARN_CHARACTERS),
    TableNameRule(missing_first=True),
]
# A plain name only: ListTables' ExclusiveStartTableName.
PlainTableName: TypeAlias = Annotated[
    str,
    Meta(
        pattern=rf"^{NAME_PATTERN}\Z",
        min_length=_FEWEST,
        max_length=_MOST,
    ),
]
IndexName: TypeAlias = PlainTableName
# The names of a restore's target and of an index with Contributor Insights.
LengthFirstName: TypeAlias = Annotated[PlainTableName, LengthFirstRule()]
BackupName: TypeAlias = Annotated[
    str,
    Meta(
        pattern=rf"^{NAME_PATTERN}\Z",
        min_length=BACKUP_NAME_CHARACTERS[0],
        max_length=BACKUP_NAME_CHARACTERS[1],
    ),
]
BackupArn: TypeAlias = Annotated[str, Meta(min_length=37, max_length=1024)]
AttributeName: TypeAlias = str
KeySchemaAttributeName: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=KEY_ATTRIBUTE_NAME_BYTES)
]
TimeToLiveAttributeName: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=TIME_TO_LIVE_ATTRIBUTE_CHARACTERS)
]
NonKeyAttributeName: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=KEY_ATTRIBUTE_NAME_BYTES)
]
ResourceArn: TypeAlias = Annotated[str, Meta(min_length=1, max_length=_RESOURCE_ARN_CHARACTERS)]
PolicyRevisionId: TypeAlias = Annotated[str, Meta(min_length=1, max_length=255)]
TagKeyString: TypeAlias = Annotated[str, Meta(min_length=1, max_length=TAG_KEY_CHARACTERS)]
TagValueString: TypeAlias = Annotated[str, Meta(max_length=TAG_VALUE_CHARACTERS)]

ShardId: TypeAlias = Annotated[str, Meta(min_length=28, max_length=65)]
ShardIterator: TypeAlias = Annotated[str, Meta(min_length=1, max_length=2048)]
SequenceNumber: TypeAlias = Annotated[str, Meta(min_length=21, max_length=40)]
StreamArn: TypeAlias = Annotated[str, Meta(min_length=37, max_length=1024)]

PartiQLStatement: TypeAlias = Annotated[str, Meta(min_length=1, max_length=8192)]
PartiQLNextToken: TypeAlias = Annotated[str, Meta(min_length=1, max_length=32768)]

ImportNextToken: TypeAlias = Annotated[
    str, Meta(min_length=112, max_length=1024, pattern=r"^([0-9a-f]{16})+\Z")
]
BulkOperationNextToken: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=1024, pattern=r"^([0-9a-f]{16})+\Z")
]
ClientRequestToken: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=CLIENT_TOKEN_CHARACTERS)
]

# The input decoder clamps numbers that msgspec refuses to the range of Java's int or long.
PositiveInteger: TypeAlias = Annotated[int, Meta(ge=1, le=INTEGER_MOST)]
Long: TypeAlias = Annotated[int, Meta(ge=-LONG_MOST - 1, le=LONG_MOST), LongRule()]
Integer: TypeAlias = Annotated[int, Meta(ge=-INTEGER_MOST - 1, le=INTEGER_MOST)]
PositiveLong: TypeAlias = Annotated[int, Meta(ge=1, le=LONG_MOST), LongRule()]
ListExportsMaxLimit: TypeAlias = Annotated[int, Meta(ge=1, le=LIST_EXPORTS_PAGE)]
ListImportsMaxLimit: TypeAlias = Annotated[int, Meta(ge=1, le=LIST_IMPORTS[1])]
ListBulkOperationsMaxLimit: TypeAlias = Annotated[int, Meta(ge=1, le=LIST_BULK_OPERATIONS[1])]
ListTablesLimit: TypeAlias = Annotated[int, Meta(ge=1, le=LIST_TABLES_PAGE)]
BackupsInputLimit: TypeAlias = Annotated[int, Meta(ge=1, le=LIST_BACKUPS_PAGE)]
ListContributorInsightsLimit: TypeAlias = Annotated[
    int, Meta(ge=-INTEGER_MOST - 1, le=LIST_CONTRIBUTOR_INSIGHTS_PAGE)
]
RecoveryPeriodInDays: TypeAlias = Annotated[int, Meta(ge=1, le=RECOVERY_DAYS)]
ScanTotalSegments: TypeAlias = Annotated[int, Meta(ge=1, le=SCAN_TOTAL_SEGMENTS)]
# Exports and imports. The service model has no length for a token. These two patterns have `^` and
# `$` in the model, so messages show them.
ClientToken: TypeAlias = Annotated[str, Meta(pattern=r"^^[^\$]+$\Z")]
S3Bucket: TypeAlias = Annotated[
    str,
    Meta(max_length=BUCKET_NAME_CHARACTERS, pattern=r"^^[a-z0-9A-Z]+[\.\-\w]*[a-z0-9A-Z]+$\Z"),
]
S3BucketOwner: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9]{12}\Z")]
S3Prefix: TypeAlias = Annotated[str, Meta(max_length=BUCKET_PREFIX_CHARACTERS)]
S3SseAlgorithm: TypeAlias = Literal["AES256", "KMS"]
S3SseKmsKeyId: TypeAlias = Annotated[str, Meta(min_length=1, max_length=2048)]
ExportArn: TypeAlias = Annotated[str, Meta(min_length=37, max_length=1024)]
ExportFormat: TypeAlias = Literal["DYNAMODB_JSON", "ION"]
ExportType: TypeAlias = Literal["FULL_EXPORT", "INCREMENTAL_EXPORT"]
ExportViewType: TypeAlias = Literal["NEW_IMAGE", "NEW_AND_OLD_IMAGES"]
ImportArn: TypeAlias = Annotated[str, Meta(min_length=37, max_length=1024)]
InputFormat: TypeAlias = Literal["DYNAMODB_JSON", "ION", "CSV"]
InputCompressionType: TypeAlias = Literal["GZIP", "ZSTD", "NONE"]
BulkOperationArn: TypeAlias = Annotated[str, Meta(min_length=37, max_length=1024)]
BulkOperationInputFormat: TypeAlias = Literal["DYNAMODB_JSON", "ION"]
BulkOperationMaxWriteRequestUnits: TypeAlias = Annotated[
    int, Meta(ge=BULK_WRITE_UNITS, le=LONG_MOST), LongRule()
]
BulkOperationPerformanceTier: TypeAlias = Literal["STANDARD", "ACCELERATED"]
BulkOutputType: TypeAlias = Literal["ERROR", "CONDITION_CHECK_FAILURE"]
CsvDelimiter: TypeAlias = Annotated[str, Meta(min_length=1, max_length=1, pattern=r"^[,;:|\t ]\Z")]
CsvHeader: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=CSV_HEADER_CHARACTERS,
        pattern=r"^[\x20-\x21\x23-\x2B\x2D-\x7E]*\Z",
    ),
]
# The service model has patterns for these two that Python does not know.
AutoScalingPolicyName: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=256, pattern=r"^[\x20-\x7E]+\Z")
]
AutoScalingRoleArn: TypeAlias = Annotated[str, Meta(min_length=1, max_length=1600)]
# Epoch seconds.
Timestamp: TypeAlias = float
ScanSegment: TypeAlias = Annotated[int, Meta(ge=0, le=SCAN_TOTAL_SEGMENTS - 1)]

AttributeAction: TypeAlias = Literal["ADD", "PUT", "DELETE"]
BackupTypeFilter: TypeAlias = Literal["USER", "SYSTEM", "AWS_BACKUP", "ALL"]
BillingMode: TypeAlias = Literal["PROVISIONED", "PAY_PER_REQUEST"]
ApproximateCreationDateTimePrecision: TypeAlias = Literal["MILLISECOND", "MICROSECOND"]
ComparisonOperator: TypeAlias = Literal[
    "IN",
    "NULL",
    "BETWEEN",
    "LT",
    "NOT_CONTAINS",
    "EQ",
    "GT",
    "NOT_NULL",
    "NE",
    "LE",
    "BEGINS_WITH",
    "GE",
    "CONTAINS",
]
ConditionalOperator: TypeAlias = Literal["OR", "AND"]
ContributorInsightsAction: TypeAlias = Literal["ENABLE", "DISABLE"]
ContributorInsightsMode: TypeAlias = Literal["ACCESSED_AND_THROTTLED_KEYS", "THROTTLED_KEYS"]
GlobalTableSettingsReplicationMode: TypeAlias = Literal[
    "ENABLED", "DISABLED", "ENABLED_WITH_OVERRIDES"
]
KeyType: TypeAlias = Literal["HASH", "RANGE"]
MultiRegionConsistency: TypeAlias = Literal["EVENTUAL", "STRONG"]
ProjectionType: TypeAlias = Literal["ALL", "INCLUDE", "KEYS_ONLY"]
ReturnConsumedCapacity: TypeAlias = Literal["INDEXES", "TOTAL", "NONE"]
ReturnItemCollectionMetrics: TypeAlias = Literal["SIZE", "NONE"]
ReturnValue: TypeAlias = Literal["ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"]
ReturnValuesOnConditionCheckFailure: TypeAlias = Literal["ALL_OLD", "NONE"]
ScalarAttributeType: TypeAlias = Literal["B", "N", "S"]
Select: TypeAlias = Literal[
    "SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"
]
ShardFilterType: TypeAlias = Literal["CHILD_SHARDS"]
ShardIteratorType: TypeAlias = Literal[
    "TRIM_HORIZON", "LATEST", "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER", "AT_TIMESTAMP"
]
SSEType: TypeAlias = Literal["AES256", "KMS"]
StreamViewType: TypeAlias = Literal["NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY"]
TableClass: TypeAlias = Annotated[
    Literal["STANDARD", "STANDARD_INFREQUENT_ACCESS"],
    ChoiceRule(
        "Invalid table-class parameter provided. Please try again with a valid table-class value: "
        "[STANDARD, STANDARD_INFREQUENT_ACCESS]"
    ),
]

# Items and values, not checked yet.
AttributeValue: TypeAlias = dict[str, Any]
AttributeMap: TypeAlias = dict[str, AttributeValue]
Key: TypeAlias = dict[str, AttributeValue]
AttributeNameList: TypeAlias = Annotated[list[AttributeName], Meta(min_length=1)]
PreparedStatementParameters: TypeAlias = Annotated[list[AttributeValue], Meta(min_length=1)]
ExpressionAttributeNames: TypeAlias = dict[str, AttributeName]
ExpressionAttributeValues: TypeAlias = dict[str, AttributeValue]
