"""The ResourceArn of the tag operations: a table's ARN, never its bare name."""

from __future__ import annotations

import re
from typing import Final

from dynactor.model.errors import ResourceNotFoundException, ValidationException, invalid_value

_TABLE_ARN: Final = re.compile(r"arn:[^:]+:dynamodb:[^:]+:[0-9]+:table/([a-zA-Z0-9_.-]{3,255})\Z")


def tagged_table_name(resource_arn: str) -> str:
    """The name of the tagged table; raises ``ValidationException`` without a table's ARN."""
    match = _TABLE_ARN.match(resource_arn)
    if match is None:
        raise invalid(resource_arn)
    return match[1]


def invalid(arn: str, member: str = "TableArn") -> ValidationException:
    """The error of a text that is no ARN of the own account (dynalite, measured on AWS).

    The prefix is that of October 2026. The name of a backup's ARN is inferred.
    """
    label = member if member == "BackupArn" else "TableArn"
    return invalid_value(f"Invalid {label}: Invalid ResourceArn provided as input {arn}")


def no_such_resource(resource_arn: str) -> ResourceNotFoundException:
    """The error of TagResource and ListTagsOfResource; AWS misspells ``ResourcArn``."""
    return ResourceNotFoundException(
        f"Requested resource not found: ResourcArn: {resource_arn} not found"
    )
