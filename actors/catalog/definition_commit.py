"""Changes a table's definition: for its partitions, or for all others only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, TypeAlias

from msgspec import structs

from dynactor.actors.catalog.catalog_owner import CatalogOwner
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import TableDefinition
from dynactor.storage.catalog import (
    CatalogHead,
    EndedLog,
    PartitionHead,
    TableRecord,
    decode_partition_head,
    raised_head,
)
from dynactor.storage.store import Group


class CommittedDefinition(NamedTuple):
    """A table's record, and other rows to store with it.

    ``catalog_head`` is the catalog's head after new numbers were assigned. ``heads`` begin or end
    partitions. ``during`` is in effect during the commit.
    """

    record: TableRecord
    puts: Sequence[tuple[bytes, bytes]] = ()
    deletes: Sequence[bytes] = ()
    range_deletes: Sequence[tuple[bytes, bytes]] = ()
    discards: Sequence[tuple[bytes, bytes]] = ()
    catalog_head: CatalogHead | None = None
    heads: Sequence[Group] = ()
    during: AbstractContextManager[None] = nullcontext()


_Storing: TypeAlias = Callable[[TableRecord, Mapping[int, int]], CommittedDefinition]


def _record_alone(record: TableRecord, _counters: Mapping[int, int]) -> CommittedDefinition:
    return CommittedDefinition(record)


async def redefine(
    owner: CatalogOwner,
    table: Table,
    definition: TableDefinition,
    storing: _Storing = _record_alone,
    content: Mapping[int, PartitionHead] | None = None,
) -> None:
    """Change the definition that a table's partitions decide by, durably, in one commit.

    The commit raises the definition's version in the heads of all partitions. So a partition that
    has decided by the old definition gets a ``Conflict``, loads the new one, and decides again.

    ``storing`` gets the record with that definition, and the counter of each partition's last
    change under the old one. It returns the rows to store, and may be called again.

    ``content`` has the new counts of items and bytes by partition, if rows were loaded into the
    table without the partitions. After ``StoreError``, nothing was changed, or the outcome is
    ``Unknown``.
    """
    version = table.record.definition_version + 1
    record = structs.replace(table.record, definition=definition, definition_version=version)
    numbers = [partition.number for partition in record.partitions]

    async def commit(stored_heads: dict[int, bytes]) -> TableRecord:
        heads = {n: decode_partition_head(head) for n, head in stored_heads.items()}
        for number, loaded in (content or {}).items():
            heads[number] = structs.replace(
                heads[number],
                item_counts=loaded.item_counts,
                sizes_bytes=loaded.sizes_bytes,
            )
        stored = storing(record, {number: head.counter for number, head in heads.items()})
        raised = [
            raised_head(
                number, stored_heads[number], structs.replace(head, definition_version=version)
            )
            for number, head in heads.items()
        ]
        balances = table.throttle.rows_before(definition)
        with stored.during:
            await owner.put(
                stored.record,
                head=stored.catalog_head,
                puts=[*stored.puts, *balances],
                deletes=stored.deletes,
                range_deletes=stored.range_deletes,
                discards=stored.discards,
                heads=[*raised, *stored.heads],
            )
        return stored.record

    table.record = await owner.past_conflicts(record, numbers, commit)
    # A decision that writes nothing makes no commit, so it meets no conflict.
    table.partitions.heads_changed()


async def store(
    owner: CatalogOwner,
    table: Table,
    definition: TableDefinition,
    *,
    range_deletes: Sequence[tuple[bytes, bytes]] = (),
) -> None:
    """Store a definition without sending it to partitions; ``StoreError`` changes nothing."""
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
