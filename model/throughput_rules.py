"""What may be asked of a table's capacity: billing mode, provisioned, on-demand, warm.

Messages are those of AWS as dynalite's suites measured them. The maxima and the rules for
on-demand and warm throughput are AWS's documented ones ("Quotas", "DynamoDB warm throughput");
their wording follows the measured ones.
"""

from __future__ import annotations

from typing import Any

from model.errors import ValidationException
from model.limits import (
    ON_DEMAND_READ_UNITS,
    ON_DEMAND_WRITE_UNITS,
    TABLE_READ_UNITS,
    TABLE_WRITE_UNITS,
    THROUGHPUT_UNITS,
)
from model.schema_rules import INVALID
from model.table import BillingMode, TableDefinition, Throughput

NO_LIMIT = -1
ON_DEMAND_THROUGHPUT = Throughput(0, 0)


def check_with_billing_mode(
    billing_mode: BillingMode | None, throughput: Throughput | None
) -> None:
    """Refuse provisioned throughput for an on-demand table, and a provisioned one without.

    Raises:
        ValidationException: the two don't go together, or the units are out of bounds.
    """
    if billing_mode == "PAY_PER_REQUEST":
        if throughput is not None:
            raise ValidationException(
                f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified "
                "when BillingMode is PAY_PER_REQUEST"
            )
        return
    if throughput is None:
        raise ValidationException(
            f"{INVALID}ReadCapacityUnits and WriteCapacityUnits must both be specified "
            "when BillingMode is PROVISIONED"
        )
    check_bounds(throughput)


def check_bounds(throughput: Throughput) -> None:
    """Refuse more units than a table can have.

    Raises:
        ValidationException: too many units.
    """
    for name, units in (
        ("ReadCapacityUnits", throughput.read_units),
        ("WriteCapacityUnits", throughput.write_units),
    ):
        if units > THROUGHPUT_UNITS:
            raise ValidationException(f"Given value {units} for {name} is out of bounds")
    if throughput.read_units > TABLE_READ_UNITS or throughput.write_units > TABLE_WRITE_UNITS:
        raise ValidationException(
            "Cannot increase provisioned throughput to more than "
            f"{TABLE_READ_UNITS:,} units per table"
        )


def changed(current: Throughput, wanted: Throughput, now_epoch_seconds: float) -> Throughput:
    """The throughput after a change of units, with the times and counts it leaves."""
    increase = wanted.read_units > current.read_units or wanted.write_units > current.write_units
    decrease = wanted.read_units < current.read_units or wanted.write_units < current.write_units
    return Throughput(
        wanted.read_units,
        wanted.write_units,
        now_epoch_seconds if increase else current.last_increase_epoch_seconds,
        now_epoch_seconds if decrease else current.last_decrease_epoch_seconds,
        _decreases_today(current, now_epoch_seconds) + decrease,
    )


def _decreases_today(current: Throughput, now_epoch_seconds: float) -> int:
    """Days are UTC's."""
    last = current.last_decrease_epoch_seconds
    if last is None or last // _DAY_SECONDS != now_epoch_seconds // _DAY_SECONDS:
        return 0
    return current.decreases_today


_DAY_SECONDS = 86_400


def check_changes(current: Throughput, wanted: Throughput) -> None:
    """Refuse an update of the throughput to what it is.

    Raises:
        ValidationException: nothing would change.
    """
    if (current.read_units, current.write_units) != (wanted.read_units, wanted.write_units):
        return
    raise ValidationException(
        "The provisioned throughput for the table will not change. The requested value equals "
        "the current value. Current ReadCapacityUnits provisioned for the table: "
        f"{current.read_units}. Requested ReadCapacityUnits: {wanted.read_units}. Current "
        f"WriteCapacityUnits provisioned for the table: {current.write_units}. Requested "
        f"WriteCapacityUnits: {wanted.write_units}. Refer to the Amazon DynamoDB Developer "
        "Guide for current limits and how to request higher limits."
    )


def on_demand_limits(
    billing_mode: BillingMode,
    current: dict[str, Any] | None,
    wanted: dict[str, Any],
) -> dict[str, Any] | None:
    """The maxima of an on-demand table after a request; -1 takes one away.

    Raises:
        ValidationException: the table is provisioned, or a maximum is no number of units.
    """
    if billing_mode != "PAY_PER_REQUEST":
        raise ValidationException(
            f"{INVALID}OnDemandThroughput can only be specified when BillingMode is PAY_PER_REQUEST"
        )
    for name, units in wanted.items():
        if units != NO_LIMIT and units < 1:
            raise ValidationException(
                f"{INVALID}{name} must be at least 1, or {NO_LIMIT} for no maximum"
            )
    return {**(current or {}), **wanted} or None


def warm(
    billing_mode: BillingMode,
    throughput: Throughput,
    current: dict[str, Any] | None,
    wanted: dict[str, Any],
) -> dict[str, Any] | None:
    """The warm throughput of a table after a request: never less than what it has anyway.

    Raises:
        ValidationException: less than that, or more than a table can have.
    """
    least = at_least_warm(billing_mode, throughput, current)
    most = {"ReadUnitsPerSecond": TABLE_READ_UNITS, "WriteUnitsPerSecond": TABLE_WRITE_UNITS}
    for name, units in wanted.items():
        if units < least[name]:
            raise ValidationException(
                f"{INVALID}Requested {name} for WarmThroughput for table is lower than current "
                f"{name}. Requested: {units}, current: {least[name]}"
            )
        if units > most[name]:
            raise ValidationException(
                f"{INVALID}Requested {name} for WarmThroughput for table is higher than the "
                f"per-table limit of {most[name]}"
            )
    return {**(current or {}), **wanted} or None


def at_least_warm(
    billing_mode: BillingMode, throughput: Throughput, asked: dict[str, Any] | None
) -> dict[str, int]:
    """The warm throughput that a table has: what was asked for, and no less than its mode gives."""
    if billing_mode == "PAY_PER_REQUEST":
        reads, writes = ON_DEMAND_READ_UNITS, ON_DEMAND_WRITE_UNITS
    else:
        reads, writes = throughput.read_units, throughput.write_units
    asked = asked or {}
    return {
        "ReadUnitsPerSecond": max(reads, asked.get("ReadUnitsPerSecond", 0)),
        "WriteUnitsPerSecond": max(writes, asked.get("WriteUnitsPerSecond", 0)),
    }


def warm_of(definition: TableDefinition) -> dict[str, int]:
    """The warm throughput of a table, as DescribeTable shows it."""
    return at_least_warm(definition.billing_mode, definition.throughput, definition.warm_throughput)
