"""The admin listener: an HTTP server for operators, separate from DynamoDB's API.

It listens on loopback by default. Its paths are ``/metrics`` (for Prometheus), ``/health``,
``/ready``, ``/nodes`` (of a cluster), ``/clock`` (the virtual clock) and ``/replays`` (to Kafka).
There are also ``/insights`` (the use of keys), ``/access`` (policies), ``/uploads`` (files for new
tables), ``/jobs`` (imports, exports and bulk operations) and ``/backups``. Test suites use
``/reset``, ``/settings``, ``/snapshots`` and ``/faults``. ``/`` is the console.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog
from aiohttp import web
from aiohttp.web_protocol import RequestPayloadError

from dynactor.actors.database.database import Database
from dynactor.api.admin import (
    access_routes,
    backup_routes,
    clock_routes,
    fault_routes,
    health_routes,
    insights_routes,
    nodes_routes,
    replay_routes,
)
from dynactor.api.admin.answers import fault
from dynactor.api.admin.change_rules import READING, ChangeRefusal, page_refusal, refusal
from dynactor.api.admin.fault_routes import FAULTS_PATH
from dynactor.api.admin.health_routes import HEALTH_PATH, READY_PATH
from dynactor.api.admin.metrics.loop_lag import measured_loop_lag
from dynactor.api.admin.reset_routes import (
    RESET_PATH,
    SETTINGS_PATH,
    SNAPSHOTS_PATH,
    SuiteControls,
)
from dynactor.api.admin.transfers import job_routes, upload_routes
from dynactor.api.admin_api.access_messages import ACCESS_PATH
from dynactor.api.admin_api.backup_messages import BACKUPS_PATH
from dynactor.api.admin_api.callers import Caller, CallerRules, Level, certificate_name
from dynactor.api.admin_api.clock_messages import CLOCK_PATH, STEP_PATH
from dynactor.api.admin_api.insights_messages import INSIGHTS_PATH
from dynactor.api.admin_api.job_messages import JOBS_PATH
from dynactor.api.admin_api.metrics_path import METRICS_PATH
from dynactor.api.admin_api.nodes_messages import NODES_PATH
from dynactor.api.admin_api.region_parameters import KEY_ID_PARAMETER, REGION_PARAMETER
from dynactor.api.admin_api.replay_messages import REPLAYS_PATH
from dynactor.api.admin_api.upload_messages import UPLOADS_PATH
from dynactor.api.admin_port.change_log import log_change
from dynactor.api.console.routes import Abilities, Console, ConsoleMode
from dynactor.api.console.sign_in import SignIn
from dynactor.api.faults.injector import FaultInjector
from dynactor.api.http.browser_access import Access, host_refusal
from dynactor.api.http.malformed_requests import http_logger
from dynactor.api.http.protocol import Protocol
from dynactor.api.http.server import url
from dynactor.api.http.settings import SERVER_NAME
from dynactor.api.http.tls_acceptor import accepting_tls
from dynactor.api.tls.certificate import ServerCertificate
from dynactor.model.latency_histogram import LatencyHistogram
from dynactor.storage.directory_backups import Backups
from dynactor.storage.store import StoreError
from dynactor.storage.store_figures import StoreFigures

if TYPE_CHECKING:
    from dynactor.api.nodes.node import Node

_SHUTDOWN_SECONDS: Final = 1.0
# Load balancers read these paths, and give no proof.
_PUBLIC_PATHS: Final = (HEALTH_PATH, READY_PATH)
# Paths that a node answers by itself even if it is not the home.
_NODE_PATHS: Final = (METRICS_PATH, HEALTH_PATH, READY_PATH, NODES_PATH)
# Paths about tables. A request may name their region.
_TABLE_PATHS: Final[
    Mapping[str, Callable[[Database, web.BaseRequest, Node | None], Awaitable[web.StreamResponse]]]
] = {
    REPLAYS_PATH: replay_routes.answer,
    INSIGHTS_PATH: insights_routes.answer,
    UPLOADS_PATH: lambda database, request, _: upload_routes.answer(database, request),
    JOBS_PATH: lambda database, request, _: job_routes.answer(database, request),
}

_log = structlog.get_logger(__name__)


class Administered(NamedTuple):
    """The parts of the server that the admin listener shows and changes."""

    store_figures: Callable[[], StoreFigures]
    protocol: Protocol
    backups: Backups | None = None
    suite_controls: SuiteControls | None = None
    faults: FaultInjector | None = None
    callers: CallerRules = CallerRules()
    # None: there is no console.
    console: ConsoleMode | None = None
    # Clients of the API need access keys.
    checks_keys: bool = False
    # The address of the API.
    endpoint: str = ""
    # None, unless the server is a node of a cluster.
    node: Node | None = None


@asynccontextmanager
async def serving_admin(
    administered: Administered,
    access: Access,
    listener: socket.socket,
    certificate: ServerCertificate | None = None,
) -> AsyncIterator[str]:
    """Serve within the context; yields the listener's URL."""
    async with measured_loop_lag() as loop_lag:
        admin = _Admin(administered, access, loop_lag)
        server = web.Server(admin.answer, access_log=None, logger=http_logger("admin"))
        runner = web.ServerRunner(server, shutdown_timeout=_SHUTDOWN_SECONDS)
        await runner.setup()
        try:
            if certificate is None:
                await web.SockSite(runner, listener).start()
                yield url(listener)
            else:
                async with accepting_tls(listener, server, certificate):
                    yield url(listener, certificate)
        finally:
            await runner.cleanup()


class _Admin:
    def __init__(
        self, administered: Administered, access: Access, loop_lag: LatencyHistogram
    ) -> None:
        self._store_figures, self._protocol = administered.store_figures, administered.protocol
        self._backups, self._suite_controls = administered.backups, administered.suite_controls
        self._faults, self._rules = administered.faults, administered.callers
        self._node = administered.node
        self._loop_lag = loop_lag
        self._access = access
        self._console = _console(administered)

    @property
    def _database(self) -> Database:
        """The current database. A reset replaces it with another one."""
        return self._protocol.database

    def _database_for(self, query: Mapping[str, str]) -> Database | None:
        """The open database of the region and the access key that a request names, if any."""
        databases = self._protocol.databases
        if databases is None:
            return self._database
        region = query.get(REGION_PARAMETER) or self._database.settings.region
        return databases.find(databases.namespace(region, query.get(KEY_ID_PARAMETER, "")))

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        caller = self._rules.caller(
            request.headers,
            request.remote,
            certificate_name(request),
            Level.NOTHING if self._console is None else self._console.level(request),
        )
        try:
            response = await self._answer(request, caller)
            await log_change(request, response.status, caller)
        except RequestPayloadError:
            return _broken_off()
        except ConnectionError:
            if request.transport is not None:
                # It is not the caller's connection that was lost.
                raise
            return _broken_off()
        return response

    async def _answer(self, request: web.BaseRequest, caller: Caller) -> web.StreamResponse:
        host = request.headers.get("Host", "")
        if not self._access.allows_host(host):
            return _text(
                HTTPStatus.FORBIDDEN,
                host_refusal(host),
            )
        console = self._console
        is_of_console = console is not None and console.serves(request.path)
        refused = None if is_of_console else self._refusal(request, caller)
        if refused is not None:
            return fault(*refused)
        if (
            self._node is not None
            and self._node.leadership is None
            and request.path not in _NODE_PATHS
        ):
            return nodes_routes.not_leader(self._node)
        if console is not None and is_of_console:
            # The console has rules of its own, because its pages let callers sign in.
            refused = page_refusal(request.method, request.headers)
            return await console.answer(request, refused, self._database_for)
        if request.path == NODES_PATH:
            return nodes_routes.answer(self._node, request)
        controls = self._suite_controls
        if controls is not None and controls.serves(request.path):
            return await controls.answer(request)
        if f"{request.path}/".startswith(f"{FAULTS_PATH}/"):
            return await fault_routes.answer(self._faults, request)
        if request.path in (CLOCK_PATH, STEP_PATH):
            return await clock_routes.answer(self._database.clock_control, request)
        for path, answer in _TABLE_PATHS.items():
            if f"{request.path}/".startswith(f"{path}/"):
                database = self._database_for(request.query)
                if database is None:
                    return fault(HTTPStatus.NOT_FOUND, "There are no tables in that region")
                return await answer(database, request, self._node)
        if f"{request.path}/".startswith(f"{ACCESS_PATH}/"):
            return access_routes.answer(self._protocol.access_control, request)
        if request.path == BACKUPS_PATH:
            return await backup_routes.answer(self._backups, request)
        if request.path not in (METRICS_PATH, HEALTH_PATH, READY_PATH):
            return _text(
                HTTPStatus.NOT_FOUND,
                f"There are {METRICS_PATH}, {HEALTH_PATH}, {READY_PATH}, {NODES_PATH}, "
                f"{CLOCK_PATH}, {REPLAYS_PATH}, {INSIGHTS_PATH}, {UPLOADS_PATH}, {JOBS_PATH}, "
                f"{ACCESS_PATH}, {BACKUPS_PATH}, {RESET_PATH}, {SETTINGS_PATH}, {SNAPSHOTS_PATH} "
                f"and {FAULTS_PATH}, and no other paths",
            )
        if request.method not in ("GET", "HEAD"):
            response = _text(HTTPStatus.METHOD_NOT_ALLOWED, f"{request.path} can only be read")
            response.headers["Allow"] = "GET, HEAD"
            return response
        if request.path != METRICS_PATH:
            return _text(
                *health_routes.answer(request.path, self._protocol, self._store_figures, self._node)
            )
        return await self._metrics(request.headers.get("Accept", ""))

    def _refusal(self, request: web.BaseRequest, caller: Caller) -> ChangeRefusal | None:
        if request.path in _PUBLIC_PATHS and request.method in READING:
            return None
        return refusal(request.method, request.headers, caller, self._rules)

    async def _metrics(self, accept: str) -> web.Response:
        # Imported here because only this method uses them.
        from dynactor.api.admin.metrics.exposition import exposition  # noqa: PLC0415
        from dynactor.api.admin.metrics.server import server_figures  # noqa: PLC0415

        try:
            node = self._node
            figures = server_figures(
                self._protocol.figures,
                self._store_figures(),
                self._loop_lag,
                None if node is None else node.figures,
            )
            is_leader = node is None or node.leadership is not None
            databases = self._protocol.databases if is_leader else None
            regions = None if databases is None else databases.by_namespace
            database = self._database if node is None else node.database
            body, content_type = await exposition(database, figures, accept, regions)
        except StoreError as error:
            _log.error("metrics_unreadable", error=str(error))
            return _text(HTTPStatus.INTERNAL_SERVER_ERROR, f"The store failed: {error}")
        return web.Response(
            body=body, headers={"Content-Type": content_type, "Server": SERVER_NAME}
        )


def _console(administered: Administered) -> Console | None:
    if administered.console is None:
        return None
    controls = administered.suite_controls
    return Console(
        administered.protocol,
        administered.endpoint,
        SignIn(administered.callers, checks_keys=administered.checks_keys),
        administered.console,
        Abilities(
            faults=administered.faults is not None,
            reset=controls is not None and controls.can_reset,
            nodes=administered.node is not None,
        ),
    )


def _broken_off() -> web.Response:
    return fault(HTTPStatus.BAD_REQUEST, "The body broke off")


def _text(status: HTTPStatus, text: str) -> web.Response:
    return web.Response(status=status, text=f"{text}\n", headers={"Server": SERVER_NAME})
