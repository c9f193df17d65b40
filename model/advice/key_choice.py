"""Arithmetic for choosing a partition key: skew, suffixes for a hot key, and their cost.

Source: AWS Database Blog, "Choosing the Right DynamoDB Partition Key" (S139, S144-S150); Developer
Guide, "Using write sharding to distribute workloads evenly".
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import Final

from msgspec import Struct

from dynactor.model.capacity import read_blocks, read_units, write_units
from dynactor.model.limits import PAGE_BYTES, PARTITION_WRITE_UNITS

_TOP: Final = 10


def suffixes_for_writes(writes_per_second: float, item_size_bytes: int) -> int:
    """The number of suffixes that spread a key's writes over partitions, at least 1 (S145, A9).

    Writes per second, times the item's size in whole KB, over a partition's 1,000.
    """
    units = writes_per_second * write_units(item_size_bytes)
    return ceil(units / PARTITION_WRITE_UNITS) or 1


class Skew(Struct, frozen=True):
    """The skew of load over keys or partitions.

    ``hottest_share`` and ``top_ten_share`` are fractions of all load. ``effective_count`` is the
    number of equally loaded keys with the same skew. It is the number of keys if all have the same
    load, and 1 if one key has all load.
    """

    hottest_share: float
    top_ten_share: float
    effective_count: float


def skew(loads: Iterable[float], all_load: float | None = None) -> Skew | None:
    """The skew of loads in any unit; None without load.

    ``all_load`` is the load of all keys, if only the hottest are known. Each of the other
    keys is assumed to have a negligible load.
    """
    known = [load for load in loads if load > 0]
    total = sum(known) if all_load is None else all_load
    if total <= 0 or not known:
        return None
    assert sum(known) <= total * (1 + 1e-9), "the known keys are some of all"
    top = sorted(known, reverse=True)[:_TOP]
    return Skew(
        top[0] / total, sum(top) / total, total * total / sum(load * load for load in known)
    )


class QueryCost(Struct, frozen=True):
    """The cost of reading a whole item collection: requests, and read units in total."""

    requests: int
    read_units: float


def query_cost(collection_bytes: int, suffixes: int = 1, *, consistent: bool = False) -> QueryCost:
    """The cost of querying a collection that is spread evenly over suffixes (S148, S150).

    Each suffix needs a separate query. The size of each query is rounded up separately, to at least
    one unit of 4 KB.
    """
    assert suffixes >= 1
    each_bytes = -(-collection_bytes // suffixes)
    pages = -(-each_bytes // PAGE_BYTES) or 1
    blocks = read_blocks(each_bytes) or 1
    return QueryCost(suffixes * pages, suffixes * read_units(blocks, consistent=consistent))
