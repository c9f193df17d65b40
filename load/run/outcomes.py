"""The meaning of the outcomes of operations."""

from __future__ import annotations

from typing import Final

from dynactor.load.work.operations import MISSING, UNPROCESSED

# Expected outcomes, which are not errors of the server.
EXPECTED: Final = frozenset(
    {"", MISSING, "ConditionalCheckFailedException", "TransactionConflictException"}
)
THROTTLES: Final = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "ThrottlingException",
        "RequestLimitExceeded",
        UNPROCESSED,
    }
)
_UNANSWERED: Final = frozenset({"Timeout", "ConnectionLost", "NotConnected"})


def counts_in_latency(outcome: str) -> bool:
    """Whether the latency of an operation with this outcome counts.

    A refusal does not count, because it is faster than a success and would make the server look
    faster. An unanswered request counts, because otherwise the worst latencies would be hidden.
    """
    return outcome in EXPECTED or outcome in _UNANSWERED or outcome == UNPROCESSED
