"""A fault rule: its fault, and the requests that it matches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from dynactor.api.admin_api.times import parse_time

Fault: TypeAlias = Literal[
    "throttling",
    "internal-server-error",
    "service-unavailable",
    "transaction-conflict",
    "unprocessed",
    "limit-exceeded",
    "expired-iterator",
    "delay",
    "cut-before",
    "cut-after",
    "cut-middle",
    "wrong-crc32",
]
# The name of a limit, as in the last part of DynamoDB's ThrottlingReasons.
ThrottlingLimit: TypeAlias = Literal[
    "ProvisionedThroughputExceeded",
    "KeyRangeThroughputExceeded",
    "MaxOnDemandThroughputExceeded",
    "AccountLimitExceeded",
]

READS: Final = frozenset({"GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems"})
_WRITES: Final = frozenset({"PutItem", "UpdateItem", "DeleteItem"})
_BATCHES: Final = frozenset({"BatchGetItem", "BatchWriteItem"})
TRANSACTIONS: Final = frozenset({"TransactGetItems", "TransactWriteItems", "ExecuteTransaction"})
_DATA: Final = (
    READS
    | _WRITES
    | _BATCHES
    | TRANSACTIONS
    | {"ExecuteStatement", "BatchExecuteStatement", "GetRecords"}
)
# The operations that a fault can happen to; a fault that is not listed applies to any operation.
_OPERATIONS: Final[Mapping[Fault, frozenset[str]]] = {
    "throttling": _DATA,
    "transaction-conflict": _WRITES | TRANSACTIONS,
    "unprocessed": _BATCHES,
    "limit-exceeded": frozenset({"GetRecords"}),
    "expired-iterator": frozenset({"GetRecords"}),
}

_Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=3600)]


class BadRule(ValueError):
    """The rule is invalid; the message says why."""


class FaultRule(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A fault, and the requests that get it.

    A request matches if it has the rule's operation, table, index and access key. The first
    ``after`` matching requests get no fault. After that, a request gets it with the probability
    ``share``, drawn from ``seed``. The rule ends after ``next`` faults, or when the server's clock
    shows ``until`` (epoch seconds or ISO 8601).
    """

    fault: Fault
    operation: str | list[str] | None = None
    table: str | None = None
    index: str | None = None
    key_id: str | None = None
    share: Annotated[float, Meta(gt=0, le=1)] = 1.0
    next: Annotated[int, Meta(ge=1)] | None = None
    after: Annotated[int, Meta(ge=0)] = 0
    until: float | str | None = None
    seed: int = 0
    # For throttling: the limit to report. The default is the limit of the table's billing mode.
    limit: ThrottlingLimit | None = None
    # For a delay: fixed, uniform between two values, or log-normal by median and 99th percentile.
    seconds: _Seconds | None = None
    from_seconds: _Seconds | None = None
    to_seconds: _Seconds | None = None
    median_seconds: Annotated[float, Meta(gt=0, le=3600)] | None = None
    p99_seconds: Annotated[float, Meta(gt=0, le=3600)] | None = None

    @property
    def operations(self) -> frozenset[str] | None:
        """The operations that match; None: all."""
        possible = _OPERATIONS.get(self.fault)
        if self.operation is None:
            return possible
        named = [self.operation] if isinstance(self.operation, str) else self.operation
        return frozenset(named)

    @property
    def until_epoch_seconds(self) -> float | None:
        """The end of the rule.

        Raises:
            ValueError: ``until`` is not a time.
        """
        return parse_time(self.until) if isinstance(self.until, str) else self.until

    def check(self, known_operations: frozenset[str]) -> None:
        """Refuse a rule that no request can match.

        Raises:
            BadRule: no request can match the rule.
        """
        named = self.operations or frozenset()
        unknown = named - known_operations
        if unknown:
            raise BadRule(f"There is no operation {', '.join(sorted(unknown))}")
        possible = _OPERATIONS.get(self.fault)
        if possible is not None and not named <= possible:
            others = ", ".join(sorted(named - possible))
            raise BadRule(f"The fault {self.fault} does not happen to {others}")
        if self.limit is not None and self.fault != "throttling":
            raise BadRule("Only the fault throttling has a limit")
        try:
            _ = self.until_epoch_seconds
        except ValueError as error:
            raise BadRule(f"until: {error}") from None
        self._check_delay()

    def _check_delay(self) -> None:
        fixed = (self.seconds,)
        even = (self.from_seconds, self.to_seconds)
        spread = (self.median_seconds, self.p99_seconds)
        given = [each for each in (fixed, even, spread) if any(one is not None for one in each)]
        if self.fault != "delay":
            if given:
                raise BadRule("Only the fault delay has seconds")
            return
        if len(given) != 1 or None in given[0]:
            raise BadRule(
                "A delay has seconds, or from_seconds and to_seconds, or median_seconds and "
                "p99_seconds"
            )
        if len(given[0]) > 1 and given[0][0] > given[0][1]:  # type: ignore[operator]
            raise BadRule("The second of the two times must not be the shorter one")
