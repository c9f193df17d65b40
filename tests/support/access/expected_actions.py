"""A request of each operation, and the actions that AWS's documentation says it needs.

The table ``Music`` has the key ``Artist``, ``Song`` and the index ``ByGenre``. Resources are
written without the part that all have in common.
"""

from __future__ import annotations

from typing import Any, NamedTuple

PREFIX = "arn:aws:dynamodb:us-east-1:000000000000:"
TABLE = "table/Music"
ARN = PREFIX + TABLE
INDEX = f"{TABLE}/index/ByGenre"
BULK_OPERATION = f"{TABLE}/bulk-operation/01489602797149-73d8d5bc"
BACKUP = f"{TABLE}/backup/01489602797149-73d8d5bc"
STREAM = f"{TABLE}/stream/2024-01-01T00:00:00.000"
KEY = {"Artist": {"S": "Björk"}, "Song": {"S": "Hyperballad"}}
OTHER_KEY = {**KEY, "Song": {"S": "Jóga"}}
ITEM = {**KEY, "Genre": {"S": "pop"}}
WHERE = "\"Artist\" = 'Björk' AND \"Song\" = 'Hyperballad'"
RESTORING = ("PutItem", "UpdateItem", "DeleteItem", "GetItem", "Query", "Scan", "BatchWriteItem")


class Expected(NamedTuple):
    """A request, and the actions with their resources; those of other services are complete."""

    request: dict[str, Any]
    actions: list[tuple[str, str]]


def _of_table(action: str, **more: Any) -> Expected:
    return Expected({"TableName": "Music", **more}, [(action, TABLE)])


def _of_everything(action: str) -> Expected:
    return Expected({}, [(action, "*")])


def _of_global_table(action: str, **more: Any) -> Expected:
    return Expected({"GlobalTableName": "Music", **more}, [(action, "global-table/Music")])


def _destination(action: str) -> Expected:
    arn = "arn:aws:kinesis:us-east-1:000000000000:stream/topic"
    return _of_table(action, StreamArn=arn)


def _restored(action: str, source: str) -> list[tuple[str, str]]:
    return [
        (action, source),
        (action, "table/Restored"),
        *((one, "table/Restored") for one in RESTORING),
    ]


EXPECTED: dict[str, Expected] = {
    "BatchExecuteStatement": Expected(
        {
            "Statements": [
                {"Statement": f"UPDATE \"Music\" SET Genre = 'pop' WHERE {WHERE}"},
                {"Statement": "INSERT INTO \"Music\" VALUE {'Artist': 'a', 'Song': 'b'}"},
            ]
        },
        [("PartiQLUpdate", TABLE), ("PartiQLInsert", TABLE)],
    ),
    "BatchGetItem": Expected(
        {"RequestItems": {"Music": {"Keys": [KEY]}, "Songs": {"Keys": [KEY]}}},
        [("BatchGetItem", TABLE), ("BatchGetItem", "table/Songs")],
    ),
    "BatchWriteItem": Expected(
        {
            "RequestItems": {
                "Music": [{"PutRequest": {"Item": ITEM}}],
                "Songs": [{"DeleteRequest": {"Key": KEY}}],
            }
        },
        [("BatchWriteItem", TABLE), ("BatchWriteItem", "table/Songs")],
    ),
    "CancelBulkOperation": Expected(
        {"BulkOperationArn": PREFIX + BULK_OPERATION}, [("CancelBulkOperation", BULK_OPERATION)]
    ),
    "CreateBackup": _of_table("CreateBackup", BackupName="nightly"),
    "CreateGlobalTable": _of_global_table("CreateGlobalTable", ReplicationGroup=[]),
    "CreateTable": Expected(
        {
            "TableName": "New",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
            "Tags": [{"Key": "team", "Value": "blue"}],
        },
        [("CreateTable", "table/New"), ("TagResource", "table/New")],
    ),
    "DeleteBackup": Expected({"BackupArn": PREFIX + BACKUP}, [("DeleteBackup", BACKUP)]),
    "DeleteItem": _of_table("DeleteItem", Key=KEY),
    "DeleteResourcePolicy": Expected({"ResourceArn": ARN}, [("DeleteResourcePolicy", TABLE)]),
    "DeleteTable": _of_table("DeleteTable"),
    "DescribeBackup": Expected({"BackupArn": PREFIX + BACKUP}, [("DescribeBackup", BACKUP)]),
    "DescribeBulkOperation": Expected(
        {"BulkOperationArn": PREFIX + BULK_OPERATION}, [("DescribeBulkOperation", BULK_OPERATION)]
    ),
    "DescribeContinuousBackups": _of_table("DescribeContinuousBackups"),
    "DescribeContributorInsights": Expected(
        {"TableName": "Music", "IndexName": "ByGenre"}, [("DescribeContributorInsights", INDEX)]
    ),
    "DescribeEndpoints": _of_everything("DescribeEndpoints"),
    "DescribeExport": Expected(
        {"ExportArn": f"{ARN}/export/01489602797149-73d8d5bc"},
        [("DescribeExport", f"{TABLE}/export/01489602797149-73d8d5bc")],
    ),
    "DescribeGlobalTable": _of_global_table("DescribeGlobalTable"),
    "DescribeGlobalTableSettings": _of_global_table("DescribeGlobalTableSettings"),
    "DescribeImport": Expected(
        {"ImportArn": f"{ARN}/import/01489602797149-73d8d5bc"},
        [("DescribeImport", f"{TABLE}/import/01489602797149-73d8d5bc")],
    ),
    "DescribeKinesisStreamingDestination": _of_table("DescribeKinesisStreamingDestination"),
    "DescribeLimits": _of_everything("DescribeLimits"),
    "DescribeStream": Expected({"StreamArn": PREFIX + STREAM}, [("DescribeStream", STREAM)]),
    "DescribeTable": _of_table("DescribeTable"),
    "DescribeTableReplicaAutoScaling": _of_table("DescribeTableReplicaAutoScaling"),
    "DescribeTimeToLive": _of_table("DescribeTimeToLive"),
    "DisableKinesisStreamingDestination": _destination("DisableKinesisStreamingDestination"),
    "EnableKinesisStreamingDestination": _destination("EnableKinesisStreamingDestination"),
    "ExecuteStatement": Expected(
        {"Statement": 'SELECT * FROM "Music"."ByGenre" WHERE "Genre" = \'pop\''},
        [("PartiQLSelect", INDEX)],
    ),
    "ExecuteTransaction": Expected(
        {
            "TransactStatements": [
                {"Statement": f'DELETE FROM "Music" WHERE {WHERE}'},
                {
                    "Statement": 'EXISTS(SELECT * FROM "Music" WHERE "Artist" = \'a\' AND "Song" '
                    "= 'b' AND \"Genre\" = 'pop')"
                },
            ]
        },
        [("PartiQLDelete", TABLE), ("PartiQLSelect", TABLE)],
    ),
    "ExportTableToPointInTime": Expected(
        {"TableArn": ARN, "S3Bucket": "bucket"}, [("ExportTableToPointInTime", TABLE)]
    ),
    "GetItem": _of_table("GetItem", Key=KEY),
    "GetRecords": Expected({"ShardIterator": f"{PREFIX}{STREAM}|1|x"}, [("GetRecords", STREAM)]),
    "GetResourcePolicy": Expected({"ResourceArn": ARN}, [("GetResourcePolicy", TABLE)]),
    "GetShardIterator": Expected(
        {
            "StreamArn": PREFIX + STREAM,
            "ShardId": "shardId-00000000000000000000-00000000",
            "ShardIteratorType": "LATEST",
        },
        [("GetShardIterator", STREAM)],
    ),
    "ImportTable": Expected(
        {
            "S3BucketSource": {"S3Bucket": "bucket"},
            "InputFormat": "DYNAMODB_JSON",
            "TableCreationParameters": {
                "TableName": "New",
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        },
        [("ImportTable", "table/New"), ("s3:ListBucket", "arn:aws:s3:::bucket")],
    ),
    "ListBackups": _of_everything("ListBackups"),
    "ListBulkOperations": _of_everything("ListBulkOperations"),
    "ListContributorInsights": _of_everything("ListContributorInsights"),
    "ListExports": _of_everything("ListExports"),
    "ListGlobalTables": _of_everything("ListGlobalTables"),
    "ListImports": _of_everything("ListImports"),
    "ListStreams": _of_everything("ListStreams"),
    "ListTables": Expected({}, [("ListTables", "table/*")]),
    "ListTagsOfResource": Expected({"ResourceArn": ARN}, [("ListTagsOfResource", TABLE)]),
    "PutItem": _of_table("PutItem", Item=ITEM),
    "PutResourcePolicy": Expected(
        {"ResourceArn": ARN, "Policy": "{}"}, [("PutResourcePolicy", TABLE)]
    ),
    "Query": Expected(
        {
            "TableName": "Music",
            "IndexName": "ByGenre",
            "KeyConditionExpression": "Genre = :g",
            "ExpressionAttributeValues": {":g": {"S": "pop"}},
        },
        [("Query", INDEX)],
    ),
    "RestoreTableFromBackup": Expected(
        {"TargetTableName": "Restored", "BackupArn": PREFIX + BACKUP},
        _restored("RestoreTableFromBackup", BACKUP),
    ),
    "RestoreTableToPointInTime": Expected(
        {
            "TargetTableName": "Restored",
            "SourceTableName": "Music",
            "SourceTableArn": None,
            "UseLatestRestorableTime": True,
        },
        _restored("RestoreTableToPointInTime", TABLE),
    ),
    "Scan": Expected({"TableName": "Music", "IndexName": "ByGenre"}, [("Scan", INDEX)]),
    "StartBulkPutItems": Expected(
        {
            "TableName": "Music",
            "InputS3Configuration": {"S3Bucket": "bucket", "InputFormat": "DYNAMODB_JSON"},
            "OutputS3Configuration": {"S3Bucket": "bucket", "OutputType": ["ERROR"]},
        },
        [("StartBulkPutItems", TABLE), ("s3:ListBucket", "arn:aws:s3:::bucket")],
    ),
    "TagResource": Expected(
        {"ResourceArn": ARN, "Tags": [{"Key": "team", "Value": "blue"}]}, [("TagResource", TABLE)]
    ),
    "TransactGetItems": Expected(
        {
            "TransactItems": [
                {"Get": {"TableName": "Music", "Key": KEY}},
                {"Get": {"TableName": "Songs", "Key": KEY}},
            ]
        },
        [("GetItem", TABLE), ("GetItem", "table/Songs")],
    ),
    "TransactWriteItems": Expected(
        {
            "TransactItems": [
                {"Put": {"TableName": "Music", "Item": ITEM}},
                {
                    "Update": {
                        "TableName": "Songs",
                        "Key": KEY,
                        "UpdateExpression": "SET x = :x",
                        "ExpressionAttributeValues": {":x": {"N": "1"}},
                    }
                },
                {"Delete": {"TableName": "Songs", "Key": OTHER_KEY}},
                {
                    "ConditionCheck": {
                        "TableName": "Music",
                        "Key": OTHER_KEY,
                        "ConditionExpression": "attribute_not_exists(Artist)",
                    }
                },
            ]
        },
        [
            ("PutItem", TABLE),
            ("UpdateItem", "table/Songs"),
            ("DeleteItem", "table/Songs"),
            ("ConditionCheckItem", TABLE),
        ],
    ),
    "UntagResource": Expected(
        {"ResourceArn": ARN, "TagKeys": ["team"]}, [("UntagResource", TABLE)]
    ),
    "UpdateContinuousBackups": _of_table(
        "UpdateContinuousBackups",
        PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": False},
    ),
    "UpdateContributorInsights": Expected(
        {
            "TableName": "Music",
            "IndexName": "ByGenre",
            "ContributorInsightsAction": "DISABLE",
        },
        [("UpdateContributorInsights", INDEX)],
    ),
    "UpdateGlobalTable": _of_global_table("UpdateGlobalTable", ReplicaUpdates=[]),
    "UpdateGlobalTableSettings": _of_global_table("UpdateGlobalTableSettings"),
    "UpdateItem": _of_table("UpdateItem", Key=KEY),
    "UpdateKinesisStreamingDestination": _destination("UpdateKinesisStreamingDestination"),
    "UpdateTable": _of_table("UpdateTable", DeletionProtectionEnabled=False),
    "UpdateTableReplicaAutoScaling": _of_table("UpdateTableReplicaAutoScaling"),
    "UpdateTimeToLive": _of_table(
        "UpdateTimeToLive", TimeToLiveSpecification={"AttributeName": "until", "Enabled": True}
    ),
}
