"""Catalog records in an unknown format."""

from __future__ import annotations

import pytest
from msgspec import msgpack

from dynactor.storage import catalog, key_layout
from dynactor.storage.catalog import CatalogHead, PartitionRange, TableRecord
from dynactor.storage.store import Damaged, Group
from tests.support.databases.databases import table_definition
from tests.support.stores.store import memory_store


async def test_the_error_for_a_table_record_in_an_unknown_format_names_the_table():
    record = TableRecord(table_definition(), (PartitionRange(1, b""),))
    unknown = msgpack.decode(catalog.encode_record(record))
    unknown["definition"]["status"] = "PAUSED"
    puts = [(key_layout.table_record("Thread"), msgpack.encode(unknown))]
    async with memory_store() as store:
        head = catalog.encode_head(CatalogHead())
        await (await store.commit([Group(key_layout.CATALOG_HEAD, None, head, puts)]))
        with pytest.raises(Damaged, match=r"The record of table Thread is in no form .*PAUSED"):
            await catalog.load(store.latest)


async def test_a_head_in_an_unknown_format_is_reported_as_damaged():
    async with memory_store() as store:
        await (await store.commit([Group(key_layout.CATALOG_HEAD, None, b"\xc1")]))
        with pytest.raises(Damaged, match="The head of the catalog is in no form"):
            await catalog.load(store.latest)
