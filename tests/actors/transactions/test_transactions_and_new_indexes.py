"""An index is added to a table while a transaction has locked its items."""

from __future__ import annotations

from dynactor.actors.partition.item_locks import Join, Prepare, Resolve, TransactionPart
from dynactor.actors.table.messages import CreateTable, UpdateTable
from dynactor.actors.table.pages import ReadRange, read_page
from dynactor.actors.table.table import Table
from dynactor.model.key_conditions import key_range
from dynactor.model.keys.key import KeyAttribute
from dynactor.model.reads.page import PageRules
from dynactor.model.tables.global_index_rules import NewGlobalIndex
from dynactor.model.tables.schema_rules import KeyElement
from dynactor.model.tables.table_edits import TableEdit
from dynactor.model.values.item import Item, decode
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.databases.transacting import actions, until
from tests.support.stores.store import memory_store
from tests.support.tables.index_lag import index_lag_records

BY_POSTS = TableEdit(
    index_creates=(NewGlobalIndex("by_posts", (KeyElement("posts", "HASH"),), "ALL"),),
    attribute_definitions=(KeyAttribute("posts", "N"),),
)


async def entries(table: Table) -> list[Item]:
    """Wait until the table's index has all changes; return its entries."""
    [index] = table.definition.global_indexes
    await until(lambda: not index_lag_records(table, index.definition))
    page = await read_page(table, ReadRange(key_range.WHOLE, PageRules(), index=index.definition))
    return sorted((decode(item) for item in page.items), key=str)


async def test_an_item_locked_while_an_index_was_added_is_in_the_index() -> None:
    item = thread("EC2", "a", posts=1)
    async with (
        memory_store() as store,
        running_database(store, index_allocation_seconds=0.0) as database,
    ):
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        [action] = [action for _, action in actions((table, put(item)))]
        await table.send(action.position, Prepare(TransactionPart(b"held", 1, (action,))))

        await database.ask(UpdateTable("Thread", BY_POSTS))
        await until(lambda: table.definition.global_indexes[0].status == "ACTIVE")

        number = table.number_at(action.position)
        joined = await table.join(number, Join(b"round", (b"held",)))
        assert joined is not None
        await store.commit([joined.group])
        table.resolve(number, Resolve(b"round", committed=True))
        # The partition answers this write after it has processed the outcome.
        await table.write(put(thread("EC2", "b", posts=2)))

        assert await entries(table) == [item, thread("EC2", "b", posts=2)]
