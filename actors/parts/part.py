"""A part of the control plane, and the parts of one database.

A part is one capability, such as time to live. It handles messages of the database's actor, moves
its subjects through phases, and takes part in the steps of all parts: adopt, resume, close and so
on. It finds other parts by their class, ``parts[OtherPart]``, in lower or equal folders.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias, TypeVar

from dynactor.actors.catalog.catalog_owner import CatalogOwner
from dynactor.actors.catalog.homes import Homes
from dynactor.actors.catalog.share import Share
from dynactor.actors.catalog.tables import Tables
from dynactor.actors.parts.database_settings import DatabaseSettings
from dynactor.actors.parts.long_work import Pieces, chained
from dynactor.actors.parts.phase_machine import EndPhase, PhaseMachine, Subject
from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.table.environment import TableEnvironment
from dynactor.actors.table.messages import KeepStreams
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import TableDefinition
from dynactor.storage import catalog
from dynactor.storage.catalog import Catalog
from dynactor.storage.store import Store
from dynactor.streams.kafka.broker import Broker

# A handler that may take long is a generator; see ``long_work.py``.
Handler: TypeAlias = Callable[[Any], Awaitable[object] | Pieces]
Handlers: TypeAlias = Mapping[type[Message[Any]], Handler]

PartT = TypeVar("PartT", bound="Part")


class Part:
    """One capability of the control plane. A subclass defines the steps that concern it.

    ``handlers`` has the messages that it handles, ``machines`` its kinds of phases. Only the
    database's actor calls handlers and steps. Public methods and properties that return frozen
    values may be called by any request.
    """

    # Whether the stored state of the part belongs to no single table, so the leader alone has it.
    is_leaders: ClassVar[bool] = False

    def __init__(self, parts: Parts) -> None:
        self.handlers: Handlers = {}
        self.machines: Sequence[PhaseMachine[Any]] = ()
        self._parts = parts
        self._owner = parts.owner
        self._tables = parts.tables
        self._settings = parts.settings
        self._environment = parts.environment
        self._store = parts.environment.store
        self._clock = parts.environment.clock
        self._supervisor = parts.environment.supervisor

    # -- the stored state, at start and whenever it may differ from memory ---------------------

    async def load(self, loaded: Catalog) -> None:
        """Load the stored state, before the tables are opened."""

    async def adopt(self, loaded: Catalog) -> None:
        """Continue the stored work, after the tables are opened."""

    # -- the tables ----------------------------------------------------------------------------

    async def opening(self, table: Table) -> None:
        """Prepare a stored table that no request finds yet."""

    async def resume(self, table: Table) -> None:
        """Start everything that a table's record requires, unless it is started already."""
        for machine in self.machines:
            await machine.resume_table(table)

    async def opened(self, table: Table) -> None:
        """Begin what needs a stored table whose work was started just now."""

    async def closing(self, table: Table) -> None:
        """Stop the work on a table that is about to be closed, besides its followers."""

    def stopped(self, table_id: int) -> None:
        """Forget the phases of a table whose work has stopped with the table."""
        for machine in self.machines:
            if machine.has_table_work:
                machine.forget(table_id)

    def forget(self, table_id: int | None = None) -> None:
        """Forget the phases of a table, or of all tables, that is gone or will be opened again."""
        for machine in self.machines:
            if table_id is None or machine.is_of_tables:
                machine.forget(table_id)

    def may_move(self, _table: Table) -> bool:
        """Whether another node may become the home of a table now."""
        return True

    def check_deletable(self, table: Table) -> None:
        """Raise a ``DynamoDBError`` if a table must not be deleted now."""

    # -- the time ------------------------------------------------------------------------------

    def keep(self, _now_epoch_seconds: float) -> Pieces:
        """Do the periodic work: delete what is old."""
        return chained()

    async def close(self) -> None:
        """Stop the work; the next start continues. Parts close in the reverse order of the list."""


class Parts:
    """The parts of one database, in the order of the list, and everything that they share.

    ``tell(message)`` and ``tell_later(seconds, message)`` send to the database's actor.
    """

    def __init__(
        self,
        kinds: Sequence[type[Part]],
        environment: TableEnvironment,
        settings: DatabaseSettings,
        tables: Tables,
        broker: Broker | None,
        *,
        tell: Callable[[Message[Any]], None],
        tell_later: Callable[[float, Message[Any]], None],
    ) -> None:
        self.environment = environment
        self.settings = settings
        self.tables = tables
        self.broker = broker
        self.tell = tell
        self.tell_later = tell_later
        share = settings.share
        self.owner = CatalogOwner(environment.store, "" if share is None else share.node)
        self.homes = Homes(self.owner, environment.store, share, tables)
        self._kinds = kinds
        self._by_kind: dict[type[Part], Part] = {}
        self._all = [self[kind] for kind in kinds]
        self._machines: dict[str, PhaseMachine[Any]] = {}
        self.handlers: dict[type[Message[Any]], Handler] = {
            KeepStreams: self._keep,
            EndPhase: self._end_phase,
        }
        for part in self._all:
            kinds_of_phases = {machine.kind: machine for machine in part.machines}
            assert not self._machines.keys() & kinds_of_phases.keys(), "one machine has a kind"
            assert not self.handlers.keys() & part.handlers.keys(), "one part handles a message"
            self._machines.update(kinds_of_phases)
            self.handlers.update(part.handlers)

    def __getitem__(self, kind: type[PartT]) -> PartT:
        """The part of a class. A part that needs another one when it is created creates it."""
        part = self._by_kind.get(kind)
        if part is None:
            assert kind in self._kinds, f"{kind.__name__} is not in the list of parts"
            part = self._by_kind[kind] = kind(self)
        assert isinstance(part, kind)
        return part

    def find_table(self, subject: Subject) -> Table | None:
        """The table of a subject, unless it is gone."""
        return self.tables.same(subject.table_name, subject.table_id)

    async def definitions(self) -> list[TableDefinition]:
        """The definitions of all tables of any home, sorted by name; raises ``StoreError``."""
        if self.tables.elsewhere:
            stored = await load_catalog(self.environment.store, self.settings.share)
            return [record.definition for record in stored.tables]
        return [self.tables[name].definition for name in sorted(self.tables)]

    # -- steps of all parts ----------------------------------------------------------------------

    async def adopt(self, loaded: Catalog | None = None) -> None:
        """Adopt the stored catalog: at start, and whenever it may differ from memory.

        ``loaded`` is the catalog if this database alone changes it.
        """
        share = self.settings.share
        if share is not None:
            # Load the claims first. A table that another home gives back after that is opened
            # later, so no table is opened by a record that is older than its claim.
            await self.homes.load()
        if loaded is None or share is not None:
            loaded = await load_catalog(self.environment.store, share)
        self.owner.adopt(loaded)
        for part in self._all:
            part.forget()
        self.homes.note_all([record.definition.name for record in loaded.tables])
        for part in self._with_state:
            await part.load(loaded)
        for part in self._with_state:
            await part.adopt(loaded)

    @property
    def _with_state(self) -> list[Part]:
        """The parts whose stored state this database has."""
        return [part for part in self._all if self.settings.is_leader or not part.is_leaders]

    async def opening(self, table: Table) -> None:
        """Prepare a stored table that no request finds yet."""
        for part in self._all:
            await part.opening(table)

    async def resume(self, table: Table) -> None:
        """Start everything that a table's record requires, unless it is started already."""
        for part in self._all:
            await part.resume(table)

    async def opened(self, table: Table) -> None:
        """Begin what needs a stored table whose work was started just now."""
        for part in self._all:
            await part.opened(table)

    async def restart(self, table: Table) -> None:
        """Start the work on a table again, which has stopped with the table."""
        for part in self._all:
            part.stopped(table.definition.table_id)
        await self.resume(table)

    async def closing(self, table: Table) -> None:
        """Stop the work on a table that is about to be closed, besides its followers."""
        for part in self._all:
            await part.closing(table)

    def forget(self, table_id: int) -> None:
        """Forget the phases of a table that is gone."""
        for part in self._all:
            part.forget(table_id)

    def may_move(self, table: Table) -> bool:
        """Whether another node may become the home of a table now.

        Work that only the leader does, such as backups, needs the table at the leader.
        """
        return not self.settings.is_leader or all(part.may_move(table) for part in self._all)

    def check_deletable(self, table: Table) -> None:
        """Raise a ``DynamoDBError`` if a table must not be deleted now."""
        for part in self._all:
            part.check_deletable(table)

    async def close(self) -> None:
        """Stop all work and close the tables, after their accepted writes are answered."""
        for part in reversed(self._all):
            await part.close()

    async def _keep(self, _message: KeepStreams) -> Pieces:
        now = self.environment.clock.now_epoch_seconds()
        async for _ in chained(*(part.keep(now) for part in self._with_state)):
            yield

    async def _end_phase(self, message: EndPhase) -> None:
        machine = self._machines[message.kind]
        with machine.trying(message.subject):
            await machine.end(message)
            # Do this also if the message is a repetition, because the store may have refused the
            # first attempt. The next phase of one part may let another part start.
            table = self.find_table(message.subject)
            if table is not None:
                await self.resume(table)


async def load_catalog(store: Store, share: Share | None) -> Catalog:
    """The stored catalog, with the count of this node's commits."""
    return await catalog.load(store.latest, "" if share is None else share.node)
