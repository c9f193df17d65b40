"""The tables for the cells, and a valid request for each site; rules change these requests."""

from __future__ import annotations

from typing import Any, Final

from tests.guards.sites import Request, Site
from tests.support.tables.tables import Call, definition, global_index, local_index, unique_name

TABLE: Final = unique_name("guards")
TABLE_ARN: Final = f"arn:aws:dynamodb:us-east-1:000000000000:table/{TABLE}"
EMPTY_TABLE: Final = unique_name("guards-empty")
LOCAL_INDEX: Final = "by-l"
GLOBAL_INDEX: Final = "by-g"
# An index with two partition attributes.
COMPOSITE_INDEX: Final = "by-g-and-x"
KEY: Final[dict[str, Any]] = {"pk": {"S": "a"}, "sk": {"S": "b"}}
# The key of an item that only invalid requests would write.
HELD: Final[dict[str, Any]] = {"pk": {"S": "held"}, "sk": {"S": "b"}}
WHERE: Final = "WHERE pk = 'a' AND sk = 'b'"
WHERE_HELD: Final = "WHERE pk = 'held' AND sk = 'b'"
# The item counts as the first level, so this value has the maximum depth.
DEEPEST_LEVELS: Final = 31


def nested(levels: int) -> dict[str, Any]:
    """A list nested this many levels deep."""
    value: dict[str, Any] = {"S": "x"}
    for _ in range(levels):
        value = {"L": [value]}
    return value


def prepare(call: Call) -> None:
    """Create the tables and the item ``HELD``."""
    call(
        "CreateTable",
        definition(
            "pk:S",
            "sk:S",
            "l:S",
            "g:S",
            "x:S",
            name=TABLE,
            indexes=(local_index(LOCAL_INDEX, "pk", "l"),),
            GlobalSecondaryIndexes=[
                global_index(GLOBAL_INDEX, "g", projection="KEYS_ONLY"),
                global_index(COMPOSITE_INDEX, "g:HASH", "x:HASH"),
            ],
        ),
    )
    call("CreateTable", definition("pk:S", "sk:S", name=EMPTY_TABLE))
    item = HELD | {
        "deep": nested(DEEPEST_LEVELS),
        "holder": {"M": {}},
        "big": {"S": "x" * 300_000},
        "v": {"S": "x"},
    }
    call("PutItem", {"TableName": TABLE, "Item": item})


_MEMBERS: Final[dict[str, Any]] = {
    "TableName": TABLE,
    "Item": KEY,
    "Key": KEY,
    "Keys": [KEY],
    "UpdateExpression": "REMOVE nothing",
    "ConditionExpression": "attribute_not_exists(nothing)",
    "Statement": f'SELECT * FROM "{TABLE}" {WHERE}',
    "TargetTableName": unique_name("restored"),
    "BackupName": "a-backup",
    "BackupArn": f"arn:aws:dynamodb:us-east-1:000000000000:table/{TABLE}/backup/01-abcdefab",
    "ResourceArn": f"arn:aws:dynamodb:us-east-1:000000000000:table/{TABLE}",
    "StreamArn": "arn:aws:kinesis:us-east-1:000000000000:stream/a-stream",
    "InputS3Configuration": {"S3Bucket": "a-bucket", "InputFormat": "DYNAMODB_JSON"},
    "OutputS3Configuration": {"S3Bucket": "a-bucket", "OutputType": ["ERROR"]},
    "Tags": [{"Key": "a", "Value": "b"}],
    "TagKeys": ["a"],
    "TimeToLiveSpecification": {"AttributeName": "expires", "Enabled": True},
    "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
    "ContributorInsightsAction": "ENABLE",
}
# Members that an operation needs, although the service model does not mark them as required.
_ASIDE: Final[dict[str, Request]] = {
    "CreateTable": definition("pk:S", name=TABLE),
    "ImportTable.TableCreationParameters": definition("pk:S", name=TABLE),
    "ExportTableToPointInTime": {
        "TableArn": TABLE_ARN,
        "S3Bucket": "a-bucket",
    },
    "UpdateTable": {"BillingMode": "PAY_PER_REQUEST"},
    "UpdateKinesisStreamingDestination": {
        "UpdateKinesisStreamingConfiguration": {
            "ApproximateCreationDateTimePrecision": "MILLISECOND"
        }
    },
}
_QUERY: Final[Request] = {
    "KeyConditionExpression": "pk = :pk",
    "ExpressionAttributeValues": {":pk": {"S": "a"}},
}


def base(site: Site) -> Request:
    """A structure for a site with its required members and, where it has them, expressions."""
    part = _required(site)
    return part | _QUERY if site.operation == "Query" else part


def _required(site: Site) -> Request:
    required = {name: _MEMBERS[name] for name in site.required & _MEMBERS.keys()}
    return _ASIDE.get(site.name, {}) | required


def legacy_base(site: Site) -> Request:
    """A structure for a site with its required members, without optional expressions."""
    part = _required(site)
    if site.operation == "Query":
        part["KeyConditions"] = {"pk": equal({"S": "a"})}
    return part


def equal(value: dict[str, Any]) -> Request:
    """A legacy condition for equality."""
    return {"ComparisonOperator": "EQ", "AttributeValueList": [value]}


def expressing(
    part: Request,
    member: str,
    text: str,
    names: dict[str, str] | None = None,
    values: dict[str, Any] | None = None,
) -> Request:
    """A copy of a structure with another expression and its placeholders."""
    made = {**part, member: text}
    for parameter, placeholders in (
        ("ExpressionAttributeNames", names),
        ("ExpressionAttributeValues", values),
    ):
        if placeholders:
            made[parameter] = {**part.get(parameter, {}), **placeholders}
    return made
