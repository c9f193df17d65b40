"""All metrics as text, in the form that is asked for."""

from __future__ import annotations

import asyncio

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder

from dynactor.actors.catalog.database import Database
from dynactor.api.admin.metrics.server import ServerCollector, ServerFigures
from dynactor.api.admin.metrics.tables import TableCollector, TableFigures, table_figures


async def exposition(database: Database, server: ServerFigures, accept: str) -> tuple[bytes, str]:
    """All metrics in the form that an Accept header asks for, and that form's content type.

    Raises:
        StoreError: the store can't be read.
    """
    tables = await table_figures(database)
    # Thousands of samples take longer than others would wait for the event loop.
    return await asyncio.to_thread(_exposition, tables, server, accept)


def _exposition(tables: TableFigures, server: ServerFigures, accept: str) -> tuple[bytes, str]:
    registry = CollectorRegistry()
    registry.register(TableCollector(tables, server.throttled_requests))
    registry.register(ServerCollector(server))
    # Processor time, memory, open files, and since when: process_*.
    ProcessCollector(registry=registry)
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type
