"""Amazon Resource Names in place of table names."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from dynactor.model.errors import ValidationException
from dynactor.model.limits import NAME_CHARACTER, TABLE_NAME_CHARACTERS

NO_ARN: Final = "ARNs must start with 'arn:'"

_FEWEST, _MOST = TABLE_NAME_CHARACTERS
_NAME: Final = re.compile(rf"{NAME_CHARACTER}{{{_FEWEST},{_MOST}}}\Z")
_ARN_FIELDS: Final = 6

# AWS's text lacks the blank too (DynamoDB Local 3.3).
_MALFORMED: Final = (
    "Valid ARN format is 'arn:<awsPartition>:<vendor>:<region>:<subscriber>:"
    f"resourceType/resourceName', where Resource name must have length less than or equal to "
    f"{_MOST}, Resource name must have length greater than or equal to {_FEWEST}, "
    "Resource name must satisfyregular expression pattern: [a-zA-Z0-9_.-]+"
)
_INVALID_NAME: Final = (
    f"Invalid table/index name.  Table/index names must be between {_FEWEST} and {_MOST} "
    "characters long, and may contain only the characters a-z, A-Z, 0-9, '_', '-', and '.'"
)


@lru_cache(maxsize=1024)
def table_name(text: str) -> str:
    """The table of a TableName member, a plain name or an ARN; raises ``ValidationException``.

    Account and region are ignored. ``foreign_arns`` checks the region if regions are separate.
    """
    if ":" not in text:
        return _checked(text)
    if not text.startswith("arn:"):
        raise ValidationException(NO_ARN)
    fields = text.split(":", _ARN_FIELDS - 1)
    if len(fields) < _ARN_FIELDS or fields[2] != "dynamodb":
        raise ValidationException(_MALFORMED)
    kind, _, name = fields[-1].partition("/")
    if kind != "table":
        raise ValidationException(_MALFORMED)
    return _checked(name)


def _checked(name: str) -> str:
    if _NAME.match(name) is None:
        raise ValidationException(_INVALID_NAME)
    return name
