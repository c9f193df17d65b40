"""The rule of each operation: the actions that the operation asks for.

Operations that are not implemented have rules too, so that no operation is added without one.

Source: Service Authorization Reference, "Actions, resources, and condition keys for Amazon
DynamoDB"; Developer Guide, "Using IAM with DynamoDB backup and restore".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from dynactor.api.access import bucket_asks, data_asks
from dynactor.api.access.ask import Ask, Asking
from dynactor.api.access.facts import ActionFacts, TagFacts
from dynactor.api.requests.table_arn import table_name
from dynactor.model.errors import ValidationException

AskRule: TypeAlias = Callable[[Asking], Iterable[Ask]]

_ARN: Final = re.compile(r"arn:[^:]*:dynamodb:[^:]*:[^:]*:(table/([^/|]+)[^|]*)")
# A restore writes the new table, and AWS asks for all of these actions.
_RESTORING: Final = (
    "PutItem",
    "UpdateItem",
    "DeleteItem",
    "GetItem",
    "Query",
    "Scan",
    "BatchWriteItem",
)


def _of_table(asking: Asking) -> Iterator[Ask]:
    yield _on_table(asking, asking.request.TableName)


def _on_table(asking: Asking, given_name: str) -> Ask:
    name = table_name(given_name)
    facts = ActionFacts(asking.facts, asking.table_in_any_state(name))
    return Ask(asking.action, asking.table_arn(name), facts)


def _of_table_or_index(asking: Asking) -> Iterator[Ask]:
    ask = _on_table(asking, asking.request.TableName)
    index = asking.request.IndexName
    yield ask if index is None else ask._replace(resource=f"{ask.resource}/index/{index}")


def _of_new_table(asking: Asking) -> Iterator[Ask]:
    """CreateTable, with the actions for its tags and its policy."""
    request = asking.request
    tags = _tags(request)
    arn = asking.table_arn(table_name(request.TableName))
    facts = TagFacts(asking.facts, None, tags)
    yield Ask(asking.action, arn, facts)
    if tags:
        yield Ask("dynamodb:TagResource", arn, facts)
    if getattr(request, "ResourcePolicy", None) is not None:
        yield Ask("dynamodb:PutResourcePolicy", arn, facts)


def _of_imported_table(asking: Asking) -> Iterator[Ask]:
    yield _on_table(asking, asking.request.TableCreationParameters.TableName)
    yield from bucket_asks.list_source(asking)


def _of_bulk_put(asking: Asking) -> Iterator[Ask]:
    yield from _of_table(asking)
    yield from bucket_asks.list_source(asking)


def _of_restored_table(asking: Asking) -> Iterator[Ask]:
    """RestoreTableFromBackup: the backup, and the new table."""
    yield from _member("BackupArn")(asking)
    yield from _of_target(asking)


def _of_table_at_a_time(asking: Asking) -> Iterator[Ask]:
    """RestoreTableToPointInTime: the table, and the new table."""
    request = asking.request
    if request.SourceTableName is not None:
        yield _on_table(asking, request.SourceTableName)
    if request.SourceTableArn is not None:
        yield from _member("SourceTableArn")(asking)
    yield from _of_target(asking)


def _of_target(asking: Asking) -> Iterator[Ask]:
    target = _on_table(asking, asking.request.TargetTableName)
    yield target
    for name in _RESTORING:
        yield target._replace(action=f"dynamodb:{name}")


def _of_tags(asking: Asking) -> Iterator[Ask]:
    """TagResource and UntagResource."""
    for ask in _member("ResourceArn")(asking):
        keys = getattr(asking.request, "TagKeys", None) or ()
        facts = TagFacts(asking.facts, ask.facts.table, _tags(asking.request), keys)
        yield ask._replace(facts=facts)


def _tags(request: object) -> Mapping[str, str]:
    return {tag.Key: tag.Value for tag in getattr(request, "Tags", None) or ()}


def _member(name: str) -> AskRule:
    """The rule of operations on the resource whose ARN a member has.

    The resource has the account and the region of the database. The region in the request is
    ignored, or its operation refuses another region.
    """

    def rule(asking: Asking) -> Iterator[Ask]:
        given: str = getattr(asking.request, name)
        found = _ARN.match(given)
        if found is not None:
            facts = ActionFacts(asking.facts, asking.table_in_any_state(found[2]))
            yield Ask(asking.action, asking.arn(found[1]), facts)
            return
        try:
            # A table's name instead of an ARN.
            yield _on_table(asking, given)
        except ValidationException:
            yield Ask(asking.action, given, ActionFacts(asking.facts))

    return rule


def _of_everything(resource: str = "*") -> AskRule:
    """The rule of operations without a resource."""

    def rule(asking: Asking) -> Iterator[Ask]:
        found = resource if resource == "*" else asking.arn(resource)
        yield Ask(asking.action, found, ActionFacts(asking.facts))

    return rule


def _of_global_table(asking: Asking) -> Iterator[Ask]:
    settings = asking.database.settings
    name = asking.request.GlobalTableName
    arn = f"arn:aws:dynamodb::{settings.account_id}:global-table/{name}"
    yield Ask(asking.action, arn, ActionFacts(asking.facts))


RULES: Final[dict[str, AskRule]] = {
    "BatchExecuteStatement": data_asks.execute_statements,
    "BatchGetItem": data_asks.batch_get_item,
    "BatchWriteItem": data_asks.batch_write_item,
    "CancelBulkOperation": _member("BulkOperationArn"),
    "CreateBackup": _of_table,
    "CreateGlobalTable": _of_global_table,
    "CreateTable": _of_new_table,
    "DeleteBackup": _member("BackupArn"),
    "DeleteItem": data_asks.write_item,
    "DeleteResourcePolicy": _member("ResourceArn"),
    "DeleteTable": _of_table,
    "DescribeBackup": _member("BackupArn"),
    "DescribeBulkOperation": _member("BulkOperationArn"),
    "DescribeContinuousBackups": _of_table,
    "DescribeContributorInsights": _of_table_or_index,
    "DescribeEndpoints": _of_everything(),
    "DescribeExport": _member("ExportArn"),
    "DescribeGlobalTable": _of_global_table,
    "DescribeGlobalTableSettings": _of_global_table,
    "DescribeImport": _member("ImportArn"),
    "DescribeKinesisStreamingDestination": _of_table,
    "DescribeLimits": _of_everything(),
    "DescribeStream": _member("StreamArn"),
    "DescribeTable": _of_table,
    "DescribeTableReplicaAutoScaling": _of_table,
    "DescribeTimeToLive": _of_table,
    "DisableKinesisStreamingDestination": _of_table,
    "EnableKinesisStreamingDestination": _of_table,
    "ExecuteStatement": data_asks.execute_statements,
    "ExecuteTransaction": data_asks.execute_statements,
    "ExportTableToPointInTime": _member("TableArn"),
    "GetItem": data_asks.get_item,
    "GetRecords": _member("ShardIterator"),
    "GetResourcePolicy": _member("ResourceArn"),
    "GetShardIterator": _member("StreamArn"),
    "ImportTable": _of_imported_table,
    "ListBackups": _of_everything(),
    "ListBulkOperations": _of_everything(),
    "ListContributorInsights": _of_everything(),
    "ListExports": _of_everything(),
    "ListGlobalTables": _of_everything(),
    "ListImports": _of_everything(),
    "ListStreams": _of_everything(),
    "ListTables": _of_everything("table/*"),
    "ListTagsOfResource": _member("ResourceArn"),
    "PutItem": data_asks.write_item,
    "PutResourcePolicy": _member("ResourceArn"),
    "Query": data_asks.query,
    "RestoreTableFromBackup": _of_restored_table,
    "RestoreTableToPointInTime": _of_table_at_a_time,
    "Scan": data_asks.scan,
    "SearchVectors": _of_table_or_index,
    "StartBulkPutItems": _of_bulk_put,
    "TagResource": _of_tags,
    "TransactGetItems": data_asks.transact_get_items,
    "TransactWriteItems": data_asks.transact_write_items,
    "UntagResource": _of_tags,
    "UpdateContinuousBackups": _of_table,
    "UpdateContributorInsights": _of_table_or_index,
    "UpdateGlobalTable": _of_global_table,
    "UpdateGlobalTableSettings": _of_global_table,
    "UpdateItem": data_asks.write_item,
    "UpdateKinesisStreamingDestination": _of_table,
    "UpdateTable": _of_table,
    "UpdateTableReplicaAutoScaling": _of_table,
    "UpdateTimeToLive": _of_table,
}
