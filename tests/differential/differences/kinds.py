"""The known kinds of differences between this server and DynamoDB Local, each with its reason.

A difference of no known kind fails the run. docs/DIFFERENCES.md describes the kinds for users.
"""

from __future__ import annotations

import json
import re

from tests.differential.differences.compare import Difference
from tests.differential.differences.matchers import (
    CAPACITY,
    INVALID,
    METRICS,
    NOTATION,
    Kind,
    any_of,
    both_refuse,
    messages_match,
    refused_here,
    refused_there,
    results_differ,
)
from tests.differential.differences.statement_kinds import statement_kinds
from tests.differential.differences.transaction_kinds import TRANSACTION_KINDS
from tests.differential.peers.normalize import without_spelling
from tests.differential.requests.request import AFTER_UPDATE, WITHOUT_ACTION, without_action
from tests.differential.requests.stages import Stage, stage_of


def kind_of(difference: Difference) -> Kind | None:
    """The first kind that matches a difference; None if no kind does."""
    for kind in KINDS:
        if kind.matches(difference):
            return kind
    return None


def _filtered_scan_of_an_index(difference: Difference) -> bool:
    """Both servers scan an index with a filter, and return different items."""
    body = difference.body
    text = str(body.get("Statement", ""))
    is_filtered = bool({"FilterExpression", "ScanFilter"} & body.keys()) or "WHERE" in text.upper()
    names_index = "IndexName" in body or re.search(r'"?\."by', text) is not None
    return (
        difference.request.operation in ("Scan", "ExecuteStatement")
        and is_filtered
        and names_index
        and results_differ(
            r"\.Items.*", r"\.Count", r"\.(LastEvaluatedKey|NextToken).*", CAPACITY, NOTATION
        )(difference)
    )


_ENVELOPE = "1 validation error detected: "


def _enveloped(difference: Difference) -> bool:
    """The difference is of a known kind, except for the prefix that single writes have here."""
    inner = difference.our_message.removeprefix(_ENVELOPE)
    if inner == difference.our_message or inner.startswith("Value "):
        return False
    bare = difference._replace(ours={**difference.ours, "message": inner})
    return bare.ours == bare.local or kind_of(bare) is not None


def _shape(difference: Difference) -> bool:
    return (
        difference.our_error == "SerializationException"
        and difference.local_error == "InternalFailure"
    )


def _shape_passed(difference: Difference) -> bool:
    return difference.our_error == "SerializationException" and (
        difference.local_error != "InternalFailure"
    )


def _same_items(difference: Difference) -> bool:
    """A query of an index returned the same items in another order."""
    if not difference.paths or difference.request.operation != "Query":
        return False
    ours, local = (
        dict(without_spelling(answer["result"])) for answer in (difference.ours, difference.local)
    )
    sorted_items = [
        sorted(json.dumps(item, sort_keys=True) for item in result.pop("Items", []))
        for result in (ours, local)
    ]
    if "IndexName" not in difference.body:
        return False
    if "ExclusiveStartKey" in difference.body:
        # Several entries may have the start key's index key, and their order is unspecified.
        return True
    if "Limit" in difference.body:
        # The page may end between entries with the same index key, so the last items may differ.
        last_keys = [
            {
                name: value
                for name, value in result.get("LastEvaluatedKey", {}).items()
                if name != "s"
            }
            for result in (ours, local)
        ]
        return ours["ScannedCount"] == local["ScannedCount"] and last_keys[0] == last_keys[1]
    return sorted_items[0] == sorted_items[1] and ours == local


def _same_but_for_spelling(difference: Difference) -> bool:
    """Only the notation of numbers differs, and the capacity where it always differs."""
    operation = difference.request.operation
    is_priced_otherwise = operation in _READS_AND_BATCHES or (
        operation == "DeleteItem" and "ReturnConsumedCapacity" not in difference.body
    )
    return results_differ(NOTATION, *((CAPACITY,) if is_priced_otherwise else ()))(difference)


def _earlier_stage(difference: Difference) -> bool:
    ours, local = stage_of(difference.ours), stage_of(difference.local)
    return ours is not None and local is not None and Stage.SHAPE < ours < local


def _constraint(difference: Difference) -> bool:
    """This server reports a violated constraint, such as a length or a range."""
    return stage_of(difference.ours) is Stage.CONSTRAINT


_NO_EXPRESSION = "ExpressionAttributeValues can only be specified when using expressions"
_BAD_START = r"The provided starting key is invalid"
_EMPTY_KEY = (
    r"One or more parameter values are not valid\. (A value specified|The AttributeValue for a)"
)
_AT_MOST_ONE = r"The query can return at most one row and cannot be restarted\. "
_TWO_WORDS = re.compile(
    r"Invalid \w+Expression: Attribute name is a reserved keyword; reserved keyword: "
    r"(?i:size|convert)"
)
_READS_AND_BATCHES = ("Query", "Scan", "BatchGetItem", "BatchWriteItem")
_IN_VALUES = r"(ExpressionAttributeValues contains invalid value: )?"
_EXPRESSIONS = (
    "ConditionExpression",
    "FilterExpression",
    "KeyConditionExpression",
    "ProjectionExpression",
    "UpdateExpression",
)
_LEGACY = frozenset(("Expected", "AttributeUpdates", "KeyConditions", "QueryFilter", "ScanFilter"))
_TABLE_CHANGES = "CreateTable UpdateTable"

KINDS: tuple[Kind, ...] = (
    Kind(
        "the prefix of a single write's errors",
        "AWS's newer request layer; DynamoDB Local has the older one's words.",
        _enveloped,
    ),
    Kind(
        "values without an expression",
        "AWS's newer request layer does not list the expressions that are missing.",
        messages_match(rf"{_NO_EXPRESSION}$", rf"{_NO_EXPRESSION}: "),
    ),
    *statement_kinds(kind_of),
    *TRANSACTION_KINDS,
    Kind(
        "a member of a wrong JSON type",
        "DynamoDB answers SerializationException with status 400; DynamoDB Local fails with 500.",
        _shape,
    ),
    Kind(
        "a wrong JSON type that DynamoDB Local lets pass",
        "DynamoDB refuses it before it looks at anything else.",
        _shape_passed,
    ),
    Kind(
        "tags",
        "DynamoDB Local has none.",
        lambda difference: difference.local_message.startswith("Tagging is not currently supp"),
    ),
    Kind(
        "operations that DynamoDB Local does not know",
        "Backups, resource policies and DescribeEndpoints answer as DynamoDB does.",
        lambda difference: difference.local_error == "UnknownOperationException",
    ),
    Kind(
        "a missing table",
        "DynamoDB's words; DynamoDB Local has its own.",
        messages_match(
            r"Requested resource not found", r"Cannot do operations on a non-existent table"
        ),
    ),
    Kind(
        "constraints of members",
        "DynamoDB lists all broken constraints as '1 validation error detected: …'; DynamoDB "
        "Local stops at the first, in other words.",
        lambda difference: (
            _constraint(difference) and stage_of(difference.local) is Stage.CONSTRAINT
        ),
    ),
    Kind(
        "constraints that DynamoDB Local does not check",
        "DynamoDB does: enumerations, empty lists, ranges.",
        lambda difference: _constraint(difference) and not difference.local_error,
    ),
    Kind(
        "faults on which DynamoDB Local fails",
        "It answers 500 to some values that are in no enumeration, to null in a set, to some "
        "legacy conditions on keys.",
        lambda difference: (
            difference.our_error == "ValidationException"
            and difference.local_error == "InternalFailure"
        ),
    ),
    Kind(
        "a condition that is null",
        "A broken constraint to DynamoDB, as every null in a map of structures.",
        messages_match(
            r"\d+ validation errors? detected: ",
            r"The filter condition for an attribute cannot be null|Empty attribute name$"
            rf"|{INVALID}ExpectedAttributeValue must not be null",
        ),
    ),
    Kind(
        "a broken definition of a table",
        "DynamoDB's words, and of several faults the one that DynamoDB finds first; DynamoDB "
        "Local has words of its own for all rules of tables and indexes.",
        lambda difference: (
            both_refuse(difference)
            and difference.request.operation in _TABLE_CHANGES.split()
            and stage_of(difference.ours) is Stage.VALUES
            and stage_of(difference.local) in {Stage.CONSTRAINT, Stage.VALUES}
        ),
    ),
    Kind(
        "a key that is not the table's",
        "DynamoDB has one message for keys with missing, additional or wrong attributes, and "
        "names both types where an item's key has a wrong one.",
        messages_match(
            r"The provided key element does not match the schema$"
            rf"|{INVALID}(Type mismatch for key \S+ expected|Missing the key)",
            r"Item to put in PutItem cannot be null$"
            r"|The list of keys in RequestItems for BatchGetItem may not contain null or empty"
            r"|Key attributes must be scalars; "
            r"|The number of conditions on the keys is invalid$|One of the required keys was not"
            rf"|{INVALID}Type mismatch for key$"
            r"|Type mismatch for attribute to update|Invalid attribute value type$",
        ),
    ),
    Kind(
        "invalid numbers",
        "DynamoDB's words for what is no number, too large, too small or too long.",
        messages_match(
            rf"{_IN_VALUES}(The parameter cannot be converted|Attempting to store more than 38"
            r"|Number overflow\. )",
            rf"{_IN_VALUES}(A value provided cannot be|DynamoDB only supports precision|Number )",
        ),
    ),
    Kind(
        "duplicates in a set",
        "DynamoDB's words, with its own full stops and blanks.",
        messages_match(
            rf"{_IN_VALUES}({INVALID})?Input collection",
            rf"{_IN_VALUES}({INVALID})?Input collection",
        ),
    ),
    Kind(
        "which of several overlapping paths are named",
        "DynamoDB Local takes them in the order of a hash map; here it is the order of the text.",
        messages_match(
            r"(Invalid (Update|Projection)Expression: )?Two document paths overlap",
            r"(Invalid (Update|Projection)Expression: )?Two document paths overlap",
        ),
    ),
    Kind(
        "a name twice in AttributesToGet",
        "DynamoDB's words.",
        messages_match(
            rf"{INVALID}Duplicate value in attribute name", r"Cannot have two attributes"
        ),
    ),
    Kind(
        "a parallel scan without one of its two members",
        "DynamoDB's words.",
        messages_match(
            r"The (Segment|TotalSegments) parameter ",
            r"If (total segments|segment) is specified|1 validation error .* at 'segment' ",
        ),
    ),
    Kind(
        "which of two faults of an update is reported",
        "Actions are taken in the order of the text; DynamoDB Local takes them in another.",
        lambda difference: (
            both_refuse(difference)
            and difference.request.operation == "UpdateItem"
            and "UpdateExpression" in difference.body
            and stage_of(difference.ours) is stage_of(difference.local) is Stage.ITEM
        ),
    ),
    Kind(
        "an update that gives an index's key another type",
        "DynamoDB refuses the write, as it does a put (S40).",
        refused_here(
            rf"{INVALID}Type mismatch for Index Key"
            r"|One or more parameter values are not valid\. The update expression attempted"
            r"|The update expression attempted to update the secondary index key",
            "UpdateItem ExecuteStatement",
        ),
    ),
    Kind(
        "two reserved words",
        "AWS's list has CONVERT and SIZE, too.",
        lambda difference: _TWO_WORDS.fullmatch(difference.our_message) is not None,
    ),
    Kind(
        "a path into a key attribute of a query's filter",
        "A key attribute can't be in the filter at all.",
        messages_match(
            r"Filter Expression can only contain non-primary", r"Key attributes must be scalars"
        ),
    ),
    Kind(
        "a start key outside the query",
        "DynamoDB's words.",
        lambda difference: (
            "ExclusiveStartKey" in difference.body
            and any_of(
                lambda one: one.our_message == f"{_BAD_START}: {one.local_message}",
                messages_match(
                    rf"({_BAD_START}: )?The provided key element does not match the schema$",
                    r"Exclusive Start Key |The provided starting key is invalid$"
                    r"|Type mismatch for attribute to update$|Key attributes must be scalars; ",
                ),
                messages_match(rf"{_BAD_START}$", r"Exclusive Start Key must have same size "),
                messages_match(
                    rf"{_BAD_START}: Supplied AttributeValue ",
                    r"The supplied Item contains a null AttributeValue",
                ),
                messages_match(
                    rf"({_BAD_START}: )?{_EMPTY_KEY}",
                    rf"({_AT_MOST_ONE})?({_BAD_START}: )?{_EMPTY_KEY}",
                ),
                messages_match(
                    r"The provided starting key is outside query boundaries ",
                    r"The provided starting key does not match the range key predicate$",
                ),
                messages_match(
                    r"The query can return at most one row and cannot be restarted$",
                    r"The provided starting key does not match the range key predicate$",
                ),
                messages_match(r"The provided starting key ", r"Key attributes must be scalars; "),
                messages_match(
                    rf"{INVALID}Secondary index \S+ does not project",
                    r"Exclusive Start Key |The provided starting key is invalid$",
                ),
            )(difference)
        ),
    ),
    Kind(
        "a fault of an earlier stage is reported first",
        "Of two faults DynamoDB tells the one it comes to first: JSON types, constraints, "
        "parameters and expressions, the table, its keys, the item.",
        _earlier_stage,
    ),
    Kind(
        "another one of two faults of one stage is reported",
        "DynamoDB's order as dynalite measured it.",
        lambda difference: (
            (
                len(difference.request.faults) > 1
                or not _LEGACY.isdisjoint(difference.body)
                or difference.request.operation.startswith("Batch")
            )
            and stage_of(difference.ours) is not None
            and stage_of(difference.ours) is stage_of(difference.local)
        ),
    ),
    Kind(
        "a batch's expressions before its keys",
        "DynamoDB parses BatchGetItem's expressions before it looks at the keys.",
        lambda difference: (
            difference.request.operation == "BatchGetItem"
            and stage_of(difference.ours) is Stage.EXPRESSIONS
            and stage_of(difference.local) in {Stage.CONSTRAINT, Stage.VALUES}
        ),
    ),
    Kind(
        "a query's key condition before its other expressions",
        "DynamoDB parses the KeyConditionExpression before the FilterExpression.",
        messages_match(
            r"Invalid KeyConditionExpression: ", r"Invalid (Filter|Projection)Expression: ", "Query"
        ),
    ),
    Kind(
        "one number in two spellings",
        "DynamoDB gives numbers back in plain decimal, whatever way they came; DynamoDB Local "
        "keeps exponents.",
        _same_but_for_spelling,
    ),
    Kind(
        "a last key at the end of its range",
        "DynamoDB gives LastEvaluatedKey whenever Limit was reached, also by the last item that a "
        "condition on the sort key allows.",
        lambda difference: (
            difference.request.operation == "Query"
            and "Limit" in difference.body
            and results_differ(r"\.LastEvaluatedKey \(ours only\)", NOTATION, CAPACITY)(difference)
        ),
    ),
    Kind(
        "a start key in a table without sort key",
        "DynamoDB refuses it: a partition key without sort key has nothing behind its item.",
        refused_here(r"The provided exclusive start key is invalid: ", "Query"),
    ),
    Kind(
        "a table's description",
        "A table is CREATING at first, and shows its WarmThroughput, as in DynamoDB. An answer "
        "shows the old units while the table is UPDATING, and no index of a deleted table.",
        results_differ(
            r"\.Table(Description)?\.(TableStatus|WarmThroughput \(ours only\))",
            r"\.TableDescription\.(LocalSecondaryIndexes|ProvisionedThroughput)\b.*",
        ),
    ),
    Kind(
        "ARNs",
        "A table may be named by its ARN in every operation; malformed ones are reported in "
        "DynamoDB's words.",
        lambda difference: (
            ":" in str(difference.body.get("TableName"))
            and difference.local_error == "ValidationException"
        ),
    ),
    Kind(
        "table requests that DynamoDB Local accepts",
        "DynamoDB refuses: empty lists of indexes, units of an on-demand table, a tag key twice, "
        "a change of an index, of the class or of the protection of a table together with other "
        "changes.",
        any_of(
            refused_here(
                rf"{INVALID}(You cannot |\w+ modification must)",
                "UpdateTable",
            ),
            refused_here(rf"{INVALID}List of LocalSecondaryIndexes is empty", "CreateTable"),
            refused_here(
                rf"{INVALID}(Neither ReadCapacity|ProvisionedThroughput cannot be)",
                "CreateTable UpdateTable",
            ),
            refused_here(rf"{INVALID}Duplicate tag keys", "CreateTable"),
        ),
    ),
    Kind(
        "an update that only removes, of a missing item",
        "It makes no item in DynamoDB (observed on the service); in DynamoDB Local it makes one.",
        any_of(
            lambda difference: (
                AFTER_UPDATE in difference.request.faults
                and difference.paths == {".Item (local only)"}
                and difference.local["result"]["Item"].keys() == difference.body["Key"].keys()
            ),
            lambda difference: (
                difference.request.operation == "UpdateItem"
                and results_differ(r"\.Attributes \(local only\)", METRICS, CAPACITY)(difference)
                and "Attributes" in difference.local["result"]
                and difference.local["result"]["Attributes"].keys() == difference.body["Key"].keys()
            ),
            refused_there(r"The document path provided in the update ", "UpdateItem"),
        ),
    ),
    Kind(
        "item collection metrics",
        "DynamoDB gives them for every write to a table with local indexes; DynamoDB Local does "
        "not for most.",
        results_differ(METRICS, NOTATION, CAPACITY),
    ),
    Kind(
        "ReturnValues that a put or delete does not have",
        "DynamoDB's words.",
        messages_match(
            r"ReturnValues can only be ALL_OLD or NONE", r"Return values set to invalid value"
        ),
    ),
    Kind(
        "a limit of 2^31",
        "DynamoDB takes any positive number; DynamoDB Local fails with 500.",
        lambda difference: (
            difference.local_error == "InternalFailure" and difference.body.get("Limit") == 2**31
        ),
    ),
    Kind(
        "streams",
        "This version has none and says so.",
        lambda difference: (
            "StreamSpecification" in difference.body
            and difference.request.operation in _TABLE_CHANGES.split()
        ),
    ),
    Kind(
        "types in the messages of legacy updates",
        "DynamoDB has their short names, such as S.",
        messages_match(
            rf"{INVALID}(ADD action is|DELETE action with value is) not supported",
            rf"{INVALID}(ADD action is|DELETE action with value is) not supported",
        ),
    ),
    Kind(
        "keys that are too long",
        "DynamoDB's words.",
        messages_match(
            rf"{INVALID}(Size of hashkey|Aggregated size of all range keys) has exceeded",
            rf"Hash primary key values must be under|{INVALID}Size limit exceeded",
        ),
    ),
    Kind(
        "an empty placeholder",
        "DynamoDB calls it a syntax error.",
        messages_match(
            r"ExpressionAttribute(Names|Values) contains invalid key: Syntax error",
            r"ExpressionAttribute(Names|Values) contains invalid key: The expression attribute map",
        ),
    ),
    Kind(
        "null for an attribute value",
        "An empty value to DynamoDB.",
        messages_match(
            rf"{_IN_VALUES}Supplied AttributeValue is empty",
            rf"{_IN_VALUES}(The supplied Item contains a null AttributeValue"
            rf"|{INVALID}An string set may not have a null string|A value provided cannot be)",
        ),
    ),
    Kind(
        "a wrong number of key conditions",
        "DynamoDB's words.",
        any_of(
            messages_match(
                r"Conditions can be of length 1 or 2 only", r"Conditions must be at least length"
            ),
            messages_match(
                r"The number of query conditions \(\d+\) exceeds ",
                r"Conditions can be of length 1 or 2 only|Query key condition not supported",
            ),
            messages_match(
                r"Invalid KeyConditionExpression: KeyConditionExpressions must only contain one ",
                r"KeyConditionExpressions must only contain one ",
            ),
        ),
    ),
    Kind(
        "an index's key attribute of another type",
        "DynamoDB names the attribute, both types and the index.",
        messages_match(
            rf"{INVALID}Type mismatch for Index Key \S+ Expected"
            r"|The update expression attempted to update the secondary index key",
            rf"{INVALID}Type mismatch for Index Key$|Invalid attribute value type$",
        ),
    ),
    Kind(
        "which of two faults of Select is reported",
        "Both say so.",
        messages_match(
            r"ALL_PROJECTED_ATTRIBUTES can be used only when Querying",
            r"Cannot specify the (ProjectionExpression|AttributesToGet) when choosing",
        ),
    ),
    Kind(
        "the items in a segment of a scan",
        "DynamoDB promises no division; here it is the hash of the partition key.",
        lambda difference: (
            difference.request.operation == "Scan"
            and bool(difference.paths)
            and difference.body.get("TotalSegments", 1) > 1
        ),
    ),
    Kind(
        "an empty value for an index's key attribute",
        "A table's key attribute that is empty is reported as such also in a query of an index.",
        messages_match(
            r"One or more parameter values are not valid\. The AttributeValue for a key attribute",
            r"One or more parameter values are not valid\. A value specified for a secondary",
        ),
    ),
    Kind(
        "which key attribute a query lacks",
        "DynamoDB names it.",
        messages_match(
            r"Query condition missed key schema element: ",
            r"Query condition missed key schema element$",
        ),
    ),
    Kind(
        "an empty map or list among the parameters",
        "It is there: DynamoDB doesn't let it be mixed with expressions, or be without one.",
        lambda difference: (
            stage_of(difference.ours) is Stage.MIXTURE
            and not difference.local_error
            and any(content in ({}, []) for content in difference.body.values())
        ),
    ),
    Kind(
        "an expression that is empty",
        "It is there, and at fault; to DynamoDB Local it is not there.",
        lambda difference: (
            both_refuse(difference)
            and stage_of(difference.local) is Stage.MIXTURE
            and "" in [difference.body.get(name) for name in _EXPRESSIONS]
        ),
    ),
    Kind(
        "the order of entries with one index key",
        "DynamoDB promises none.",
        _same_items,
    ),
    Kind(
        "the order of a scan",
        "DynamoDB promises none; here it is that of the hash, as in DynamoDB as far as is known.",
        lambda difference: (
            difference.request.operation == "Scan"
            and bool(difference.paths)
            and "Limit" in difference.body
            and difference.ours["result"]["ScannedCount"]
            == difference.local["result"]["ScannedCount"]
        ),
    ),
    Kind(
        "a start key at the end of its range",
        "It is in the range: nothing is behind it, and that is the answer.",
        refused_there(r"The provided starting key does not match the range key predicate", "Query"),
    ),
    Kind(
        "an invalid key and a duplicate key in one batch of writes",
        "What is no key can't be compared with others.",
        messages_match(
            r"The provided key element does not match the schema$",
            r"Provided list of item keys contains duplicates$",
            "BatchWriteItem",
        ),
    ),
    Kind(
        "how bounds of BETWEEN are shown",
        "As they came, or in plain decimal: they are the same numbers.",
        messages_match(
            r"(Invalid \w+Expression: )?The BETWEEN operator requires (upper bound|same data type)",
            r"(Invalid \w+Expression: )?The BETWEEN operator requires (upper bound|same data type)",
        ),
    ),
    Kind(
        "an item in a failed condition's answer",
        "Its numbers are spelled in plain decimal.",
        lambda difference: (
            difference.our_error == difference.local_error == "ConditionalCheckFailedException"
        ),
    ),
    Kind(
        "UPDATED_OLD and UPDATED_NEW of a nested update",
        "DynamoDB shows the updated parts of a document, DynamoDB Local the whole attribute.",
        any_of(
            lambda difference: (
                difference.request.operation == "UpdateItem"
                and str(difference.body.get("ReturnValues")).startswith("UPDATED_")
                and "UpdateExpression" in difference.body
                and results_differ(
                    r"\.Attributes\..* \((local only|length)\)", METRICS, NOTATION, CAPACITY
                )(difference)
            ),
            lambda difference: (
                difference.request.operation == "ExecuteStatement"
                and "RETURNING MODIFIED" in str(difference.body.get("Statement"))
                and results_differ(r"\.Items\[\]\..* \((local only|length)\)", NOTATION, CAPACITY)(
                    difference
                )
            ),
        ),
    ),
    Kind(
        "a legacy update without Action",
        "PUT is the default, as documented; DynamoDB Local leaves such an attribute as it is.",
        lambda difference: (
            (without_action(difference.body) or WITHOUT_ACTION in difference.request.faults)
            and results_differ(r"\.(Item|Attributes)\b.*", METRICS, CAPACITY)(difference)
        ),
    ),
    Kind(
        "a filter on attributes that a query fetches",
        "A local index fetches what it does not hold; then the filter sees it, too.",
        refused_there(rf"{INVALID}Secondary index \S+ does not project", "Query"),
    ),
    Kind(
        "a filter of a scan of an index",
        "The service finds attributes that are not projected absent, and refuses them in a SELECT "
        "that fixes the partition key (seen in 2026); DynamoDB Local filters whole items of a "
        "local index.",
        any_of(
            _filtered_scan_of_an_index,
            refused_here(
                rf"{INVALID}Secondary index \S+ does not project one or more filter attributes",
                "ExecuteStatement BatchExecuteStatement",
            ),
        ),
    ),
    Kind(
        "an item whose key is spelled in two ways",
        "DynamoDB reads it once; DynamoDB Local reads it as often as it is spelled.",
        lambda difference: (
            difference.request.operation == "BatchGetItem"
            and results_differ(
                r"\.Responses\..*\(length\)", r"\.Responses\..*\(local only\)", NOTATION, CAPACITY
            )(difference)
        ),
    ),
    Kind(
        "an operator that no key condition has",
        "DynamoDB says so of each key attribute.",
        messages_match(
            r"Attempted conditional constraint is not an indexable operation$",
            r"Query key condition not supported|Only scalar types can be used as ",
        ),
    ),
    Kind(
        "capacity of reads and batches",
        "An empty page costs a minimum, a batch each of its items, a scan the page of each "
        "partition it reads (docs/RULES.md).",
        lambda difference: (
            difference.request.operation in _READS_AND_BATCHES
            and results_differ(CAPACITY)(difference)
        ),
    ),
    Kind(
        "capacity that the request does not ask for",
        "DynamoDB Local's DeleteItem gives it unasked.",
        lambda difference: (
            difference.request.operation == "DeleteItem"
            and "ReturnConsumedCapacity" not in difference.body
            and results_differ(r"\.ConsumedCapacity \(local only\)", METRICS)(difference)
        ),
    ),
)
