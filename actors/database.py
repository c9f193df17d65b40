"""The database: its tables, and the one actor that makes, changes and deletes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final
from uuid import uuid4

import anyio
from msgspec import Struct, structs

from actors import partition_map
from actors.partition import PartitionSettings
from actors.runtime.clock import Clock
from actors.runtime.mailbox import Envelope, Mailbox, MailboxFull, Message
from actors.runtime.supervisor import Supervisor
from actors.table import Table
from model.errors import (
    DynamoDBError,
    InternalServerError,
    LimitExceededException,
    ResourceInUseException,
    ResourceNotFoundException,
)
from model.limits import ITEM_COLLECTION_BYTES, MIB
from model.partitions import partition_count
from model.table import TABLE_INDEX_ID, TableDefinition, TableStatus
from model.table_rules import TableEdit, apply_edit, check_deletable
from storage import catalog, keys_layout
from storage.catalog import Catalog, CatalogHead, TableRecord
from storage.store import Group, Store, StoreError

_MAILBOX_MESSAGES: Final = 1_000
# Deleted rows are compacted away at once where a table's deletion frees as much as this.
_RECLAIM_BYTES: Final = 16 * MIB


class DatabaseSettings(Struct, frozen=True):
    """What may be set for a database.

    ``table_transition_seconds`` is how long a table stays CREATING, UPDATING or DELETING;
    ``partitions_per_table`` overrides DynamoDB's formula and ``copy_messages`` sends every
    message through its bytes, both for tests.
    """

    region: str = "us-east-1"
    account_id: str = "000000000000"
    item_collection_limit_bytes: int = ITEM_COLLECTION_BYTES
    table_transition_seconds: float = 0.0
    partitions_per_table: int | None = None
    copy_messages: bool = False


class IndexCounters(Struct, frozen=True):
    """How many entries an index has, and their size in bytes with overhead (S58)."""

    item_count: int
    size_bytes: int


class TableState(Struct, frozen=True):
    """A table's definition and counters, as DescribeTable shows them."""

    definition: TableDefinition
    item_count: int = 0
    size_bytes: int = 0
    indexes: Mapping[str, IndexCounters] = {}


class CreateTable(Message[TableState], frozen=True):
    """Make a table; its ids, times and status are filled in."""

    definition: TableDefinition


class UpdateTable(Message[TableState], frozen=True):
    """Change a table's settings."""

    name: str
    edit: TableEdit


class DeleteTable(Message[TableState], frozen=True):
    """Delete a table and all its items."""

    name: str


class EndTransition(Message[None], frozen=True):
    """The time that a table stays in a passing state is over."""

    table_id: int
    name: str


class Database:
    """The tables. Requests find theirs here; changes of tables go through the mailbox.

    Invariant: ``_head`` is the catalog's head of the last durable group.
    """

    name = "database"

    def __init__(
        self, store: Store, settings: DatabaseSettings, clock: Clock, supervisor: Supervisor
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.mailbox = Mailbox(_MAILBOX_MESSAGES, copy_messages=settings.copy_messages)
        self.in_hand: list[Envelope] = []
        self._store = store
        self._supervisor = supervisor
        self._tables: dict[str, Table] = {}
        self._head = CatalogHead()
        self._head_bytes: bytes | None = None
        # Whether the actor ran before and did not end: what it holds may be half changed.
        self._crashed = False

    # -- for requests -----------------------------------------------------------------------

    def table(self, name: str) -> Table:
        """The table of that name, for reads and writes.

        Raises:
            ResourceNotFoundException: there is none, or it is being made or deleted.
        """
        table = self._tables.get(name)
        if table is None or table.definition.status in ("CREATING", "DELETING"):
            raise ResourceNotFoundException("Requested resource not found")
        return table

    def table_names(self) -> Sequence[str]:
        """The names of all tables, sorted."""
        return sorted(self._tables)

    async def describe(self, name: str) -> TableState:
        """A table's definition and durable counters.

        Raises:
            ResourceNotFoundException: there is no such table.
        """
        return await _state(self._named(name))

    async def create_table(self, definition: TableDefinition) -> TableState:
        """Make a table.

        Raises:
            ResourceInUseException: there is one of that name.
        """
        return await self._ask(CreateTable(definition))

    async def update_table(self, name: str, edit: TableEdit) -> TableState:
        """Change a table's settings.

        Raises:
            ResourceNotFoundException, ResourceInUseException: no such table, or not ACTIVE.
            ValidationException, LimitExceededException: as ``table_rules.apply_edit``.
        """
        return await self._ask(UpdateTable(name, edit))

    async def delete_table(self, name: str) -> TableState:
        """Delete a table.

        Raises:
            ResourceNotFoundException, ResourceInUseException: no such table, or it is being
                made or deleted.
            ValidationException: it is protected against deletion.
        """
        return await self._ask(DeleteTable(name))

    async def _ask(self, message: Message[TableState]) -> TableState:
        try:
            return await self.mailbox.put_nowait(message)
        except MailboxFull:
            raise LimitExceededException(
                "Too many table operations are waiting, try again"
            ) from None

    # -- the actor --------------------------------------------------------------------------

    async def run(self) -> None:
        """Work through the mailbox until it is closed and drained."""
        if self._crashed:
            self.adopt(await catalog.load(self._store.latest))
        self._crashed = True
        while batch := await self.mailbox.take(1, 1):
            self.in_hand = batch
            for envelope in batch:
                try:
                    envelope.answer(await self._handle(envelope.message))
                except DynamoDBError as error:
                    envelope.refuse(error)
                except StoreError as error:
                    envelope.refuse(InternalServerError(f"Nothing was changed: {error}"))
            self.in_hand = []
        self._crashed = False

    def adopt(self, loaded: Catalog) -> None:
        """Take over the catalog as it is stored: at start, and after a crash of the actor."""
        self._head, self._head_bytes = loaded.head, loaded.head_bytes
        known = {record.definition.name for record in loaded.tables}
        for name in self._tables.keys() - known:
            del self._tables[name]
        for record in loaded.tables:
            if record.definition.name not in self._tables:
                self._tables[record.definition.name] = self._table(record)
            self._transition(record.definition)

    async def _handle(self, message: Message[object]) -> object:
        match message:
            case CreateTable():
                return await self._create(message.definition)
            case UpdateTable():
                return await self._update(message)
            case DeleteTable():
                return await self._delete(message.name)
            case EndTransition():
                await self._end_transition(message)
                return None
        raise AssertionError(message)

    async def _create(self, wanted: TableDefinition) -> TableState:
        if wanted.name in self._tables:
            raise ResourceInUseException(f"Table already exists: {wanted.name}")
        now = self.clock.now_epoch_seconds()
        on_demand = wanted.billing_mode == "PAY_PER_REQUEST"
        definition = structs.replace(
            wanted,
            table_id=self._head.next_table_id,
            uuid=str(uuid4()),
            created_epoch_seconds=now,
            on_demand_since_epoch_seconds=now if on_demand else None,
            status="CREATING" if self.settings.table_transition_seconds else "ACTIVE",
        )
        count = self.settings.partitions_per_table or partition_count(definition)
        record = TableRecord(
            definition, partition_map.divide_evenly(self._head.next_partition_number, count)
        )
        head = CatalogHead(
            next_table_id=self._head.next_table_id + 1,
            next_partition_number=self._head.next_partition_number + count,
        )
        await self._commit(head, catalog.put_table(self._head_bytes, head, record))
        self._tables[definition.name] = self._table(record)
        self._transition(definition)
        return TableState(
            structs.replace(definition, status="CREATING"),
            indexes={index.name: IndexCounters(0, 0) for index in definition.local_indexes},
        )

    async def _update(self, message: UpdateTable) -> TableState:
        table = self._named(message.name)
        if table.definition.status != "ACTIVE":
            raise ResourceInUseException(
                "Attempt to change a resource which is still in use: Table is being "
                f"{_DOING[table.definition.status]}: {message.name}"
            )
        definition = apply_edit(table.definition, message.edit, self.clock.now_epoch_seconds())
        passing = definition.status == "UPDATING"
        if passing and not self.settings.table_transition_seconds:
            definition = structs.replace(definition, status="ACTIVE")
        await self._put(table, definition)
        self._transition(definition)
        state = await _state(table)
        if passing:
            return structs.replace(state, definition=structs.replace(definition, status="UPDATING"))
        return state

    async def _delete(self, name: str) -> TableState:
        table = self._named(name)
        definition = table.definition
        if definition.status != "ACTIVE":
            raise ResourceInUseException(
                "Attempt to change a resource which is still in use: Table is being "
                f"{_DOING[definition.status]}: {name}"
            )
        check_deletable(definition)
        state = await _state(table)
        deleting = structs.replace(definition, status="DELETING")
        if self.settings.table_transition_seconds:
            await self._put(table, deleting)
            self._transition(deleting)
        else:
            await self._drop(table, state.size_bytes)
        return structs.replace(state, definition=deleting)

    async def _end_transition(self, message: EndTransition) -> None:
        table = self._tables.get(message.name)
        if table is None or table.definition.table_id != message.table_id:
            return
        if table.definition.status == "DELETING":
            await self._drop(table, (await _state(table)).size_bytes)
        elif table.definition.status != "ACTIVE":
            await self._put(table, structs.replace(table.definition, status="ACTIVE"))

    async def _drop(self, table: Table, size_bytes: int) -> None:
        """Take a table away with everything in it, once its last write is answered."""
        record = table.record
        table.record = structs.replace(
            record, definition=structs.replace(table.definition, status="DELETING")
        )
        await table.close()
        try:
            await self._commit(
                self._head, catalog.delete_table(self._head_bytes, self._head, table.record)
            )
        except StoreError:
            table.reopen(record)
            raise
        del self._tables[table.definition.name]
        if size_bytes >= _RECLAIM_BYTES:
            start, end = keys_layout.table_range(table.definition.table_id)
            self._supervisor.run_aside(self._store.reclaim, start, end)

    async def _put(self, table: Table, definition: TableDefinition) -> None:
        record = structs.replace(table.record, definition=definition)
        await self._commit(self._head, catalog.put_table(self._head_bytes, self._head, record))
        table.record = record

    async def _commit(self, head: CatalogHead, group: Group) -> None:
        """Commit a change of the catalog and wait until it is durable."""
        await (await self._store.commit([group]))
        # Not before: a store that opens again after a full disk has no commit that failed.
        self._head, self._head_bytes = head, group.head

    # -- parts ------------------------------------------------------------------------------

    def _table(self, record: TableRecord) -> Table:
        return Table(
            record,
            self._store,
            self._supervisor,
            PartitionSettings(
                self.settings.item_collection_limit_bytes, self.settings.copy_messages
            ),
        )

    def _named(self, name: str) -> Table:
        table = self._tables.get(name)
        if table is None:
            raise ResourceNotFoundException(
                f"Requested resource not found: Table: {name} not found"
            )
        return table

    def _transition(self, definition: TableDefinition) -> None:
        """Tell the actor itself when a passing state is over."""
        if definition.status == "ACTIVE" or self.mailbox.closed:
            return
        message = EndTransition(definition.table_id, definition.name)
        asyncio.get_running_loop().call_later(
            self.settings.table_transition_seconds, self._tell, message
        )

    def _tell(self, message: EndTransition) -> None:
        if not self.mailbox.closed:
            self.mailbox.put_nowait(message)

    async def close(self) -> None:
        """Stop all partitions; every write taken is answered first."""
        for table in self._tables.values():
            await table.close()


_DOING: Final[dict[TableStatus, str]] = {
    "CREATING": "created",
    "UPDATING": "updated",
    "DELETING": "deleted",
    "ACTIVE": "used",
}


async def _state(table: Table) -> TableState:
    heads = await table.heads()

    def counters(index_id: int) -> IndexCounters:
        return IndexCounters(
            sum(head.item_counts.get(index_id, 0) for head in heads),
            sum(head.sizes_bytes.get(index_id, 0) for head in heads),
        )

    of_table = counters(TABLE_INDEX_ID)
    return TableState(
        table.definition,
        of_table.item_count,
        of_table.size_bytes,
        {index.name: counters(index.index_id) for index in table.definition.local_indexes},
    )


@asynccontextmanager
async def open_database(
    store: Store, settings: DatabaseSettings, clock: Clock
) -> AsyncIterator[Database]:
    """A running database over an open store, which stays open when this ends.

    Raises:
        StoreError: the catalog can't be read.
    """
    # Outside the group, which would hide what is wrong with the catalog in an ExceptionGroup.
    loaded = await catalog.load(store.latest)
    async with anyio.create_task_group() as task_group:
        supervisor = Supervisor(task_group)
        database = Database(store, settings, clock, supervisor)
        database.adopt(loaded)
        supervisor.start(database)
        try:
            yield database
        finally:
            await supervisor.stop(database)
            await database.close()
            supervisor.cancel_asides()
