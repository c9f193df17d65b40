"""Items of a table as its clients would find them, for tests that have no server."""

from __future__ import annotations

from actors.table import ItemRead, Table
from model import key
from model.item import Item


async def items(table: Table, *keys: Item) -> list[Item | None]:
    """The items with these keys, read one after the other; None where there is none."""
    found = []
    for each in keys:
        position = key.encode(table.definition.key_schema, each)
        read = table.read_item(position, consistent=True)
        stored = (read if isinstance(read, ItemRead) else await read).stored
        found.append(None if stored is None else stored.item)
    return found
