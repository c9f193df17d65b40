"""Changes a table's definition.

The partitions get the new definition if it affects them. Then the definition is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeAlias

from msgspec import structs

from dynactor.actors.catalog.catalog_owner import CatalogOwner
from dynactor.actors.table.table import Table
from dynactor.model.errors import DynamoDBError
from dynactor.model.tables.table import TableDefinition
from dynactor.storage.catalog import EndedLog, TableRecord
from dynactor.storage.store import StoreError, Unknown


class Stored(NamedTuple):
    """A table's record, and other rows to store with it."""

    record: TableRecord
    puts: Sequence[tuple[bytes, bytes]] = ()
    deletes: Sequence[bytes] = ()


_Storing: TypeAlias = Callable[[TableRecord, Mapping[int, int]], Stored]


def _record_alone(record: TableRecord, counters: Mapping[int, int]) -> Stored:
    del counters
    return Stored(record)


async def redefine(
    owner: CatalogOwner,
    table: Table,
    definition: TableDefinition,
    storing: _Storing = _record_alone,
) -> dict[int, int]:
    """Change a table's definition, durably.

    ``storing`` gets the record with that definition and the returned counters, and returns the rows
    to store.

    Returns:
        The counter of the last change under the old definition, by partition number.

    Raises:
        Unknown: the partitions use the new definition until the catalog is loaded again.
        StoreError, DynamoDBError: nothing was changed.
    """
    old = table.definition
    try:
        counters = await table.redefine(definition)
        stored = storing(structs.replace(table.record, definition=definition), counters)
        balances = table.throttle.rows_before(definition)
        await owner.put(stored.record, puts=[*stored.puts, *balances], deletes=stored.deletes)
    except Unknown:
        raise
    except (StoreError, DynamoDBError):
        # Return to the old definition: the followers of its logs must not miss any later write.
        with suppress(DynamoDBError):
            await table.redefine(old)
        raise
    table.record = stored.record
    return counters


async def store(
    owner: CatalogOwner,
    table: Table,
    definition: TableDefinition,
    *,
    range_deletes: Sequence[tuple[bytes, bytes]] = (),
) -> None:
    """Store a definition, without sending it to the table's partitions.

    Raises:
        StoreError: nothing was changed.
    """
    record = structs.replace(table.record, definition=definition)
    balances = table.throttle.rows_before(definition)
    await owner.put(record, puts=balances, range_deletes=range_deletes)
    table.record = record


def without_followers(record: TableRecord, gone: Collection[bytes]) -> TableRecord:
    """The record of a table without these subscribers of its ended logs.

    Otherwise a later subscriber with the same id would have to read these logs.
    """
    return _with_ended_logs(
        record, lambda log: tuple(each for each in log.subscribers if each not in gone)
    )


def with_follower(
    record: TableRecord, subscriber: bytes, partition_numbers: Collection[int]
) -> TableRecord:
    """The record of a table with a new subscriber of these ended logs."""
    return _with_ended_logs(
        record,
        lambda log: (
            (*log.subscribers, subscriber) if log.number in partition_numbers else log.subscribers
        ),
    )


def _with_ended_logs(
    record: TableRecord, subscribers: Callable[[EndedLog], tuple[bytes, ...]]
) -> TableRecord:
    return structs.replace(
        record,
        ended_logs=tuple(
            structs.replace(log, subscribers=subscribers(log)) for log in record.ended_logs
        ),
    )
