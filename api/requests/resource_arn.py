"""The ResourceArn of the tag operations: a table's ARN, never its bare name."""

from __future__ import annotations

import re
from typing import Final

from dynactor.api.requests.table_arn import NO_ARN
from dynactor.model.errors import ResourceNotFoundException, ValidationException

_TABLE_ARN: Final = re.compile(r"arn:[^:]+:dynamodb:[^:]+:[0-9]+:table/([a-zA-Z0-9_.-]{3,255})\Z")


def tagged_table_name(resource_arn: str) -> str:
    """The name of the tagged table.

    Raises:
        ValidationException: the text is not a table's ARN (message: dynalite, measured on AWS).
    """
    if not resource_arn.startswith("arn:"):
        raise ValidationException(NO_ARN)
    match = _TABLE_ARN.match(resource_arn)
    if match is None:
        raise invalid(resource_arn)
    return match[1]


def invalid(resource_arn: str) -> ValidationException:
    """The error of a text that is not the ARN of a table."""
    return ValidationException(
        f"Invalid TableArn: Invalid ResourceArn provided as input {resource_arn}"
    )


def no_such_resource(resource_arn: str) -> ResourceNotFoundException:
    """The error of TagResource and ListTagsOfResource; AWS misspells ``ResourcArn``."""
    return ResourceNotFoundException(
        f"Requested resource not found: ResourcArn: {resource_arn} not found"
    )
