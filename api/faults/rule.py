"""A fault rule: its fault, and the requests that it matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal, TypeAlias, get_args

from msgspec import Meta, Struct

from dynactor.api.admin_api.times import parse_time
from dynactor.api.execution.operation import Operation, OperationFault

Fault: TypeAlias = Literal[
    OperationFault,
    "internal-server-error",
    "service-unavailable",
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

_OPERATION_FAULTS: Final = frozenset(get_args(OperationFault))

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

    def matches(self, operation: Operation) -> bool:
        """Whether requests for an operation may get the fault."""
        is_named = self.operation is None or operation.name in self._named
        return is_named and self._happens_to(operation)

    @property
    def _named(self) -> Sequence[str]:
        named = self.operation or ()
        return (named,) if isinstance(named, str) else named

    def _happens_to(self, operation: Operation) -> bool:
        return self.fault not in _OPERATION_FAULTS or self.fault in operation.faults

    @property
    def until_epoch_seconds(self) -> float | None:
        """The end of the rule; raises ``ValueError`` if ``until`` is not a time."""
        return parse_time(self.until) if isinstance(self.until, str) else self.until

    def check(self, operations: Mapping[str, Operation]) -> None:
        """Refuse a rule that no request can match; raises ``BadRule``."""
        unknown = set(self._named) - operations.keys()
        if unknown:
            raise BadRule(f"There is no operation {', '.join(sorted(unknown))}")
        others = {name for name in self._named if not self._happens_to(operations[name])}
        if others:
            raise BadRule(f"The fault {self.fault} does not happen to {', '.join(sorted(others))}")
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
