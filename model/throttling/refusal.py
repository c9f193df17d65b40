"""The limits that refuse requests, and their errors.

The billing mode decides the error. The messages are those that botocore's service model documents
in full for the reasons of a canceled transaction.

Sources: API reference, "ThrottlingReason" and "TransactionCanceledException"; Developer Guide,
"Error handling with DynamoDB" (RequestLimitExceeded is for on-demand tables that can't be scaled
any further), "Maximum throughput for on-demand tables" (the message of that limit).
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, Literal, TypeAlias

from msgspec import Struct, structs

from dynactor.model.definitions.table import BillingMode
from dynactor.model.errors import (
    ProvisionedThroughputExceededException,
    RequestLimitExceeded,
    Throttled,
    ThrottlingException,
    ThrottlingReason,
)

OperationType: TypeAlias = Literal["Read", "Write"]

_TABLE_PROVISIONED: Final = (
    "The level of configured provisioned throughput for the table was exceeded. Consider "
    "increasing your provisioning level with the UpdateTable API."
)
_INDEX_PROVISIONED: Final = (
    "The level of configured provisioned throughput for one or more global secondary indexes of "
    "the table was exceeded. Consider increasing your provisioning level for the "
    "under-provisioned global secondary indexes with the UpdateTable API."
)
_TABLE_ON_DEMAND: Final = (
    "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically "
    "scaling your table or index so please try again shortly. If exceptions persist, check if you "
    "have a hot key: "
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html."
)
_INDEX_ON_DEMAND: Final = (
    "Throughput exceeds the current capacity for one or more global secondary indexes. DynamoDB "
    "is automatically scaling your index so please try again shortly."
)
_MAX_ON_DEMAND: Final = (
    "Throughput exceeds the maximum OnDemandThroughput configured on table or index"
)
_ACCOUNT: Final = (
    "Throughput exceeds the current throughput limit for your account. Please contact AWS Support "
    "at https://aws.amazon.com/support request a limit increase"
)


class LimitType(Enum):
    """The limits of a table or index."""

    # The provisioned units, including saved units and units lent by other partitions.
    PROVISIONED = auto()
    # The ceiling of one partition.
    KEY_RANGE = auto()
    # Twice the previous peak of all partitions of an on-demand table.
    GROWTH = auto()
    # The account's quota for one table.
    ACCOUNT = auto()
    # The configured MaxReadRequestUnits or MaxWriteRequestUnits of an on-demand table.
    MAX_ON_DEMAND = auto()

    # Every refused request hashes its limit, and Enum's own method is a slow Python function.
    __hash__ = object.__hash__


# The suffixes of DynamoDB's reasons. A growth refusal has the reason of a partition's ceiling,
# because the table lacks partitions.
_REASONS: Final = {
    LimitType.PROVISIONED: "ProvisionedThroughputExceeded",
    LimitType.KEY_RANGE: "KeyRangeThroughputExceeded",
    LimitType.GROWTH: "KeyRangeThroughputExceeded",
    LimitType.ACCOUNT: "AccountLimitExceeded",
    LimitType.MAX_ON_DEMAND: "MaxOnDemandThroughputExceeded",
}


class Refusal(Struct, frozen=True):
    """The first limit that refused a request, and the reasons of all limits that refused it.

    ``message`` is DynamoDB's text, ``error_type`` the error of a single operation. All fields are
    computed once, because the same limit often refuses many requests.
    """

    limit: LimitType
    billing_mode: BillingMode
    reasons: tuple[ThrottlingReason, ...]
    message: str
    error_type: type[Throttled]

    @property
    def cancellation_code(self) -> str:
        """The code in the reasons of a canceled transaction; its message is the same."""
        provisioned = self.billing_mode == "PROVISIONED"
        return "ProvisionedThroughputExceeded" if provisioned else "ThrottlingError"

    def error(self) -> Throttled:
        """The error that a single operation returns."""
        return self.error_type(self.message, self.reasons)


def refusal(
    operation: OperationType,
    limit: LimitType,
    billing_mode: BillingMode,
    resource_arn: str,
    *,
    is_index: bool,
) -> Refusal:
    """A refusal by one limit of one table or index."""
    resource = "Index" if is_index else "Table"
    reason = ThrottlingReason(f"{resource}{operation}{_REASONS[limit]}", resource_arn)
    message = _message(limit, billing_mode, is_index=is_index)
    return Refusal(limit, billing_mode, (reason,), message, _error_type(limit, billing_mode))


def both(first: Refusal, second: Refusal) -> Refusal:
    """The refusal by two limits: the first one's, with the reasons of both."""
    if second.reasons[0] in first.reasons:
        return first
    return structs.replace(first, reasons=first.reasons + second.reasons)


def _message(limit: LimitType, billing_mode: BillingMode, *, is_index: bool) -> str:
    if limit is LimitType.ACCOUNT:
        return _ACCOUNT
    if limit is LimitType.MAX_ON_DEMAND:
        return _MAX_ON_DEMAND
    if billing_mode == "PROVISIONED":
        return _INDEX_PROVISIONED if is_index else _TABLE_PROVISIONED
    return _INDEX_ON_DEMAND if is_index else _TABLE_ON_DEMAND


def _error_type(limit: LimitType, billing_mode: BillingMode) -> type[Throttled]:
    if limit is LimitType.ACCOUNT:
        return RequestLimitExceeded
    if billing_mode == "PROVISIONED":
        return ProvisionedThroughputExceededException
    return ThrottlingException
