"""The assembly of the server. Only this folder uses all layers."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct, structs

from dynactor import __version__
from dynactor.actors.database.virtual_clock import ClockState
from dynactor.actors.derived.kafka.broker_check import checking_broker
from dynactor.api.hosting.database_host import Opening, hosting_database
from dynactor.api.hosting.open_store import open_store
from dynactor.api.http.server import listen, listens_everywhere, serving, url
from dynactor.api.http.server_identity import ServerIdentity
from dynactor.api.http.settings import HttpSettings
from dynactor.api.options.server_settings import ServerSettings
from dynactor.api.serve.file_watch import FileWatch, watching
from dynactor.api.serve.open_certificate import OpenCertificate, open_certificate
from dynactor.api.serve.open_protocol import open_protocol
from dynactor.api.serve.running_admin import AdminParts, admin_listener, running_admin
from dynactor.api.serve.security import Security, security
from dynactor.api.sts.stored_key import session_key
from dynactor.api.tls.certificate import ServerCertificate
from dynactor.api.tls.node_certificate import NodeCertificate
from dynactor.storage.machine.memory import memory_bytes
from dynactor.storage.machine.open_files import connections_limit
from dynactor.storage.machine.private_files import new_files_are_private
from dynactor.storage.namespaces import settle_separation
from dynactor.storage.store import Store
from dynactor.streams.kafka.broker import Broker, BrokerSettings

# The divisor of the memory for large undecoded requests. A decoded request is several times as
# large as an undecoded one.
_LARGE_REQUESTS_SHARE: Final = 16
# The divisor of the memory for answers that clients do not read.
_UNSENT_ANSWERS_SHARE: Final = 16


class RunningServer(Struct, frozen=True):
    """The addresses of a server. ``is_everywhere``: it listens on all addresses of the machine."""

    endpoint: str
    is_everywhere: bool
    admin_endpoint: str | None
    # Whether the admin endpoint has the console.
    has_console: bool
    # None: the server uses real time.
    clock: ClockState | None
    # The certificate that clients must trust, if the server has made one.
    authority: Path | None
    # Read when they change, or when ``reload`` is called.
    watches: list[FileWatch]

    def reload(self) -> None:
        """Read the certificate and the access keys again."""
        for watch in self.watches:
            watch.reload()


@asynccontextmanager
async def running_server(settings: ServerSettings) -> AsyncIterator[RunningServer]:
    """Serve within the context. The parts stop in reverse order of their start.

    Raises:
        BadCertificate, CannotListen, CannotOpen, Damaged, Full, ClockBehindData, BrokerRefused,
            TransferFailed: the server can't start.
    """
    with new_files_are_private() as umask:
        async with _running_server(settings, umask) as running:
            yield running


@asynccontextmanager
async def _running_server(settings: ServerSettings, umask: int) -> AsyncIterator[RunningServer]:
    """Serve with the umask of the server's start for exports."""
    # The ports are opened before the data, so that a server whose port is in use opens no data.
    with (
        listen(settings.host, settings.port) as listener,
        admin_listener(settings) as admin,
    ):
        async with AsyncExitStack() as stack:
            enter = stack.enter_async_context
            # A node opens the store only while it is the home.
            store = None if settings.is_node else await enter(open_store(settings.store))
            certificates = open_certificate(settings)
            checks = security(settings)
            watches = _certificate_watches(certificates)
            watches += [] if checks.watch is None else [checks.watch]
            await enter(watching(watches))
            broker = _broker(settings.broker)
            opening = Opening(
                structs.replace(settings.database, bucket_umask=umask),
                settings.clock.new_clock,
                broker,
                settings.separation,
            )
            parts = await enter(
                _parts(settings, store, opening, checks, certificate=certificates.node)
            )
            certificate = certificates.server
            admin_endpoint = await enter(
                running_admin(
                    settings, parts, admin, certificates.admin, url(listener, certificate)
                )
            )
            if certificate is not None:
                figures = parts.protocol.figures
                figures.certificate_expiry = lambda: certificate.expires_at_epoch_seconds
            http = _http_settings(settings, admin_endpoint, admin)
            endpoint = await enter(serving(parts.protocol, http, listener, certificate))
            await enter(checking_broker(broker))
            if parts.node is not None:
                # At once, while the requests in flight are still answered.
                stack.callback(parts.node.hand_over)
            clock_control = None if parts.host is None else parts.host.database.clock_control
            yield RunningServer(
                endpoint,
                listens_everywhere(listener),
                admin_endpoint,
                settings.admin.console_mode is not None,
                None if clock_control is None else clock_control.state,
                certificates.authority,
                watches,
            )


@asynccontextmanager
async def _parts(
    settings: ServerSettings,
    store: Store | None,
    opening: Opening,
    checks: Security,
    *,
    certificate: NodeCertificate | None,
) -> AsyncIterator[AdminParts]:
    """The parts that answer requests. Without a store, the server is a node of a cluster."""
    tokens = checks.tokens
    if store is None:
        # Imported only for a cluster.
        from dynactor.api.serve.running_node import NodeParts, serving_as_node  # noqa: PLC0415

        async with (
            open_protocol(settings, None, checks) as protocol,
            serving_as_node(settings, NodeParts(protocol, opening, tokens, certificate)) as node,
        ):
            yield AdminParts(protocol, None, node=node)
        return
    region = await settle_separation(store, opening.separation, opening.settings.region)
    tokens.use(await session_key(store))
    async with (
        hosting_database(store, opening.in_region(region)) as host,
        open_protocol(settings, host.database, checks) as protocol,
    ):
        protocol.use(host.databases)
        host.attach(protocol)
        if settings.store.seed is not None:
            # Imported only for a server that fills tables.
            from dynactor.api.serve.seeding import seed  # noqa: PLC0415

            await seed(host.database, settings.store.seed)
        yield AdminParts(protocol, store, host)


def _certificate_watches(certificates: OpenCertificate) -> list[FileWatch]:
    # The admin port's certificate may be the same.
    watched = {certificates.server, certificates.admin, certificates.node}
    return [_certificate_watch(each) for each in watched if each is not None]


def _certificate_watch(certificate: ServerCertificate | NodeCertificate) -> FileWatch:
    return FileWatch(lambda: certificate.paths, certificate.reload)


def _http_settings(
    settings: ServerSettings, admin_endpoint: str | None, admin: socket.socket | None
) -> HttpSettings:
    http = settings.http
    return structs.replace(
        http,
        most_connections=http.max_connections or connections_limit(),
        identity=ServerIdentity(__version__, settings.store.kind, admin_endpoint),
        admin_is_everywhere=admin is not None and listens_everywhere(admin),
        large_requests_bytes=memory_bytes() // _LARGE_REQUESTS_SHARE,
        unsent_answers_bytes=memory_bytes() // _UNSENT_ANSWERS_SHARE,
    )


def _broker(settings: BrokerSettings) -> Broker | None:
    if not settings.bootstrap_servers:
        return None
    # The client library is loaded only if changes are published.
    from dynactor.streams.kafka.aiokafka_broker import Kafka  # noqa: PLC0415

    return Kafka(settings)
