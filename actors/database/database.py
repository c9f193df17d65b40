"""The database, as requests see it: its tables, and changes of them through its actor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import structs

from dynactor.actors.backups.past_reads import PastReads
from dynactor.actors.catalog.homes import MoveGuard
from dynactor.actors.catalog.tables import Tables
from dynactor.actors.database.database_actor import DatabaseActor
from dynactor.actors.database.virtual_clock import VirtualClockControl
from dynactor.actors.feeds.change_feed import RecentChanges
from dynactor.actors.limits.burst_balances import BalanceWriter
from dynactor.actors.limits.throttle_settings import ThrottleSettings
from dynactor.actors.partition.table_partition import PartitionSettings
from dynactor.actors.parts.database_settings import DatabaseSettings
from dynactor.actors.parts.part import PartT
from dynactor.actors.phases.splits import Splitter
from dynactor.actors.phases.table_homes import TableHomes
from dynactor.actors.runtime.clock import Clock
from dynactor.actors.runtime.mailbox import MailboxFull, Message, ReplyT
from dynactor.actors.runtime.randomness import open_randomness
from dynactor.actors.runtime.supervisor import Supervisor
from dynactor.actors.splitting.split_watch import SplitWatch
from dynactor.actors.table.environment import TableEnvironment
from dynactor.actors.table.messages import UrgentMessage
from dynactor.actors.table.state import TableState, table_state
from dynactor.actors.table.table import Table
from dynactor.actors.transactions.coordinator import Transactions
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import LimitExceededException, ResourceNotFoundException
from dynactor.storage import key_layout
from dynactor.storage.burst_balances import LoadedBalances
from dynactor.storage.store import Store
from dynactor.streams.kafka.broker import Broker


class Database:
    """The tables. Requests read and write them directly; changes of tables go to the actor."""

    def __init__(
        self,
        store: Store,
        settings: DatabaseSettings,
        clock: Clock,
        supervisor: Supervisor,
        *,
        broker: Broker | None,
        balances: LoadedBalances,
        clock_control: VirtualClockControl | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self._store = store
        # The control of a virtual clock; None if the clock is real.
        self.clock_control = clock_control
        self._tables = Tables()
        self.balances = BalanceWriter(
            store,
            clock,
            balances,
            owners=lambda: [table.throttle for table in self._tables.values()],
            copy_messages=settings.copy_messages,
        )
        environment = TableEnvironment(
            store,
            supervisor,
            clock,
            RecentChanges(),
            PartitionSettings(
                settings.item_collection_limit_bytes,
                settings.copy_messages,
                settings.index_lag,
                settings.index_reads_wait_seconds,
                settings.is_traced,
            ),
            self.balances,
            ThrottleSettings(
                settings.throttling,
                settings.table_arns,
                key_traffic=settings.key_traffic,
                initial_burst_seconds=settings.initial_burst_seconds,
            ),
            self._tables.consumed_units,
            randomness := open_randomness(settings.seed),
        )
        self.actor = DatabaseActor(environment, settings, self._tables, broker)
        self.past_reads = PastReads(store, clock, self.usable_table)
        self.transactions = Transactions(
            store, clock, settings.account_id, randomness, settings.transaction_delay
        )
        self.split_watch = SplitWatch(
            settings.splits,
            store,
            clock,
            supervisor,
            tables=lambda: self.tables,
            growing=self.part(Splitter).growing,
            tell=self.actor.tell,
        )

    async def ask(self, message: Message[ReplyT]) -> ReplyT:
        """Let the database's actor handle a message; the message's class names its errors.

        Raises ``LimitExceededException`` if too many messages are waiting, or
        ``InternalServerError`` if the store refused a commit.
        """
        is_urgent = isinstance(message, UrgentMessage)
        try:
            return await self.actor.ref.ask(message, always=is_urgent, first=is_urgent)
        except MailboxFull:
            raise LimitExceededException(
                "Too many table operations are waiting, try again"
            ) from None

    def part(self, kind: type[PartT]) -> PartT:
        """A part of the control plane, for reads that bypass the actor's mailbox."""
        return self.actor.parts[kind]

    def table(self, name: str) -> Table:
        """The table with this name, for reads and writes; raises ``ResourceNotFoundException``."""
        table = self.usable_table(name)
        if table is None:
            raise ResourceNotFoundException("Requested resource not found")
        return table

    def usable_table(self, name: str) -> Table | None:
        """The table with this name; None if it does not exist, or is being created or deleted."""
        table = self._tables.get(name)
        if table is None or table.definition.status in ("CREATING", "DELETING"):
            return None
        return table

    def mailbox_lengths(self) -> dict[str, int]:
        """Number of messages that wait for each of the database's own actors, by actor."""
        lengths = {
            "database": len(self.actor.mailbox),
            "burst_balances": len(self.balances.mailbox),
        }
        if self.clock_control is not None:
            lengths["virtual_clock"] = len(self.clock_control.mailbox)
        return lengths

    def table_in_any_state(self, name: str) -> Table:
        """The table with this name in any state; raises ``ResourceNotFoundException``."""
        return self._tables.named(name)

    @property
    def tables(self) -> Sequence[Table]:
        """All tables, sorted by name, whatever their state."""
        return [self._tables[name] for name in sorted(self._tables)]

    def table_names(self) -> Sequence[str]:
        """The names of all tables, sorted, also of tables that have another home."""
        elsewhere = self._tables.elsewhere
        return sorted(self._tables.keys() | elsewhere if elsewhere else self._tables)

    async def definitions(self) -> list[TableDefinition]:
        """The definitions of all tables of any home, sorted by name; raises ``StoreError``."""
        return await self.actor.parts.definitions()

    # -- tables with other homes --------------------------------------------------------------

    @property
    def tables_elsewhere(self) -> Mapping[str, int]:
        """The epochs of the shares that run the other tables, by table."""
        return self._tables.elsewhere

    @property
    def table_groups(self) -> Mapping[str, str]:
        """The groups of tables that have one home, by table."""
        return self._tables.groups

    def runs(self, name: str) -> bool:
        """Whether this database runs a table with this name."""
        return name in self._tables

    def movable_tables(self) -> Sequence[str]:
        """The tables that may get another home now, sorted."""
        return self.part(TableHomes).movable()

    def guard_moves(self, guard: MoveGuard) -> None:
        """Let the node hold back the requests to tables that move."""
        self.part(TableHomes).guard = guard

    async def confirm_owner(self) -> None:
        """Read the store, which refuses a database that was taken over; raises ``StoreError``."""
        await self._store.latest.load([key_layout.CATALOG_VERSION])

    async def describe(self, name: str) -> TableState:
        """A table's definition and durable counters; raises ``ResourceNotFoundException``."""
        table = self._tables.named(name)
        state = await table_state(table)
        return structs.replace(state, growing=self.part(Splitter).growing(table))
