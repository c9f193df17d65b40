"""An index is added to a table while a transaction holds its items."""

from __future__ import annotations

from actors.holds import Join, Prepare, Resolve, TransactionPart
from actors.pages import ReadRange, read_page
from actors.table import Table
from model import key_range
from model.global_index_rules import NewGlobalIndex
from model.item import Item, decode
from model.key import KeyAttribute
from model.page import PageRules
from model.schema_rules import KeyElement
from model.table_rules import TableEdit
from tests.support.databases import put, running_database, table_definition, thread
from tests.support.store import memory_store
from tests.support.transacting import actions, until

BY_POSTS = TableEdit(
    index_creates=(NewGlobalIndex("by_posts", (KeyElement("posts", "HASH"),), "ALL"),),
    attribute_definitions=(KeyAttribute("posts", "N"),),
)


async def entries(table: Table) -> list[Item]:
    """What the index of the table holds, once it has all changes."""
    [index] = table.definition.global_indexes
    await until(lambda: not table.followers.index_lag_records(index.definition))
    page = await read_page(table, ReadRange(key_range.WHOLE, PageRules(), index=index.definition))
    return sorted((decode(item) for item in page.items), key=str)


async def test_an_item_held_while_an_index_was_added_is_in_the_index() -> None:
    item = thread("EC2", "a", posts=1)
    async with (
        memory_store() as store,
        running_database(store, index_allocation_seconds=0.0) as database,
    ):
        await database.create_table(table_definition())
        table = database.table("Thread")
        [action] = [action for _, action in actions((table, put(item)))]
        await table.send(action.position, Prepare(TransactionPart(b"held", 1, (action,))))

        await database.update_table("Thread", BY_POSTS)
        await until(lambda: table.definition.global_indexes[0].status == "ACTIVE")

        number = table.number_of(action.position)
        joined = await table.join(number, Join(b"round", (b"held",)))
        assert joined is not None
        await store.commit([joined.group])
        table.resolve(number, Resolve(b"round", committed=True))
        # The partition takes this only once it knows the outcome.
        await table.write(put(thread("EC2", "b", posts=2)))

        assert await entries(table) == [item, thread("EC2", "b", posts=2)]
