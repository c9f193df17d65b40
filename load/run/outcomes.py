"""What the name that an operation ends with means."""

from __future__ import annotations

from typing import Final

from dynactor.load.work.operations import MISSING, UNPROCESSED

# Nothing is wrong: the server has answered what it should.
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
    """Whether the time is one that a client has waited for its answer.

    A refusal comes faster than an answer and would flatter the server; a request that never was
    answered would be missing where it matters most.
    """
    return outcome in EXPECTED or outcome in _UNANSWERED or outcome == UNPROCESSED
