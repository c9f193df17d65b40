"""Refuses ARNs of other accounts and of unknown places; of other regions if these are separate."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

from msgspec import Struct

from dynactor.actors.database.database import Database
from dynactor.api.requests.hints import shape_members
from dynactor.api.requests.named_tables import action_tables
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
_PLACE: Final = re.compile(r"arn:([^:]*):dynamodb:([^:]*):([^:]*):")
# The partitions of AWS, with the forms of their regions (botocore's endpoints.json).
_REGIONS: Final = {
    "aws": re.compile(r"(us|eu|ap|sa|ca|me|af|il|mx)-\w+-\d+"),
    "aws-cn": re.compile(r"cn-\w+-\d+"),
    "aws-eusc": re.compile(r"eusc-(de)-\w+-\d+"),
    "aws-iso": re.compile(r"us-iso-\w+-\d+"),
    "aws-iso-b": re.compile(r"us-isob-\w+-\d+"),
    "aws-iso-e": re.compile(r"eu-isoe-\w+-\d+"),
    "aws-iso-f": re.compile(r"us-isof-\w+-\d+"),
    "aws-us-gov": re.compile(r"us-gov-\w+-\d+"),
}
_NO_TABLE: Final = "Requested resource not found"
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


def _no_table(_arn: str) -> DynamoDBError:
    return ResourceNotFoundException(_NO_TABLE)


def _table_not_found(arn: str) -> DynamoDBError:
    return TableNotFoundException(f"Table not found: {arn}")


class ArnErrors(Struct, frozen=True):
    """The errors of an operation for ARNs of other regions and accounts."""

    missing_table: Callable[[str], DynamoDBError] = _no_table
    missing_resource: Callable[[str], DynamoDBError] = no_such_resource
    # Another account's ARN is an invalid parameter. In other operations, access to it is denied.
    foreign_account_is_invalid: bool = False


BACKUP_ARN_ERRORS: Final = ArnErrors(_table_not_found)
RESTORE_ARN_ERRORS: Final = ArnErrors(_table_not_found, foreign_account_is_invalid=True)
POLICY_ARN_ERRORS: Final = ArnErrors(missing_resource=invalid, foreign_account_is_invalid=True)


def refuse_foreign_arns(errors: ArnErrors, request: Struct, region: str) -> None:
    """Refuse a request with an ARN of another region. Statements are not searched.

    Raises:
        ResourceNotFoundException, TableNotFoundException, BackupNotFoundException,
            ExportNotFoundException, ImportNotFoundException, ValidationException: the request has
            such an ARN.
    """
    for member, text in _named(request):
        arn = _ARN.search(text) if ":" in text else None
        if arn is not None and arn[2] not in ("", region):
            raise _not_found(errors, member, arn[1])


@lru_cache(maxsize=256)
def owned_members(shape: type[Struct]) -> tuple[str, ...]:
    """The members of an operation on tables or backups that name something of the own account.

    Operations on items accept the ARN of any account, as a client with access to it would.
    """
    return tuple(
        member.name
        for member in shape_members(shape)
        if member.name in ("BackupArn", "ResourceArn")
        or (member.hint.table_name is not None and member.hint.table_name.missing_first)
    )


def refuse_other_accounts(errors: ArnErrors, request: Struct, database: Database) -> None:
    """Refuse a request with an ARN of another account, or of a place that does not exist.

    Raises:
        ActionDeniedException, ValidationException: the ARN has another account.
        ValidationException: AWS has no such partition, or the partition no such region.
        ResourceNotFoundException, TableNotFoundException, BackupNotFoundException: the ARN has
            capital letters at its start.
    """
    settings = database.settings
    for member in owned_members(type(request)):
        arn = getattr(request, member)
        if arn is None or ":" not in arn:
            continue
        found = _PLACE.match(arn)
        if found is None:
            if not arn.startswith("arn:") and arn.lower().startswith("arn:"):
                raise _not_found(errors, member, arn)
            continue
        partition, region, account_id = found.groups()
        partition_regions = _REGIONS.get(partition)
        if partition_regions is None or not (
            region in ("", settings.region) or partition_regions.fullmatch(region)
        ):
            raise invalid(arn, member)
        if errors.foreign_account_is_invalid and account_id != settings.account_id:
            raise invalid(arn, member)
        check_account(database, arn)


def check_account(database: Database, arn: str) -> None:
    """Refuse an ARN of another account, if it has one; raises ``ActionDeniedException``."""
    fields = arn.split(":")
    if len(fields) > _ACCOUNT and fields[_ACCOUNT] != database.settings.account_id:
        raise ActionDeniedException("Access is denied")


def named_table(database: Database, name: str) -> str:
    """The table that a statement names, by its name or its ARN.

    Raises ``ResourceNotFoundException`` if the ARN has another, separate region, or
    ``ValidationException`` if it is neither.
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
    for item in getattr(request, "TransactItems", ()):
        for name in action_tables(item):
            yield "TableName", name


def _not_found(errors: ArnErrors, member: str, arn: str) -> DynamoDBError:
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
        return errors.missing_resource(arn)
    return errors.missing_table(arn)
