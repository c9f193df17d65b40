"""The known kinds of differences in transactions, each with its reason."""

from __future__ import annotations

import re
from typing import Any, Final

from tests.differential.differences.compare import TRANSACTIONS, Difference
from tests.differential.differences.matchers import (
    CAPACITY,
    METRICS,
    NOTATION,
    Kind,
    refused_here,
    results_differ,
)
from tests.differential.peers.normalize import without_spelling

_OF_AN_UPDATE: Final = re.compile(
    r"The (provided expression refers|document path provided|update expression attempted)"
    r"|An operand in the update expression|Key attributes must be scalars"
    r"|(Number overflow\. |DynamoDB only supports precision)"
    r"|One or more parameter values (were invalid|are not valid)"
    r"|(ValidationError )?(Where clause does not|Multiple conditions|Key attribute)"
)


def _is_transaction(difference: Difference) -> bool:
    return difference.request.operation in TRANSACTIONS


def _reasons(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The cancellation reasons except ``None``, with normalized codes and messages."""
    return [
        {
            "Code": _CODES.get(str(reason.get("Message")), reason.get("Code")),
            "Message": str(reason.get("Message", "")).rstrip("."),
            "Item": _without_empty_maps(without_spelling(reason.get("Item"))),
        }
        for reason in answer.get("CancellationReasons", ())
    ]


def _without_empty_maps(node: Any) -> Any:
    """Remove types of empty maps, because DynamoDB Local omits them in the item of a reason."""
    if node == {"M": {}}:
        return {}
    if isinstance(node, dict):
        return {name: _without_empty_maps(member) for name, member in node.items()}
    if isinstance(node, list):
        return [_without_empty_maps(member) for member in node]
    return node


_CODES: Final = {"Duplicate primary key exists in table": "DuplicateItem"}


def _same_reasons(difference: Difference) -> bool:
    ours, local = _reasons(difference.ours), _reasons(difference.local)
    return bool(ours) and len(ours) == len(local) and all(map(_same_reason, ours, local))


def _same_reason(ours: dict[str, Any], local: dict[str, Any]) -> bool:
    # DynamoDB Local returns no item for an EXISTS.
    shown = ours["Item"] == local["Item"] or local["Item"] is None
    return shown and ours["Code"] == local["Code"] and ours["Message"] == local["Message"]


def _fault_of_an_update(difference: Difference) -> bool:
    """This server reports an update's fault as a reason; DynamoDB Local refuses or accepts it."""
    faults = [one for one in _reasons(difference.ours) if one["Code"] == "ValidationError"]
    return (
        _is_transaction(difference)
        and bool(faults)
        and all(_OF_AN_UPDATE.match(one["Message"]) for one in faults)
        and difference.local_error in {"", "ValidationException", "TransactionCanceledException"}
    )


_OF_A_STATEMENT: Final = re.compile(
    r"Requested resource not found|The provided key element does not match the schema"
    r"|One or more parameter values were invalid: (Missing the key|Type mismatch for key)"
)


def _missing_table_or_faulty_key(difference: Difference) -> bool:
    """This server reports each statement with such a fault as a reason."""
    faults = [one for one in _reasons(difference.ours) if one["Code"] != "None"]
    return (
        difference.request.operation == "ExecuteTransaction"
        and bool(difference.local_error)
        and any(_OF_A_STATEMENT.match(one["Message"]) for one in faults)
    )


TRANSACTION_KINDS: Final = (
    Kind(
        "capacity and metrics of transactions",
        "The API's model has all of it.",
        lambda difference: (
            _is_transaction(difference) and results_differ(CAPACITY, METRICS, NOTATION)(difference)
        ),
    ),
    Kind(
        "an item without any projected attribute",
        "It is left out; DynamoDB Local answers an empty item.",
        lambda difference: (
            difference.request.operation == "TransactGetItems"
            and results_differ(r"\.Responses\[\]\.Item \(local only\)", CAPACITY, NOTATION)(
                difference
            )
        ),
    ),
    Kind(
        "the texts of a transaction's cancellation reasons",
        "Without a full stop; DuplicateItem for a second INSERT, as in batches; an item that was "
        "asked for is shown.",
        _same_reasons,
    ),
    Kind(
        "a write's fault in a transaction",
        "A reason, by the API's model.",
        _fault_of_an_update,
    ),
    Kind(
        "a missing table or a faulty key in ExecuteTransaction",
        "A reason of each such statement, measured on the service in 2026.",
        _missing_table_or_faulty_key,
    ),
    Kind(
        "an item that is twice in a transaction",
        "It is reported before any item is looked at, of reads by statements, too.",
        lambda difference: (
            difference.our_message
            == "Transaction request cannot include multiple operations on one item"
        ),
    ),
    Kind(
        "a path into a key attribute of a ConditionCheck",
        "Refused, as in the condition of a write.",
        refused_here(r"Key attributes must be scalars; ", "TransactWriteItems"),
    ),
    Kind(
        "another one of two faults of a transaction is reported",
        "Each statement is parsed before any is looked at more closely.",
        lambda difference: (
            _is_transaction(difference)
            and difference.our_error == "ValidationException"
            and difference.local_error in {"ValidationException", "TransactionCanceledException"}
        ),
    ),
)
