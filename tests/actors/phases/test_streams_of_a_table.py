"""The streams of one table, as the database that becomes the table's home loads them."""

from __future__ import annotations

from typing import Final

from dynactor.actors.phases.streams import StreamRegistry, stream_row
from dynactor.streams.shard import Stream
from tests.support.databases.databases import running_database, table_definition
from tests.support.stores.rows import put
from tests.support.stores.store import memory_store

# More than one page of the store has.
COUNT: Final = 1_200


def a_stream(table_id: int, number: int) -> Stream:
    """A stream without shards."""
    schema = table_definition().key_schema
    return Stream(f"T{table_id}", table_id, f"L{number:05d}", "KEYS_ONLY", schema, 0.0, ())


async def test_all_streams_of_a_table_are_loaded_even_if_they_fill_several_pages():
    async with memory_store() as store, running_database(store) as database:
        streams = [a_stream(7, number) for number in range(COUNT)]
        await put(store, dict(map(stream_row, [*streams, a_stream(8, 0)])))
        registry = database.part(StreamRegistry)
        await registry.load_table(7)
        assert registry.all() == streams
