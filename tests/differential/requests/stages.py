"""The stages in which DynamoDB checks a request, recognized by the error message.

If a request has faults in several stages, DynamoDB reports the first stage. The patterns match the
messages of this server and those of DynamoDB Local, which often differ.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from typing import Any


class Stage(IntEnum):
    """The stages in DynamoDB's order."""

    SHAPE = 1  # the JSON types of members
    CONSTRAINT = 2  # lengths, ranges, enumerations, required members
    MIXTURE = 3  # members that don't go together
    VALUES = 4  # attribute values, legacy conditions, segments
    EXPRESSIONS = 5  # their placeholders, their text
    TABLE = 6  # whether the table exists
    SCHEMA = 7  # keys and indexes of that table
    ITEM = 8  # the existing item


_TEXTS: dict[Stage, tuple[str, ...]] = {
    Stage.CONSTRAINT: (
        r"\d+ validation errors? detected: Value ",
        r"Failed to satisfy constraint: ",
        r"The requestItems parameter is required ",
        r"Value null at ",
        r"TableName must be at least ",
        r"The parameter 'TableName' is required ",
        r"The parameter 'ResourceArn' is required ",
        r"Invalid table/index name\. ",
        r"Valid ARN format is ",
        r"Invalid TableArn",
        r"Select must be ",
        r"Limit must be greater ",
        r"Limit in ListTables ",
        r"Comparison type does not exist ",
        r"Too many items requested ",
        r"BatchGetItem must have some ",
        r"BatchWriteItem cannot have a null ",
        r"The list of keys in RequestItems for BatchGetItem is required",
        r"The batch write request list ",
        r"Cannot have null key ",
        r"Projection type must be ",
        r"Indexes must have a projection ",
        r"Member must ",
        r"Invalid table-class parameter ",
    ),
    Stage.MIXTURE: (
        r"Can not use both expression and non-expression ",
        r"ExpressionAttribute(Names|Values) can only be ",
    ),
    Stage.VALUES: (
        r"ConditionalOperator can",
        (
            r"One or more parameter values were invalid: (Value|Exists|AttributeValue "
            r"|ComparisonOperator"
            r"|Invalid number of argument|AttributeValues inside|AttributeValueList|ADD action"
            r"|DELETE action|Only DELETE|Duplicate value in attribute name|Null attribute value"
            r"|An (string|number) set|Binary sets|Input collection|Cannot specify)"
        ),
        r"Empty attribute name$",
        r"ReturnValues can only be ",
        r"Return values set to invalid value",
        r"The BETWEEN condition ",
        r"Cannot have two attributes ",
        r"The (Segment|TotalSegments) parameter ",
        r"If (total segments|segment) is specified",
        r"Supplied AttributeValue ",
        r"The parameter cannot be converted ",
        r"A value provided cannot be converted ",
        r"Number (over|under)flow",
        r"Attempting to store more than 38 ",
        r"DynamoDB only supports precision ",
        r"Input collection ",
        r"Provided list of item keys contains duplicates",
        r"Nesting Levels ",
        r"The supplied Item contains a null ",
        r"Either the KeyConditions or KeyConditionExpression ",
        r"Item size has exceeded ",
        r"Item to put in PutItem cannot be null",
        r"The provided starting key is invalid: (The parameter|Supplied|One or more|Null)",
        # Rules for definitions of tables, in the messages of this server and DynamoDB …
        r"At least one of ProvisionedThroughput, ",
        (
            r"One or more parameter values were invalid: (Some index key attributes|Table KeySchema"
            r"|List of (Local|Global)SecondaryIndexes|Duplicate|ReadCapacityUnits and"
            r"|Neither ReadCapacityUnits|ProvisionedThroughput (must|cannot) be|Number of "
            r"|Index KeySchema"
            r"|ProjectionType is|Unknown ProjectionType|Tag|The tag|Only one of Global"
            r"|(AttributeDefinitions|ProvisionedThroughput) is not specified|Table is being created"
            r"|You cannot |\w+ modification must be the only operation |If stream is being enabled"
            r")"
        ),
        r"Attribute Name is duplicated: ",
        r"Invalid KeySchema: ",
        r"Both the Hash Key and the Range Key ",
        r"Given value \d+ for (Read|Write)CapacityUnits ",
        # … and in the messages of DynamoDB Local.
        r"The number of attributes in key schema must match ",
        r"No (Hash Key specified|Attribute Schema|defined key schema|provisioned throughput) ?",
        r"No (attributes should be specified|more than \d+ attributes) ",
        r"(Hash Key|Local Secondary Index range key) not specified ",
        r"(Too many hash keys|Key Schema too big|Invalid key order|Two keys can not have)",
        r"Local [Ss]econdary indices ",
        r"Two local secondary indices ",
        r"Cannot have more than \d+ local ",
        r"If Projection type INCLUDE ",
        r"GSI list is ",
        r"Invalid StreamViewType: ",
        r"Cannot increase provisioned throughput ",
        r"Table read and write throughput ",
    ),
    Stage.EXPRESSIONS: (
        r"ExpressionAttribute(Names|Values) (contains|must)",
        r"Invalid (Update|Condition|Filter|KeyCondition|Projection)Expression: ",
        r"Value provided in ExpressionAttribute(Names|Values) unused ",
        r"Invalid (operator used|condition) in KeyConditionExpression",
        r"KeyConditionExpressions (must|cannot) ",
        r"Cannot specify the ",
        r"Must specify the AttributesToGet ",
        r"ALL_PROJECTED_ATTRIBUTES can be used ",
        r"Expression size ",
        r"Conditions (must be at least|can be of length) ",
        # Faults of PartiQL statements.
        r"Statement wasn't well formed",
        r"(Unsupported|Unexpected|Unrecognized|Aliasing|Invalid (list|syntax)|Expected '\*') ?",
        r"(Two document paths|The BETWEEN operator|Incorrect (operand|number)|MISSING must) ",
        r"(WHERE clause must|The arguments? to|IN operator must|The (second|first) argument) ",
        r"(Duplicate (identifiers|keys)|Path component|Tuple keys|Empty bags|Ion Literals) ",
        r"(Negative zero|Number of parameters|EXISTS can only|The function is|Changing item's) ",
        r"(Only (select|single)|FROM clause may|A path may|Table name should|RETURNING is not) ",
        r"(Must have|Argument to ORDER BY|The IN operator is|List index is|The document path has) ",
        r"SET_(ADD|DELETE) must |The left hand side |Select (projection|statements) ",
    ),
    Stage.TABLE: (
        r"Requested resource not found",
        r"Cannot do operations on a non-existent table",
        r"Tagging is not currently supported ",
    ),
    Stage.SCHEMA: (
        r"The provided key element does not match ",
        r"The number of conditions on the keys is invalid",
        (
            r"One or more parameter values were invalid: (Type mismatch|Missing the key|Size of "
            r"|Size limit exceeded|The AttributeValue for a key|Cannot update attribute"
            r"|Aggregated size"
            r"|Secondary index \S+ does not project|Condition parameter type|Local secondary index)"
        ),
        r"One or more parameter values are not valid\. ",
        r"One of the required keys was not given ",
        r"The table does not have the specified index",
        r"Invalid attribute value type",
        r"Query (condition|key condition) ",
        r"The provided starting key ",
        r"Exclusive Start Key ",
        r"The query can return at most ",
        r"The number of query conditions ",
        r"The provided exclusive start key ",
        r"Key attributes must be scalars; ",
        r"Hash primary key values ",
        r"Only scalar types can be used as ",
        r"The list of keys in RequestItems for BatchGetItem may not ",
        r"(Filter Expression|QueryFilter) can only contain ",
        r"Attempted conditional constraint ",
        r"Updates on index keys ",
        r"Type mismatch for attribute to update",
        r"Key attribute('s data type)? should |Key value must |Variable reference ",
        r"Where clause does not contain |Multiple conditions on same key |Invalid returning ",
        r"The update expression attempted to ",
    ),
    Stage.ITEM: (
        r"The conditional request failed",
        r"Duplicate primary key exists ",
        r"The provided expression refers to an attribute ",
        r"The document path provided in the update ",
        r"An operand in the update expression ",
        r"Item size to update ",
    ),
}
_PATTERNS = {stage: re.compile("|".join(texts)) for stage, texts in _TEXTS.items()}


@lru_cache(maxsize=4096)
def _stage_of_message(message: str) -> Stage | None:
    for stage, pattern in _PATTERNS.items():
        if pattern.match(message):
            return stage
    return None


def stage_of(answer: dict[str, Any]) -> Stage | None:
    """The stage in which a request failed; None if it succeeded or its message is unknown."""
    if "error" not in answer:
        return None
    if answer["error"] in ("SerializationException", "InternalFailure"):
        return Stage.SHAPE
    return _stage_of_message(str(answer["message"]))
