"""A database whose admin port takes uploads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from dynactor.api.admin_port.listener import Administered, serving_admin
from dynactor.api.clients.admin_client import AdminClient
from dynactor.api.commands.tables.bulk_door import BulkDoor
from dynactor.api.http.browser_access import Access
from dynactor.api.http.protocol import Protocol
from dynactor.api.http.server import listen
from dynactor.storage.store import Store
from tests.support.clients.database_endpoint import DatabaseEndpoint, no_pause
from tests.support.databases.databases import running_database


class Uploading(NamedTuple):
    """The database, its admin port, a client of its uploads, and what the client has said."""

    endpoint: DatabaseEndpoint
    port: int
    door: BulkDoor
    said: list[str]

    async def status(self, name: str) -> str:
        """The status of a table."""
        answer = await self.endpoint.call("DescribeTable", {"TableName": name})
        status: str = answer["Table"]["TableStatus"]
        return status


@asynccontextmanager
async def uploading(
    store: Store | None = None, directory: Path | None = None
) -> AsyncIterator[Uploading]:
    """A database whose admin port takes uploads."""
    folder = None if directory is None else str(directory)
    async with running_database(
        store, upload_directory=folder, import_log_directory=folder
    ) as database:
        administered = Administered(database._store.figures, Protocol(database, ()))
        with listen("127.0.0.1", 0) as listener:
            async with serving_admin(administered, Access(), listener) as address:
                said: list[str] = []
                door = BulkDoor(AdminClient(address), no_pause, said.append)
                port = listener.getsockname()[1]
                yield Uploading(DatabaseEndpoint(database), port, door, said)
                # The listener answers requests in flight before it closes.
                await asyncio.sleep(0)
