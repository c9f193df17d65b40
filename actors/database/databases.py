"""The databases of a server: one that all requests share, or one for each namespace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final
from urllib.parse import quote

import anyio
from anyio.abc import TaskGroup
from msgspec import structs

from dynactor.actors.database.database import Database
from dynactor.actors.database.open_database import open_database
from dynactor.actors.parts.database_settings import DatabaseSettings
from dynactor.actors.runtime.clock import Clock
from dynactor.model.errors import LimitExceededException
from dynactor.model.kept_failure import KeptFailure
from dynactor.model.tables.destination_rules import topic_namespace
from dynactor.storage.namespaces import Namespace, Separation, StoreSlice, stored_namespaces
from dynactor.storage.store import Store
from dynactor.streams.kafka.broker import Broker

# Each namespace uses some memory, even without a table.
MOST_NAMESPACES: Final = 1_000


class Databases:
    """The open databases. A namespace's database is opened at its first use.

    ``main`` is the database of the configured region. Only it stores the virtual clock.
    """

    def __init__(
        self,
        main: Database,
        separation: Separation = "shared",
        open_one: Callable[[Namespace], AbstractAsyncContextManager[Database]] | None = None,
        group: TaskGroup | None = None,
        most_namespaces: int = MOST_NAMESPACES,
    ) -> None:
        self.main = main
        self.separation = separation
        self._open_one = open_one
        self._group = group
        self._most_namespaces = most_namespaces
        self._closing = anyio.Event()
        self._open: dict[Namespace, Database] = {}
        self._opening: dict[Namespace, asyncio.Future[Database]] = {}
        if separation == "region":
            self._open[Namespace(main.settings.region)] = main

    @property
    def by_namespace(self) -> dict[Namespace, Database]:
        """The open databases that requests can reach; empty without namespaces."""
        return dict(self._open)

    def namespace(self, region: str, access_key_id: str) -> Namespace:
        """The namespace of a request with this region and key."""
        return Namespace(region, access_key_id if self.separation == "access key" else "")

    def find(self, namespace: Namespace) -> Database | None:
        """The database of a namespace, if it is open."""
        return self._open.get(namespace)

    async def open(self, namespace: Namespace) -> Database:
        """The database of a namespace; open it unless it is open.

        Raises ``LimitExceededException`` if too many are open, or as ``open_database``.
        """
        assert self._group is not None
        database = self._open.get(namespace)
        if database is not None:
            return database
        opening = self._opening.get(namespace)
        if opening is None:
            if len(self._open) + len(self._opening) >= self._most_namespaces:
                raise LimitExceededException(
                    f"The server keeps {self._most_namespaces:,} regions and access keys apart, "
                    "and takes no more"
                )
            opening = asyncio.get_running_loop().create_future()
            self._opening[namespace] = opening
            self._group.start_soon(self._keep_open, namespace, opening)
        # Shield the opening, because other requests may wait for it, too.
        return await asyncio.shield(opening)

    def close(self) -> None:
        """Close all databases except the main one."""
        self._closing.set()

    async def _keep_open(self, namespace: Namespace, opening: asyncio.Future[Database]) -> None:
        assert self._open_one is not None
        assert self._group is not None
        is_ended = True
        try:
            async with self._open_one(namespace) as database:
                self._open[namespace] = database
                del self._opening[namespace]
                opening.set_result(database)
                await self._closing.wait()
                is_ended = False
        except Exception as error:
            if opening.done():
                raise
            opening.set_exception(error)
            is_ended = False
        finally:
            self._open.pop(namespace, None)
            self._opening.pop(namespace, None)
            if not opening.done():
                opening.cancel()
        if is_ended:
            # The supervisor has abandoned this database's actor, and the server cannot continue
            # without the actor.
            self._group.cancel_scope.cancel()


@asynccontextmanager
async def open_databases(
    store: Store,
    settings: DatabaseSettings,
    clock: Clock,
    broker: Broker | None = None,
    *,
    separation: Separation = "shared",
    most_namespaces: int = MOST_NAMESPACES,
) -> AsyncIterator[Databases]:
    """Running databases over an open store, which stays open when this ends.

    Raises ``StoreError``, or ``ClockBehindData`` if the data has a virtual time in the future.
    """
    if separation == "shared":
        async with open_database(
            store, settings, clock, broker, keeps_clock=settings.is_leader
        ) as main:
            yield Databases(main)
        return

    def open_one(namespace: Namespace) -> AbstractAsyncContextManager[Database]:
        return open_database(
            StoreSlice(store, namespace),
            namespace_settings(namespace, settings),
            clock,
            broker,
            keeps_clock=False,
        )

    stored = await stored_namespaces(store.latest)
    main_settings = structs.replace(settings, namespace=Namespace(settings.region))
    kept = KeptFailure()
    async with (
        open_database(store, main_settings, clock, broker, has_other_data=bool(stored)) as main,
        anyio.create_task_group() as group,
    ):
        databases = Databases(main, separation, open_one, group, most_namespaces)
        with kept:
            try:
                for namespace in stored:
                    await databases.open(namespace)
                yield databases
            finally:
                # Close the databases also after a failure, because the group waits for them.
                databases.close()
    kept.raise_again()


def namespace_settings(namespace: Namespace, settings: DatabaseSettings) -> DatabaseSettings:
    """The settings of a namespace's database."""
    prefix = topic_namespace(namespace.region, namespace.access_key_id)
    relays = settings.relays
    uploads = settings.upload_directory
    if uploads is not None:
        # Each database deletes the files in its directory that belong to none of its imports.
        uploads += f"-{quote(namespace.region, safe='')}-{quote(namespace.access_key_id, safe='')}"
    return structs.replace(
        settings,
        region=namespace.region,
        upload_directory=uploads,
        namespace=namespace,
        topic_namespace=prefix,
        relays=structs.replace(relays, topic_prefix=prefix + relays.topic_prefix),
    )
