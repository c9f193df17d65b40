"""All metrics as text, in the format that the scraper accepts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from msgspec import structs
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from dynactor.actors.database.database import Database
from dynactor.api.admin.metrics.regions import RegionalTableCollector
from dynactor.api.admin.metrics.server import ServerCollector, ServerFigures
from dynactor.api.admin.metrics.tables import TableCollector, table_figures
from dynactor.storage.namespaces import Namespace


async def exposition(
    database: Database | None,
    server: ServerFigures,
    accept: str,
    regions: Mapping[Namespace, Database] | None = None,
) -> tuple[bytes, str]:
    """All metrics in the format that an Accept header requests, and the content type.

    ``database`` is None on a node that is not the home; then there are no metrics of tables.
    ``regions`` are the databases of separate regions; ``database`` is the server's own. Raises
    ``StoreError``.
    """
    tables: Collector | None
    if database is None:
        tables = None
    elif regions is None:
        tables = TableCollector(await table_figures(database), server.requests[None].throttled)
    else:
        found = {
            namespace: structs.replace(await table_figures(each), clock=None)
            for namespace, each in regions.items()
        }
        control = database.clock_control
        clock = None if control is None else control.state
        throttled = {
            namespace: figures.throttled
            for namespace, figures in server.requests.items()
            if namespace is not None
        }
        tables = RegionalTableCollector(clock, found, throttled)
    # Encoding thousands of samples would block the event loop for too long.
    return await asyncio.to_thread(_exposition, tables, server, accept)


def _exposition(tables: Collector | None, server: ServerFigures, accept: str) -> tuple[bytes, str]:
    registry = CollectorRegistry()
    if tables is not None:
        registry.register(tables)
    registry.register(ServerCollector(server))
    # Processor time, memory, open files and start time: process_*.
    ProcessCollector(registry=registry)
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type
