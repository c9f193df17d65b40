"""The admin listener: what concerns the server itself, apart from DynamoDB's API.

It listens on loopback unless it is told otherwise. ``GET /metrics`` is for Prometheus and whoever
reads its format; the virtual clock is at ``/clock``, replays to Kafka are at ``/replays``, what
requests do to keys at ``/insights``; ``/backups`` makes backups.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

import structlog
from aiohttp import web

from actors.database import Database
from api import admin_backups, admin_clock, admin_insights, admin_replays, metrics
from api.access import Access
from api.http_settings import SERVER_NAME
from api.protocol import Protocol
from api.server import url
from storage.backups import Backups
from storage.store import StoreError

METRICS_PATH: Final = "/metrics"

_SHUTDOWN_SECONDS: Final = 1.0

_log = structlog.get_logger(__name__)


@asynccontextmanager
async def serving_admin(
    database: Database,
    protocol: Protocol,
    access: Access,
    listener: socket.socket,
    backups: Backups | None = None,
) -> AsyncIterator[str]:
    """Serve within the context; yields the listener's URL."""
    server = web.Server(_Admin(database, protocol, access, backups).answer, access_log=None)
    runner = web.ServerRunner(server, shutdown_timeout=_SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        yield url(listener)
    finally:
        await runner.cleanup()


class _Admin:
    """Answers requests."""

    def __init__(
        self, database: Database, protocol: Protocol, access: Access, backups: Backups | None
    ) -> None:
        self._database = database
        self._protocol = protocol
        self._access = access
        self._backups = backups

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request, whatever it asks for."""
        host = request.headers.get("Host", "")
        if not self._access.allows_host(host):
            return _text(
                HTTPStatus.FORBIDDEN,
                f"Host {host!r} is neither localhost nor an IP address; "
                "allow it by --allowed-hosts",
            )
        if request.path in (admin_clock.CLOCK_PATH, admin_clock.STEP_PATH):
            return await admin_clock.answer(self._database.clock_keeper, request)
        if f"{request.path}/".startswith(f"{admin_replays.REPLAYS_PATH}/"):
            return await admin_replays.answer(self._database, request)
        if f"{request.path}/".startswith(f"{admin_insights.INSIGHTS_PATH}/"):
            return await admin_insights.answer(self._database, request)
        if request.path == admin_backups.BACKUPS_PATH:
            return await admin_backups.answer(self._backups, request)
        if request.path != METRICS_PATH:
            return _text(
                HTTPStatus.NOT_FOUND,
                f"There are {METRICS_PATH}, {admin_clock.CLOCK_PATH}, "
                f"{admin_replays.REPLAYS_PATH}, {admin_insights.INSIGHTS_PATH} and "
                f"{admin_backups.BACKUPS_PATH}, and nothing else",
            )
        if request.method not in ("GET", "HEAD"):
            response = _text(HTTPStatus.METHOD_NOT_ALLOWED, "Metrics can only be read")
            response.headers["Allow"] = "GET, HEAD"
            return response
        return await self._metrics(request.headers.get("Accept", ""))

    async def _metrics(self, accept: str) -> web.Response:
        try:
            body, content_type = await metrics.exposition(
                self._database, self._protocol.throttled_requests, accept
            )
        except StoreError as error:
            _log.error("metrics_unreadable", error=str(error))
            return _text(HTTPStatus.INTERNAL_SERVER_ERROR, f"The store failed: {error}")
        return web.Response(
            body=body, headers={"Content-Type": content_type, "Server": SERVER_NAME}
        )


def _text(status: HTTPStatus, text: str) -> web.Response:
    return web.Response(status=status, text=f"{text}\n", headers={"Server": SERVER_NAME})
