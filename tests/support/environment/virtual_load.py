"""Applies load to a table's throughput limits in virtual time, and records the accepted units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from dynactor.model.capacity import IndexUnits, Receipt
from dynactor.model.errors import ThrottlingReason
from dynactor.model.limits import BURST_SECONDS, PARTITION_READ_UNITS, PARTITION_WRITE_UNITS
from dynactor.model.throttling.resource import (
    OperationThroughput,
    ResourceLimits,
    ResourceThroughput,
)
from dynactor.model.throttling.table_limits import IndexWrite, TableLimits, ThrottlingMode

TABLE_ARN = "arn:aws:dynamodb:eu-central-1:000000000000:table/t"
INDEX_ARN = f"{TABLE_ARN}/index/i"
INDEX = "i"
INDEX_ID = 1
# Clients start their seconds at different times; the golden ratio spreads any number of clients
# evenly.
_OUT_OF_STEP = 0.618034


def provisioned(write_units: int, read_units: int = 1) -> ResourceThroughput:
    """The throughput of a provisioned table or index."""
    return ResourceThroughput(
        "PROVISIONED",
        OperationThroughput(read_units, read_units),
        OperationThroughput(write_units, write_units),
    )


def on_demand(
    *, warm_writes: int = 4 * PARTITION_WRITE_UNITS, max_writes: int | None = None
) -> ResourceThroughput:
    """The throughput of an on-demand table or index."""
    return ResourceThroughput(
        "PAY_PER_REQUEST",
        OperationThroughput(0, 4 * PARTITION_READ_UNITS),
        OperationThroughput(0, warm_writes, max_writes),
    )


def limits(
    throughput: ResourceThroughput,
    partitions: int,
    *,
    index: tuple[ResourceThroughput, int] | None = None,
    mode: ThrottlingMode = "enforce",
    saved_seconds: float = BURST_SECONDS,
) -> TableLimits:
    """The limits at time 0 of a new table with partitions 0, 1, …, and of its index ``i``.

    Both start with a burst of ``saved_seconds``.
    """

    def resource(
        arn: str, of_one: ResourceThroughput, numbers: range, name: str | None = None
    ) -> ResourceLimits:
        return ResourceLimits(arn, of_one, numbers, 0.0, name, saved_seconds=saved_seconds)

    made = TableLimits(resource(TABLE_ARN, throughput, range(partitions)), mode)
    if index is not None:
        of_index, index_partitions = index
        made.indexes[INDEX_ID] = resource(INDEX_ARN, of_index, range(index_partitions), INDEX)
    return made


class Writes(NamedTuple):
    """Writes that one client offers, evenly over each second.

    Each write takes ``units`` of the table's partition, and as many of ``index_partition`` if
    given.
    """

    partition: int
    per_second: int
    units: float = 1.0
    index_partition: int | None = None


class Outcome(NamedTuple):
    """The outcome of the load in one second: accepted units by client, refusals by reason."""

    accepted: list[float]
    refused: Counter[str]

    @property
    def units(self) -> float:
        """The accepted units of all clients."""
        return sum(self.accepted)


def offer_second(table: TableLimits, load: Sequence[Writes], second: int) -> Outcome:
    """Offer all writes of one second, in the order of their times."""
    moments = sorted(
        ((at + client * _OUT_OF_STEP % 1.0) / writes.per_second, client)
        for client, writes in enumerate(load)
        for at in range(writes.per_second)
    )
    accepted = [0.0] * len(load)
    refused: Counter[str] = Counter()
    prepared = [_prepared(writes) for writes in load]
    for moment, client in moments:
        receipt, index_writes = prepared[client]
        writes = load[client]
        refusal = table.take_write(writes.partition, receipt, index_writes, second + moment)
        if refusal is None:
            accepted[client] += writes.units
        else:
            refused.update(_texts(refusal.reasons))
    return Outcome(accepted, refused)


def offer(table: TableLimits, load: Sequence[Writes], seconds: Iterable[int]) -> list[Outcome]:
    """Offer the same load in each of these seconds."""
    return [offer_second(table, load, second) for second in seconds]


def taken_units(outcomes: Iterable[Outcome]) -> list[float]:
    """The units accepted in each second."""
    return [outcome.units for outcome in outcomes]


def reasons_of(outcomes: Iterable[Outcome]) -> set[str]:
    """The reasons of all refusals."""
    return set().union(*(outcome.refused for outcome in outcomes))


Kind = Literal["LocalSecondaryIndexes", "GlobalSecondaryIndexes"]


def receipt(
    units: float, *, global_units: float | None = None, local_units: float | None = None
) -> Receipt:
    """The receipt of a write to the table, its index ``i`` and its local index."""
    kinds: tuple[tuple[str, Kind, float | None], ...] = (
        (INDEX, "GlobalSecondaryIndexes", global_units),
        ("local", "LocalSecondaryIndexes", local_units),
    )
    return Receipt(
        write_units=units,
        indexes=tuple(
            IndexUnits(name, kind, write_units=of_index)
            for name, kind, of_index in kinds
            if of_index is not None
        ),
    )


def _prepared(writes: Writes) -> tuple[Receipt, tuple[IndexWrite, ...]]:
    if writes.index_partition is None:
        return receipt(writes.units), ()
    return (
        receipt(writes.units, global_units=writes.units),
        (IndexWrite(INDEX_ID, writes.index_partition, writes.units),),
    )


def _texts(reasons: Iterable[ThrottlingReason]) -> list[str]:
    return [reason.reason for reason in reasons]
