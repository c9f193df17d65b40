"""The base of input structures, and the shapes whose constraints are no matter of the model alone.

``dynactor.api.requests.inputs`` has all others, generated from botocore's service models. The
decoder of msgspec checks the constraints, and ``dynactor.api.requests.input_decoder`` finds the
errors to report. Attribute values are plain JSON here; ``dynactor.model.values.attribute_value``
checks them.

Import the module instead of the names: a class with a member ``TableName`` can't use a type
``TableName``, but can use ``shapes.TableName``.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from dynactor.model.limits import NAME_CHARACTER, TABLE_NAME_CHARACTERS

NAME_PATTERN: Final = NAME_CHARACTER + "+"
_FEWEST, _MOST = TABLE_NAME_CHARACTERS
_ARN_CHARACTERS: Final = 1024


class Shape(Struct, frozen=True):
    """The base of all input structures, including those of operations."""


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
# The names of a restore's target and of an index with Contributor Insights.
LengthFirstName: TypeAlias = Annotated[PlainTableName, LengthFirstRule()]
# The service model has patterns for these two that Python does not know.
AutoScalingPolicyName: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=256, pattern=r"^[\x20-\x7E]+\Z")
]
AutoScalingRoleArn: TypeAlias = Annotated[str, Meta(min_length=1, max_length=1600)]

# Enumerations in the order of DynamoDB's messages, as dynalite's suites measured it on AWS.
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
ProjectionType: TypeAlias = Literal["ALL", "INCLUDE", "KEYS_ONLY"]
ReturnValue: TypeAlias = Literal["ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"]
ScalarAttributeType: TypeAlias = Literal["B", "N", "S"]
Select: TypeAlias = Literal[
    "SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"
]
TableClass: TypeAlias = Annotated[
    Literal["STANDARD", "STANDARD_INFREQUENT_ACCESS"],
    ChoiceRule(
        "Invalid table-class parameter provided. Please try again with a valid table-class value: "
        "[STANDARD, STANDARD_INFREQUENT_ACCESS]"
    ),
]

REQUEST_ITEMS_RULE: Final = NotEmptyRule(
    "The requestItems parameter is required for BatchWriteItem"
)

# Items and values, not checked yet.
AttributeValue: TypeAlias = dict[str, Any]
AttributeMap: TypeAlias = dict[str, AttributeValue]
Key: TypeAlias = dict[str, AttributeValue]
ExpressionAttributeNames: TypeAlias = dict[str, str]
ExpressionAttributeValues: TypeAlias = dict[str, AttributeValue]
