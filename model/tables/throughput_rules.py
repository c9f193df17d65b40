"""Rules for billing mode and throughput (provisioned, on-demand, warm) of tables and indexes.

Messages are AWS's, as measured by dynalite's suites or seen in October 2026. The maxima and the
rules for on-demand and warm throughput are AWS's documented ones ("Quotas", "DynamoDB warm
throughput"). Messages that were never seen are modeled on these, and marked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynactor.model.definitions.table import BillingMode, TableDefinition, Throughput
from dynactor.model.errors import LimitExceededException, ValidationException, invalid_value
from dynactor.model.limits import (
    ON_DEMAND_READ_UNITS,
    ON_DEMAND_WRITE_UNITS,
    TABLE_READ_UNITS,
    TABLE_WRITE_UNITS,
    THROUGHPUT_DECREASE_SECONDS,
    THROUGHPUT_DECREASES_PER_DAY,
    THROUGHPUT_UNITS,
)

NO_LIMIT = -1
ON_DEMAND_THROUGHPUT = Throughput(0, 0)


def check_of_new_table(
    billing_mode: BillingMode | None, throughput: Throughput | None, region: str
) -> None:
    """Refuse provisioned throughput on an on-demand table, and its absence on a provisioned one.

    Raises ``ValidationException``, or ``LimitExceededException`` above a table's maximum.
    """
    check_requested_mode(billing_mode, throughput)
    if billing_mode == "PAY_PER_REQUEST":
        return
    if throughput is None:
        raise invalid_value(
            "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is "
            "PROVISIONED"
        )
    _check_in_bounds(throughput)
    check_most(throughput, region)


def check_requested_mode(billing_mode: BillingMode | None, throughput: Throughput | None) -> None:
    """Refuse a request with throughput and the on-demand mode; raises ``ValidationException``."""
    if billing_mode == "PAY_PER_REQUEST" and throughput is not None:
        raise invalid_value(
            "ProvisionedThroughput cannot be specified when BillingMode is PAY_PER_REQUEST"
        )


def check_mode_of_table(billing_mode: BillingMode) -> None:
    """Refuse provisioned throughput for a table with this mode; raises ``ValidationException``."""
    if billing_mode == "PAY_PER_REQUEST":
        raise invalid_value(
            "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is "
            "PAY_PER_REQUEST"
        )


def _check_in_bounds(throughput: Throughput) -> None:
    for name, units in _members(throughput):
        if units > THROUGHPUT_UNITS:
            raise ValidationException(f"Given value {units} for {name} is out of bounds")


def check_bounds(throughput: Throughput) -> None:
    """Refuse an increase to more units than a table can have; raises ``ValidationException``."""
    _check_in_bounds(throughput)
    if throughput.read_units > TABLE_READ_UNITS or throughput.write_units > TABLE_WRITE_UNITS:
        raise ValidationException(
            "Cannot increase provisioned throughput to more than "
            f"{TABLE_READ_UNITS:,} units per table"
        )


def check_of_index(
    billing_mode: BillingMode | None,
    name: str,
    throughput: Throughput | None,
    *,
    with_new_table: bool = False,
) -> None:
    """Check a global index of a table with that mode like ``check_with_billing_mode`` (S166, S167).

    CreateTable (``with_new_table``) has its own message for a missing throughput.
    """
    if billing_mode == "PAY_PER_REQUEST":
        if throughput is not None:
            raise invalid_value(
                f"ProvisionedThroughput should not be specified for index: {name} when BillingMode "
                "is PAY_PER_REQUEST"
            )
    elif throughput is None and with_new_table:
        raise invalid_value(f"ProvisionedThroughput is not specified for index: {name}")
    elif throughput is None:
        raise _missing_for([name])
    elif not with_new_table:
        check_most_of_index(throughput)


def check_none_missing(names: Sequence[str]) -> None:
    """Refuse a provisioned table whose indexes lack throughput; raises ``ValidationException``."""
    if names:
        raise _missing_for(names)


def _missing_for(names: Sequence[str]) -> ValidationException:
    return invalid_value(f"ProvisionedThroughput must be specified for index: {','.join(names)}")


def check_bounds_of_index(name: str, throughput: Throughput, region: str) -> None:
    """Refuse more units for a new table's index than a request may have, or an index.

    Raises ``ValidationException`` above the maximum of a request, or ``LimitExceededException``
    above that of an index.
    """
    for member, units in _members(throughput):
        if units > THROUGHPUT_UNITS:
            raise ValidationException(
                f"Given value {units} for {member} is out of bounds for index {name}"
            )
    check_most(throughput, region)


def check_most(throughput: Throughput, region: str) -> None:
    """Refuse more units than the account's quota for a new table, or for an index of it.

    Raises ``LimitExceededException``.
    """
    _check_quota(dict(_members(throughput)), region)


def check_most_warm(warm: dict[str, Any] | None, region: str) -> None:
    """Refuse more warm units than the account's quota for a new table, or for an index of it.

    Raises ``LimitExceededException``.
    """
    _check_quota(warm or {}, region)


def _check_quota(units_by_member: dict[str, int], region: str) -> None:
    for name, units in units_by_member.items():
        most = TABLE_READ_UNITS if name.startswith("Read") else TABLE_WRITE_UNITS
        if units > most:
            raise LimitExceededException(
                f"The requested {name}, {units}, is above the per table maximum for the account "
                f"in {region}. Per table maximum: {most}"
            )


def check_most_of_index(throughput: Throughput) -> None:
    """Refuse more units than an index, like a table, can have; raises ``ValidationException``."""
    if any(units > THROUGHPUT_UNITS for _, units in _members(throughput)):
        raise ValidationException(
            "This operation cannot be performed with given input values. Please contact DynamoDB "
            "service team for more info: Action Blocked: IndexUpdate"
        )
    if throughput.read_units > TABLE_READ_UNITS or throughput.write_units > TABLE_WRITE_UNITS:
        raise ValidationException(
            "Cannot increase provisioned throughput to more than "
            f"{TABLE_READ_UNITS:,} units per global secondary index"
        )


def _members(throughput: Throughput) -> tuple[tuple[str, int], ...]:
    return (
        ("ReadCapacityUnits", throughput.read_units),
        ("WriteCapacityUnits", throughput.write_units),
    )


def changed(
    current: Throughput,
    wanted: Throughput,
    now_epoch_seconds: float,
    decreases_per_day: int = THROUGHPUT_DECREASES_PER_DAY,
) -> Throughput:
    """The throughput after a change of units, with its times and counts.

    Raises ``LimitExceededException`` if units were decreased too often today.
    """
    increase = wanted.read_units > current.read_units or wanted.write_units > current.write_units
    decrease = wanted.read_units < current.read_units or wanted.write_units < current.write_units
    if decrease:
        _check_decrease(current, now_epoch_seconds, decreases_per_day)
    return Throughput(
        wanted.read_units,
        wanted.write_units,
        now_epoch_seconds if increase else current.last_increase_epoch_seconds,
        now_epoch_seconds if decrease else current.last_decrease_epoch_seconds,
        decreases_today(current, now_epoch_seconds) + decrease,
    )


def _check_decrease(current: Throughput, now_epoch_seconds: float, per_day: int) -> None:
    """Refuse a decrease beyond the daily limit, unless the last one was over an hour ago.

    Source: "Quotas", "Decreasing provisioned throughput". AWS's message continues with the times of
    the last decrease and of the next possible one.
    """
    today = decreases_today(current, now_epoch_seconds)
    last = current.last_decrease_epoch_seconds
    if today < per_day or last is None:
        return
    if now_epoch_seconds - last >= THROUGHPUT_DECREASE_SECONDS:
        return
    raise LimitExceededException(
        "Subscriber limit exceeded: Provisioned throughput decreases are limited within a given "
        f"UTC day. After the first {per_day} decreases, each subsequent decrease in the same UTC "
        f"day can be performed at most once every {THROUGHPUT_DECREASE_SECONDS} seconds. Number "
        f"of decreases today: {today}."
    )


def decreases_today(current: Throughput, now_epoch_seconds: float) -> int:
    """The number of decreases since the day began in UTC."""
    last = current.last_decrease_epoch_seconds
    if last is None or last // _DAY_SECONDS != now_epoch_seconds // _DAY_SECONDS:
        return 0
    return current.decreases_today


_DAY_SECONDS = 86_400


def check_changes(current: Throughput, wanted: Throughput, subject: str = "table") -> None:
    """Refuse an unchanged throughput of ``subject``; raises ``ValidationException``."""
    if (current.read_units, current.write_units) != (wanted.read_units, wanted.write_units):
        return
    # AWS writes "for the table", "for the index <name>", but "provisioned for index <name>".
    holder = "the table" if subject == "table" else subject
    raise ValidationException(
        f"The provisioned throughput for the {subject} will not change. The requested value "
        "equals the current value. Current ReadCapacityUnits provisioned for "
        f"{holder}: {current.read_units}. Requested ReadCapacityUnits: {wanted.read_units}. "
        f"Current WriteCapacityUnits provisioned for {holder}: {current.write_units}. Requested "
        f"WriteCapacityUnits: {wanted.write_units}. Refer to the Amazon DynamoDB Developer "
        "Guide for current limits and how to request higher limits."
    )


def on_demand_limits(
    billing_mode: BillingMode,
    current: dict[str, Any] | None,
    wanted: dict[str, Any],
    subject: str = "table",
    *,
    with_new_table: bool = False,
) -> dict[str, Any] | None:
    """A table's or index's maxima after a request; -1 removes one. Raises ``ValidationException``.

    CreateTable (``with_new_table``) and UpdateTable have their own messages.
    """
    for name in wanted if billing_mode != "PAY_PER_REQUEST" else ():
        requirement = "table BillingMode is PROVISIONED."
        if not with_new_table:
            requirement = "the table BillingMode is PROVISIONED"
        raise invalid_value(f"{name} for OnDemandThroughput cannot be specified when {requirement}")
    for name, units in wanted.items():
        if units != NO_LIMIT and units < 1:
            raise invalid_value(
                f"Requested {name} for OnDemandThroughput for {subject} is outside of valid range"
            )
    return {**(current or {}), **wanted} or None


def warm(
    billing_mode: BillingMode,
    throughput: Throughput,
    current: dict[str, Any] | None,
    wanted: dict[str, Any],
    subject: str = "table",
) -> dict[str, Any] | None:
    """The warm throughput after a request, at least the current; raises ``ValidationException``."""
    initial = at_least_warm(billing_mode, throughput, None)
    least = at_least_warm(billing_mode, throughput, current)
    most = {"ReadUnitsPerSecond": TABLE_READ_UNITS, "WriteUnitsPerSecond": TABLE_WRITE_UNITS}
    for name, units in wanted.items():
        if units < initial[name]:
            raise invalid_value(
                f"Requested {name} for WarmThroughput for {subject} is lower than "
                f"{_initial(billing_mode, name)}"
            )
        if units < least[name]:
            raise invalid_value(
                f"Requested {name} for WarmThroughput for {subject} is lower than current "
                "WarmThroughput, decreasing WarmThroughput is not supported"
            )
        if units > most[name]:
            raise invalid_value(
                f"Requested {name} for WarmThroughput for {subject} is higher than the per-table "
                f"limit of {most[name]}"
            )
    return {**(current or {}), **wanted} or None


def _initial(billing_mode: BillingMode, name: str) -> str:
    """The words for a resource's first warm throughput. The address of the page is inferred."""
    if billing_mode == "PAY_PER_REQUEST":
        return (
            "initial throughput for OnDemand. See: https://docs.aws.amazon.com/amazondynamodb/"
            "latest/developerguide/on-demand-capacity-mode.html#on-demand-capacity-mode-initial"
        )
    units_member = "ReadCapacityUnits" if name.startswith("Read") else "WriteCapacityUnits"
    return f"{units_member} of ProvisionedThroughput"


def at_least_warm(
    billing_mode: BillingMode, throughput: Throughput, asked: dict[str, Any] | None
) -> dict[str, int]:
    """A table's warm throughput: the requested one, but at least that of its billing mode."""
    if billing_mode == "PAY_PER_REQUEST":
        reads, writes = ON_DEMAND_READ_UNITS, ON_DEMAND_WRITE_UNITS
    else:
        reads, writes = throughput.read_units, throughput.write_units
    asked = asked or {}
    return {
        "ReadUnitsPerSecond": max(reads, asked.get("ReadUnitsPerSecond", 0)),
        "WriteUnitsPerSecond": max(writes, asked.get("WriteUnitsPerSecond", 0)),
    }


def kept_warm(
    billing_mode: BillingMode, throughput: Throughput, current: dict[str, Any] | None
) -> dict[str, Any]:
    """The warm throughput that stays after a change of units or billing mode: the highest ever."""
    return {**(current or {}), **at_least_warm(billing_mode, throughput, current)}


def with_pending_times(
    current: Throughput, pending: Throughput, now_epoch_seconds: float
) -> Throughput:
    """The current units with the times of a change in progress, which answers show at once."""
    return Throughput(
        current.read_units,
        current.write_units,
        pending.last_increase_epoch_seconds,
        pending.last_decrease_epoch_seconds,
        decreases_today(current, now_epoch_seconds),
    )


def shown_warm_throughput(definition: TableDefinition) -> dict[str, int]:
    """The warm throughput of a table, as DescribeTable shows it."""
    return at_least_warm(definition.billing_mode, definition.throughput, definition.warm_throughput)
