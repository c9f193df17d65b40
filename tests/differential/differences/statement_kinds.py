"""The known kinds of differences in PartiQL statements, each with its reason."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from dynactor.model.limits import PARTIQL_READS_PAGE_ITEMS
from tests.differential.differences.compare import Difference
from tests.differential.differences.matchers import (
    CAPACITY,
    INVALID,
    NOTATION,
    Kind,
    both_refuse,
    messages_match,
    refused_here,
    refused_there,
    results_differ,
)
from tests.differential.peers.normalize import without_spelling
from tests.differential.requests.request import request
from tests.differential.requests.stages import stage_of

ONE: Final = "ExecuteStatement"
STATEMENTS: Final = (ONE, "BatchExecuteStatement")
_OF_A_BATCH: Final = "of a batch"
_PAGE = r"\.(LastEvaluatedKey \(ours only\)|NextToken \((ours|local) only\))"
_NESTED_COLUMN = re.compile(r"SELECT (?!\*)[^?]*?[.\[]", re.IGNORECASE)
_PARTITION_IS = re.compile(r"""\bp"? ?= ?|= "?p\b|\bp"? IN\b""")
_FILTERED = re.compile(r"<>|\b(NOT|IN|IS)\b", re.IGNORECASE)
_PLACE = re.compile(r" (at \d+:\d+:\d+|under root\S*)$")
_OR_OR_TURNED = re.compile(r"""\bOR\b|(?:\?|'|[0-9]|true|null) ?(?:<=?|>=?) ?"?\w""", re.IGNORECASE)


def _text(difference: Difference) -> str:
    return str(difference.body.get("Statement", ""))


def _both_select(difference: Difference) -> bool:
    """Both servers answer a SELECT, with items that differ in more than the notation of numbers."""
    return (
        difference.request.operation == ONE
        and any(path.startswith(".Items") for path in difference.paths)
        and re.match(r"\W*SELECT\b", _text(difference), re.IGNORECASE) is not None
    )


def _other_order(difference: Difference) -> bool:
    if not _both_select(difference):
        return False
    ours, local = (_items(answer) for answer in (difference.ours, difference.local))
    if ours == local:
        return True
    if "Limit" not in difference.body:
        return False
    # A page that one server scans and the other one queries may have other items. DynamoDB Local
    # scans if the filter has one of these operators.
    text = _text(difference)
    return _PARTITION_IS.search(text) is None or _FILTERED.search(text) is not None


def _other_place(difference: Difference) -> bool:
    """Both servers refuse the statement with the same message, except for the position."""
    ours, local = (
        _PLACE.sub("", messages_match)
        for messages_match in (difference.our_message, difference.local_message)
    )
    return both_refuse(difference) and ours == local


def _items(answer: dict[str, Any]) -> list[str]:
    return sorted(
        json.dumps(without_spelling(item), sort_keys=True) for item in answer["result"]["Items"]
    )


def _or(difference: Difference) -> bool:
    return _both_select(difference) and _OR_OR_TURNED.search(_text(difference)) is not None


def _nested_columns(difference: Difference) -> bool:
    if difference.request.operation == "ExecuteTransaction":
        texts = [str(one["Statement"]) for one in difference.body["TransactStatements"]]
        return results_differ(r"\.Responses\[\]\.Item\..*", CAPACITY)(difference) and any(
            map(_NESTED_COLUMN.match, texts)
        )
    return _both_select(difference) and _NESTED_COLUMN.match(_text(difference)) is not None


def _parts(difference: Difference) -> Iterator[Difference]:
    """For each statement of a batch that is answered differently, a separate difference."""
    answers = (difference.ours["result"]["Responses"], difference.local["result"]["Responses"])
    for sent, ours, local in zip(difference.body["Statements"], *answers, strict=True):
        our_form, local_form = _as_if_alone(ours), _as_if_alone(local)
        if our_form != local_form:
            alone = request(ONE, sent, *difference.request.faults, _OF_A_BATCH)
            yield Difference(difference.scenario, alone, our_form, local_form)


def _as_if_alone(response: dict[str, Any]) -> dict[str, Any]:
    error = response.get("Error")
    if error is not None:
        form = {"status": 400, "error": error["Code"], "message": error["Message"]}
        return form | {name: held for name, held in error.items() if name == "Item"}
    return {"status": 200, "result": {"Items": [response["Item"]] if "Item" in response else []}}


def _known_in_parts(kind_of: Callable[[Difference], Kind | None]) -> Callable[[Difference], bool]:
    def matches(difference: Difference) -> bool:
        if difference.request.operation != "BatchExecuteStatement" or not difference.paths:
            return False
        known = re.compile(rf"{CAPACITY}|\.Responses\[\].*")
        return all(known.fullmatch(path) for path in difference.paths) and all(
            kind_of(part) for part in _parts(difference)
        )

    return matches


def statement_kinds(kind_of: Callable[[Difference], Kind | None]) -> tuple[Kind, ...]:
    """The kinds; ``kind_of`` finds the kinds of the single statements of a batch."""
    return (
        Kind(
            "a batch's answers for its statements",
            "Each statement differs as it does alone.",
            _known_in_parts(kind_of),
        ),
        Kind(
            "a statement that is not well formed",
            "The service shows the parser's message (captured in 2026), DynamoDB Local the text.",
            messages_match(r"Statement wasn't well formed", r"Statement wasn't well formed"),
        ),
        Kind(
            "positions in the messages of statements",
            "The service shows where an unknown function, a wrong argument of SET_ADD or "
            "SET_DELETE, or a number out of range stands (captured in 2026).",
            _other_place,
        ),
        Kind(
            "a SELECT of more than one item in a batch",
            "DynamoDB's words; DynamoDB Local finds other faults of such a statement first.",
            messages_match(r"Select statements within BatchExecuteStatement must", r"", ONE),
        ),
        Kind(
            "a second INSERT of a key",
            "The API's model calls the error DuplicateItemException.",
            lambda difference: (
                difference.our_error == "DuplicateItemException"
                and difference.local_error == "DuplicateItem"
                and difference.our_message == difference.local_message
            ),
        ),
        Kind(
            "statements on which DynamoDB Local fails",
            "It answers 500 to functions on keys, keys compared with attributes, some orders.",
            lambda difference: (
                difference.request.operation in STATEMENTS
                and difference.local_error == "InternalFailure"
                and difference.our_error in {"", "ValidationException"}
            ),
        ),
        Kind(
            "capacity and last keys of statements",
            "The API's model has both; DynamoDB Local tells neither.",
            lambda difference: (
                difference.request.operation == ONE
                and results_differ(CAPACITY, _PAGE, NOTATION)(difference)
            ),
        ),
        Kind(
            "ORDER BY of a SELECT that is a scan",
            "DynamoDB orders within partitions that a WHERE names.",
            refused_here(r"Must have at least one non-optional hash key condition", ONE),
        ),
        Kind(
            "a function as a value",
            "Measured on the service in 2026.",
            refused_there(r"The function is not allowed to be used this way", ONE),
        ),
        Kind(
            "numbers twice in a set, and nesting",
            "Measured on the service in 2026.",
            messages_match(
                r".*contains duplicates! under root|Nesting Levels have exceeded supported limits",
                r".*contains duplicates|Nesting Levels have exceeded supported limits",
                ONE,
            ),
        ),
        Kind(
            "a SELECT of several reads",
            "Measured on the service in 2026.",
            refused_here(
                r"Overlapping conditions|Too many decomposed|Must have hash key in ORDER BY", ONE
            ),
        ),
        Kind(
            "the pages of a SELECT of several reads",
            "At most 10 items, as AWS's documentation says.",
            lambda difference: (
                _both_select(difference)
                and len(_items(difference.ours)) == PARTIQL_READS_PAGE_ITEMS
                and "NextToken" in difference.ours["result"]
            ),
        ),
        Kind(
            "an equality as the value of an update",
            "It is no value in AWS's documentation; DynamoDB Local makes a boolean of it.",
            refused_here(r"Unsupported operator in Update Expression\. Operator: =$", ONE),
        ),
        Kind(
            "a condition on the type of a key attribute",
            "An answer; DynamoDB Local compares the key with the name of the type, with null, or "
            "with what it contains.",
            refused_there(
                rf"{INVALID}Condition parameter type|Key attribute's data type should match"
                r"|One or more parameter values are not valid\. The AttributeValue for a key",
                ONE,
            ),
        ),
        Kind(
            "the order of a SELECT",
            "That of the partition keys if a WHERE names several; none is promised for others.",
            _other_order,
        ),
        Kind(
            "OR, and a value before a comparison",
            "As they say; DynamoDB Local forgets other conditions beside an OR of keys, and takes "
            "'x' < key for key < 'x'.",
            _or,
        ),
        Kind(
            "columns within documents",
            "Named by the end of their path; DynamoDB Local does so in single statements alone, "
            "and not behind a position.",
            _nested_columns,
        ),
        Kind(
            "another one of two faults of a statement is reported",
            "Neither is documented to come first.",
            lambda difference: (
                difference.request.operation == ONE
                and both_refuse(difference)
                and difference.our_error != "InternalFailure"
                and stage_of(difference.ours) is not None
                and stage_of(difference.local) is not None
            ),
        ),
        Kind(
            "a missing index of a statement",
            "It is not named, as observed on the service.",
            messages_match(
                r"The table does not have the specified index$",
                r"The table does not have the specified index: ",
                ONE,
            ),
        ),
    )
