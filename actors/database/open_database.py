"""Opens a database over a store, and runs its actors."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from dynactor.actors.catalog.catalog_upgrade import upgrade
from dynactor.actors.database.database import Database
from dynactor.actors.database.virtual_clock import open_clock
from dynactor.actors.parts.database_settings import DatabaseSettings
from dynactor.actors.parts.part import load_catalog
from dynactor.actors.runtime.clock import Clock
from dynactor.actors.runtime.reminder import remind
from dynactor.actors.runtime.supervisor import Supervisor
from dynactor.model.kept_failure import KeptFailure
from dynactor.storage import burst_balances
from dynactor.storage.burst_balances import NO_BALANCES
from dynactor.storage.store import Store
from dynactor.streams.kafka.broker import Broker


@asynccontextmanager
async def open_database(
    store: Store,
    settings: DatabaseSettings,
    clock: Clock,
    broker: Broker | None = None,
    *,
    keeps_clock: bool = True,
    has_other_data: bool = False,
) -> AsyncIterator[Database]:
    """A running database over an open store, which stays open when this ends.

    Changes of tables can be published if there is a broker. If several databases share a virtual
    clock, one of them stores its time; ``has_other_data`` says whether another database has tables.
    Raises ``StoreError``, or ``ClockBehindData`` if the data has a virtual time in the future.
    """
    # Load before the group starts, because the group would wrap an error in an ExceptionGroup.
    loaded = await load_catalog(store, settings.share)
    loaded_balances = NO_BALANCES
    if settings.is_leader:
        loaded = await upgrade(store, loaded)
        loaded_balances = await burst_balances.load(store.latest)
    clock_control = None
    if keeps_clock:
        clock_control = await open_clock(
            store,
            clock,
            has_data=loaded.head_bytes is not None or has_other_data,
            copy_messages=settings.copy_messages,
        )
    # The catalog is read again in the group, which would wrap an error in an ExceptionGroup.
    kept = KeptFailure()
    async with anyio.create_task_group() as task_group:
        supervisor = Supervisor(task_group)
        database = Database(
            store,
            settings,
            clock,
            supervisor,
            broker=broker,
            balances=loaded_balances,
            clock_control=clock_control,
        )
        if clock_control is not None:
            supervisor.start(clock_control)
        with kept:
            await database.actor.adopt(loaded)
            if settings.is_leader:
                await database.balances.start()
        if kept.is_failed:
            # The actors that have started would keep the group open.
            task_group.cancel_scope.cancel()
        else:
            async with _started(database, supervisor):
                yield database
    kept.raise_again()


@asynccontextmanager
async def _started(database: Database, supervisor: Supervisor) -> AsyncIterator[None]:
    """Run the database's actors within the context."""
    clock, clock_control = database.clock, database.clock_control
    is_leader = database.settings.is_leader
    supervisor.start(database.actor)
    supervisor.keep_in_background(remind, clock, database.actor.keep_streams)
    supervisor.keep_in_background(remind, clock, database.split_watch.check)
    if is_leader:
        supervisor.start(database.balances)
        supervisor.keep_in_background(remind, clock, database.balances.keep)
        supervisor.keep_in_background(remind, clock, database.transactions.tokens.trim)
    try:
        yield
    finally:
        await supervisor.stop(database.actor)
        await database.actor.close()
        if is_leader:
            await supervisor.stop(database.balances)
            await database.balances.close()
        if clock_control is not None:
            await supervisor.stop(clock_control)
            await clock_control.close()
        supervisor.cancel_background()
