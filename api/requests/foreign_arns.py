"""Refuses ARNs of other accounts, and of other regions if regions are separate, as AWS does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from dynactor.actors.catalog.database import Database
from dynactor.api.requests.resource_arn import invalid, no_such_resource
from dynactor.api.requests.table_arn import table_name
from dynactor.model.errors import (
    ActionDeniedException,
    BackupNotFoundException,
    DynamoDBError,
    ExportNotFoundException,
    ImportNotFoundException,
    ResourceNotFoundException,
    TableNotFoundException,
)

_ACCOUNT: Final = 4
_ARN: Final = re.compile(r"(arn:[^:]*:(?:dynamodb|kinesis):([^:]*):[^|]*)")
_NO_TABLE: Final = "Requested resource not found"
# Operations with another error for a missing table.
_OF_BACKUPS: Final = frozenset(
    {
        "CreateBackup",
        "DescribeContinuousBackups",
        "ExportTableToPointInTime",
        "ListBackups",
        "RestoreTableFromBackup",
        "RestoreTableToPointInTime",
        "UpdateContinuousBackups",
    }
)
_OF_POLICIES: Final = frozenset({"DeleteResourcePolicy", "GetResourcePolicy", "PutResourcePolicy"})
_STREAM_MEMBERS: Final = frozenset({"StreamArn", "ExclusiveStartStreamArn", "ShardIterator"})
_BACKUP_MEMBERS: Final = frozenset({"BackupArn", "ExclusiveStartBackupArn"})
_TABLE_MEMBERS: Final = ("TableName", "TableArn", "SourceTableArn", "TargetTableName")
_EXPORT_MEMBER: Final = "ExportArn"
_IMPORT_MEMBER: Final = "ImportArn"
_BULK_MEMBER: Final = "BulkOperationArn"
_MEMBERS: Final = (
    *_TABLE_MEMBERS,
    "ResourceArn",
    _EXPORT_MEMBER,
    _IMPORT_MEMBER,
    _BULK_MEMBER,
    *sorted(_STREAM_MEMBERS | _BACKUP_MEMBERS),
)


def refuse_foreign_arns(operation: str, request: Struct, region: str) -> None:
    """Refuse a request with an ARN of another region. Statements are not searched.

    Raises:
        ResourceNotFoundException, TableNotFoundException, BackupNotFoundException,
            ExportNotFoundException, ImportNotFoundException, ValidationException: the request has
            such an ARN.
    """
    for member, text in _named(request):
        arn = _ARN.search(text) if ":" in text else None
        if arn is not None and arn[2] not in ("", region):
            raise _not_found(operation, member, arn[1])


def check_account(database: Database, arn: str) -> None:
    """Refuse an ARN of another account; a text without an account passes.

    Raises:
        ActionDeniedException: the ARN has another account.
    """
    fields = arn.split(":")
    if len(fields) > _ACCOUNT and fields[_ACCOUNT] != database.settings.account_id:
        raise ActionDeniedException("Access is denied")


def named_table(database: Database, name: str) -> str:
    """The table that a statement names, by its name or its ARN.

    Raises:
        ResourceNotFoundException: the ARN has another region, and regions are separate.
        ValidationException: the text is neither a table's name nor its ARN.
    """
    settings = database.settings
    if settings.namespace is not None and ":" in name:
        arn = _ARN.match(name)
        if arn is not None and arn[2] not in ("", settings.region):
            raise ResourceNotFoundException(_NO_TABLE)
    return table_name(name)


def _named(request: Struct) -> Iterator[tuple[str, str]]:
    for member in _MEMBERS:
        text = getattr(request, member, None)
        if text is not None:
            yield member, text
    for name in getattr(request, "RequestItems", ()):
        yield "TableName", name
    for one in getattr(request, "TransactItems", ()):
        for member in one.__struct_fields__:
            action = getattr(one, member)
            if action is not None:
                yield "TableName", action.TableName


def _not_found(operation: str, member: str, arn: str) -> DynamoDBError:
    if member in _STREAM_MEMBERS:
        return ResourceNotFoundException(f"Requested resource not found: Stream: {arn} not found")
    if member in _BACKUP_MEMBERS:
        return BackupNotFoundException(f"Backup not found: {arn}")
    if member == _EXPORT_MEMBER:
        return ExportNotFoundException(f"Export not found: {arn}")
    if member == _IMPORT_MEMBER:
        return ImportNotFoundException(f"Import not found: {arn}")
    if member == _BULK_MEMBER:
        return ResourceNotFoundException(
            f"Requested resource not found: Bulk operation: {arn} not found"
        )
    if member == "ResourceArn":
        return invalid(arn) if operation in _OF_POLICIES else no_such_resource(arn)
    if operation in _OF_BACKUPS:
        return TableNotFoundException(f"Table not found: {arn}")
    return ResourceNotFoundException(_NO_TABLE)
