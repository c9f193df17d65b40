"""A Query or Scan reads partitions in order, also if an item collection is split between them."""

import pytest
from msgspec import structs

from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.pages import ReadRange, read_page
from dynactor.actors.table.table import Table
from dynactor.model.key_conditions import key_range
from dynactor.model.key_conditions.key_condition import KeyCondition
from dynactor.model.keys import key as keys
from dynactor.model.reads.page import PageRules
from dynactor.storage.catalog import PartitionRange
from tests.support.databases.databases import put, running_database, table_definition, thread


async def pages(table: Table, request: ReadRange) -> list[bytes]:
    """All items of a read, in pages of one item."""
    found: list[bytes] = []
    while True:
        page = await read_page(table, request)
        found += page.items
        if page.last is None:
            return found
        position = keys.encode(table.definition.key_schema, page.last)
        request = structs.replace(request, after=position)


def with_boundary_inside(table: Table, forum: str, subject: str) -> Table:
    """The same table, with partitions that divide an item collection at this item."""
    position = keys.encode(table.definition.key_schema, thread(forum, subject))
    record = structs.replace(
        table.record, partitions=(PartitionRange(901, b""), PartitionRange(902, position))
    )
    return Table(record, table._environment)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("limit", [None, 1, 3, 7])
async def test_a_query_of_a_collection_in_two_partitions_is_in_order(reverse, limit):
    async with running_database() as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        for at in range(20):
            await table.write(put(thread("EC2", f"{at:02}")))
            await table.write(put(thread("S3", f"{at:02}")))
        cut = with_boundary_inside(table, "EC2", "11")
        wanted = key_range.selected_range(KeyCondition(({"S": "EC2"},), ()))
        request = ReadRange(wanted, PageRules(limit=limit), reverse=reverse)
        expected = [f"{at:02}".encode() for at in range(20)]
        found = await pages(cut, request)
        assert len(found) == 20
        for item, subject in zip(found, expected[::-1] if reverse else expected, strict=True):
            assert b'"subject":{"S":"' + subject in item


@pytest.mark.parametrize("limit", [None, 1, 5])
@pytest.mark.parametrize("total_segments", [1, 2, 3, 8])
async def test_segments_of_a_scan_return_every_item_once_with_any_partitions(limit, total_segments):
    async with running_database() as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        for at in range(40):
            await table.write(put(thread(f"forum {at % 9}", f"{at:02}")))
        cut = with_boundary_inside(table, "forum 3", "12")
        found: list[bytes] = []
        for segment in range(total_segments):
            found += await pages(
                cut,
                ReadRange(
                    key_range.segment_range(segment, total_segments),
                    PageRules(limit=limit),
                    by_partition=True,
                ),
            )
        assert len(found) == len(set(found)) == 40
