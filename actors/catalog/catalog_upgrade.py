"""Upgrades a catalog of an earlier version, whose partitions got a head with their first write."""

from __future__ import annotations

from typing import Final

import structlog

from dynactor.actors.runtime.commit_retry import commit_past_stalls
from dynactor.storage import catalog, key_layout
from dynactor.storage.catalog import Catalog
from dynactor.storage.store import Group, Store

_HEADS_AT_ONCE: Final = 1_000

_log = structlog.get_logger("actors")


async def upgrade(store: Store, loaded: Catalog) -> Catalog:
    """Give each partition a head, unless this was done before; return the catalog.

    Nothing else may use the store meanwhile. The catalog's version is stored last, so the next
    start repeats an interrupted upgrade. Raises ``StoreError``.
    """
    if loaded.head_bytes is None or loaded.version:
        return loaded
    numbers = [number for table in loaded.tables for number in table.partition_numbers]
    for start in range(0, len(numbers), _HEADS_AT_ONCE):
        await _make_heads(store, numbers[start : start + _HEADS_AT_ONCE])
    group = Group(
        key_layout.CATALOG_HEAD,
        loaded.head_bytes,
        loaded.head_bytes,
        raises=[key_layout.CATALOG_VERSION],
    )
    await (await commit_past_stalls(store, [group]))
    _log.info("catalog_upgraded", partitions=len(numbers))
    return await catalog.load(store.latest)


async def _make_heads(store: Store, numbers: list[int]) -> None:
    values = await store.latest.load(list(map(key_layout.partition_head, numbers)))
    missing = [number for number, value in zip(numbers, values, strict=True) if value is None]
    if missing:
        await (await commit_past_stalls(store, list(map(catalog.new_head, missing))))
