"""Reads items of a table as clients see them, for tests without a server."""

from __future__ import annotations

from dynactor.actors.table.table import ItemRead, Table
from dynactor.model.keys import key
from dynactor.model.values.item import Item


async def items(table: Table, *keys: Item) -> list[Item | None]:
    """The items with these keys, read in sequence; None for missing ones."""
    found = [(await read_item(table, each)).stored for each in keys]
    return [None if stored is None else stored.item for stored in found]


async def read_item(table: Table, item_key: Item, *, consistent: bool = True) -> ItemRead:
    """The item with this key, and its cost; raises as ``Table.read_item`` does."""
    position = key.encode(table.definition.key_schema, item_key)
    read = table.read_item(position, consistent=consistent)
    return read if isinstance(read, ItemRead) else await read
