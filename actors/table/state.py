"""A table as DescribeTable shows it: its definition and counters."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import TABLE_INDEX_ID, TableDefinition


class IndexCounters(Struct, frozen=True):
    """Number of entries of an index, and their size in bytes with overhead (S58)."""

    item_count: int
    size_bytes: int


class TableState(Struct, frozen=True):
    """A table's definition and counters, as DescribeTable shows them."""

    definition: TableDefinition
    item_count: int = 0
    size_bytes: int = 0
    indexes: Mapping[str, IndexCounters] = {}
    # The ids of indexes, 0 for the table, that are being split because of their throughput.
    growing: tuple[int, ...] = ()


async def table_state(table: Table) -> TableState:
    """A table's definition and durable counters."""
    heads = await table.heads()

    def counters(index_id: int) -> IndexCounters:
        return IndexCounters(
            sum(head.item_counts.get(index_id, 0) for head in heads),
            sum(head.sizes_bytes.get(index_id, 0) for head in heads),
        )

    table_counters = counters(TABLE_INDEX_ID)
    return TableState(
        table.definition,
        table_counters.item_count,
        table_counters.size_bytes,
        {index.name: counters(index.index_id) for index in table.definition.indexes},
    )
