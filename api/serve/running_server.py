"""The assembly of the server. Only this file uses all layers."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct

from dynactor import __version__
from dynactor.actors.database.database import Database
from dynactor.actors.database.virtual_clock import ClockState
from dynactor.actors.derived.expiry.time_to_live import TimeToLiveSettings
from dynactor.actors.derived.kafka.broker_check import checking_broker
from dynactor.actors.parts.database_settings import DatabaseSettings
from dynactor.actors.splitting.split_watch import SplitSettings
from dynactor.api.access.access_control import AccessControl
from dynactor.api.access.identities import IdentityRegistry
from dynactor.api.access.observed_denials import ObservedDenials
from dynactor.api.faults.faulty_operation import with_faults
from dynactor.api.faults.injector import FaultInjector
from dynactor.api.hosting.database_host import DatabaseHost, Opening, hosting_database
from dynactor.api.hosting.open_postgresql import open_postgresql
from dynactor.api.http.key_limits import KeyLimits
from dynactor.api.http.protocol import Protocol
from dynactor.api.http.request_log import RequestLog
from dynactor.api.http.server import CannotListen, listen, listens_everywhere, serving, url
from dynactor.api.http.server_identity import ServerIdentity
from dynactor.api.http.settings import HttpSettings
from dynactor.api.keys.session_tokens import SessionTokens
from dynactor.api.keys.signature import Signatures
from dynactor.api.options.options import ServeOptions
from dynactor.api.options.trace_options import TraceOptions
from dynactor.api.registry import NOT_IMPLEMENTED, OPERATIONS
from dynactor.api.serve.file_watch import FileWatch, watching
from dynactor.api.serve.key_watch import key_watch
from dynactor.api.serve.open_certificate import open_certificate
from dynactor.api.sts.stored_key import session_key
from dynactor.api.sts.token_service import TokenService
from dynactor.api.tls.certificate import ServerCertificate
from dynactor.api.tls.node_certificate import NodeCertificate
from dynactor.storage.backup_mark import drop_backup_mark, refuse_backup
from dynactor.storage.copies import refuse_unfinished_copy
from dynactor.storage.directory_backups import Backups
from dynactor.storage.machine.memory import memory_bytes
from dynactor.storage.machine.open_files import connections_limit
from dynactor.storage.machine.private_files import new_files_are_private
from dynactor.storage.namespaces import settle_separation
from dynactor.storage.rocks.options import MIB, RocksOptions
from dynactor.storage.rocks.store import open_rocks, open_rocks_in_memory
from dynactor.storage.store import Store
from dynactor.streams.kafka.broker import Broker
from dynactor.streams.shard import ShardSettings

if TYPE_CHECKING:
    from dynactor.api.admin_port.listener import Administered
    from dynactor.api.nodes.node import Node

# The divisor of the memory for large undecoded requests. A decoded request is several times as
# large as an undecoded one.
_LARGE_REQUESTS_SHARE: Final = 16
# The divisor of the memory for answers that clients do not read.
_UNSENT_ANSWERS_SHARE: Final = 16
# 8001 is also the default port of dynamodb-admin.
_ADMIN_PORTS: Final = range(8001, 8011)


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
async def running_server(options: ServeOptions) -> AsyncIterator[RunningServer]:
    """Serve within the context. The parts stop in reverse order of their start.

    Raises:
        BadCertificate, CannotListen, CannotOpen, Damaged, Full, ClockBehindData, Refused,
            TransferFailed: the server can't start.
    """
    with new_files_are_private() as umask:
        async with _running_server(options, umask) as running:
            yield running


@asynccontextmanager
async def _running_server(options: ServeOptions, umask: int) -> AsyncIterator[RunningServer]:
    """Serve with the umask of the server's start for exports."""
    database_settings = DatabaseSettings(
        region=options.region,
        item_collection_limit_bytes=options.item_collection_limit_bytes,
        table_transition_seconds=options.table_transition_seconds,
        partitions_per_table=options.partitions_per_table,
        index_allocation_seconds=options.index_allocation_seconds,
        index_lag=options.index_lag,
        index_reads_wait_seconds=options.index_reads_wait_seconds,
        transaction_delay=options.transaction_steps_delay,
        streams=ShardSettings(
            shard_roll_seconds=options.shard_roll_seconds,
            retention_seconds=options.stream_retention_seconds,
        ),
        keep_streams_seconds=options.keep_streams_seconds,
        relays=options.kafka.relay_settings(
            __version__, has_nodes=options.nodes.address is not None
        ),
        time_to_live=TimeToLiveSettings(
            delay_seconds=options.ttl_delay_seconds,
            deletes_per_second=options.ttl_deletes_per_second,
            change_interval_seconds=options.ttl_change_interval_seconds,
            transition_seconds=options.ttl_transition_seconds,
        ),
        splits=SplitSettings(
            size_limit_bytes=options.partition_limit_bytes,
            heat_seconds=options.split_heat_seconds,
            check_seconds=options.split_check_seconds,
        ),
        throttling=options.throttling,
        initial_burst_seconds=options.initial_burst_seconds,
        throughput_decreases_per_day=options.throughput_decreases_per_day,
        control_plane_cooldowns=options.control_plane_cooldowns,
        key_traffic=options.key_traffic,
        is_like_dynamodb_local=options.compat is not None,
        copy_messages=options.copy_messages,
        buckets=options.buckets,
        bucket_umask=umask,
        import_log_directory=(
            None if options.data_directory is None else str(options.data_directory)
        ),
        upload_directory=(
            None if options.data_directory is None else str(options.data_directory / "uploads")
        ),
        is_traced=options.traces.traces_endpoint is not None,
    )
    # The ports are opened before the data, so that a server whose port is in use opens no data.
    with listen(options.host, options.port) as listener, _admin_listener(options) as admin:
        async with AsyncExitStack() as stack:
            enter = stack.enter_async_context
            # A node opens the store only while it is the home.
            is_node = options.nodes.address is not None
            store = None if is_node else await enter(_store(options))
            if store is not None:
                await refuse_unfinished_copy(store)
            opened = open_certificate(options)
            certificate, admin_certificate, node_certificate = (
                (None, None, None) if opened is None else opened[:3]
            )
            keys = options.access_keys
            account = database_settings.account_id
            tokens = SessionTokens()
            registry = IdentityRegistry(options.identities, tokens, account)
            signatures = None if keys is None else Signatures(keys, tokens)
            observed = ObservedDenials() if options.policy_mode == "observe" else None
            access_control = (
                None
                if options.policy_dir is None
                else AccessControl(registry, observed, explains=options.explain_access)
            )
            limits = None if keys is None else KeyLimits(tokens)
            if limits is not None:
                limits.replace(options.profiles or ())
            # The admin port's certificate may be the same.
            certificates = {certificate, admin_certificate, node_certificate}
            watches = [_certificate_watch(each) for each in certificates if each is not None]
            if signatures is not None and options.credentials_file is not None:
                policy_dir = options.policy_dir
                watch = key_watch(
                    options.credentials_file.expanduser(),
                    signatures,
                    None if policy_dir is None else policy_dir.expanduser(),
                    registry,
                    limits,
                    secret=options.credentials_secret,
                )
                watches += [] if watch is None else [watch]
            await enter(watching(watches))
            broker = _broker(options)
            opening = Opening(database_settings, options.new_clock, broker, options.separation)
            request_log = RequestLog(logs_answers=options.log_level == "debug")

            def protocol_of(database: Database | None) -> AbstractAsyncContextManager[Protocol]:
                return _protocol(
                    options.traces,
                    database,
                    OPERATIONS.values(),
                    NOT_IMPLEMENTED,
                    signatures,
                    request_log,
                    access_control=access_control,
                    key_limits=limits,
                    # Given at once, because a node copies the protocol.
                    token_service=TokenService(tokens, registry, signatures, account),
                )

            parts = await enter(
                _parts(
                    options,
                    store,
                    opening,
                    protocol_of,
                    tokens=tokens,
                    certificate=node_certificate,
                )
            )
            protocol = parts.protocol
            admin_endpoint = None
            if admin is not None:
                # Imported only for an admin port.
                from dynactor.api.admin_port.listener import serving_admin  # noqa: PLC0415

                administered = _administered(options, parts)._replace(
                    callers=options.admin_callers.callers,
                    console=options.console_mode,
                    checks_keys=keys is not None,
                    endpoint=url(listener, certificate),
                )
                admin_endpoint = await enter(
                    serving_admin(administered, options.admin_access, admin, admin_certificate)
                )
            http_settings = _http_settings(options, admin_endpoint, admin)
            if certificate is not None:
                protocol.figures.certificate_expiry = lambda: certificate.expires_at_epoch_seconds
            endpoint = await enter(serving(protocol, http_settings, listener, certificate))
            await enter(checking_broker(broker))
            if parts.node is not None:
                # At once, while the requests in flight are still answered.
                stack.callback(parts.node.hand_over)
            clock_control = None if parts.host is None else parts.host.database.clock_control
            yield RunningServer(
                endpoint,
                listens_everywhere(listener),
                admin_endpoint,
                options.console_mode is not None,
                None if clock_control is None else clock_control.state,
                None if opened is None else opened.authority,
                watches,
            )


class _Parts(NamedTuple):
    """The parts that answer requests: the host of a single server's databases, or a node."""

    protocol: Protocol
    store: Store | None
    host: DatabaseHost | None = None
    node: Node | None = None


@asynccontextmanager
async def _parts(
    options: ServeOptions,
    store: Store | None,
    opening: Opening,
    protocol_of: Callable[[Database | None], AbstractAsyncContextManager[Protocol]],
    *,
    tokens: SessionTokens,
    certificate: NodeCertificate | None,
) -> AsyncIterator[_Parts]:
    """The parts that answer requests. Without a store, the server is a node of a cluster."""
    if store is None:
        # Imported only for a cluster.
        from dynactor.api.serve.running_node import NodeParts, serving_as_node  # noqa: PLC0415

        async with (
            protocol_of(None) as protocol,
            serving_as_node(options, NodeParts(protocol, opening, tokens, certificate)) as node,
        ):
            yield _Parts(protocol, None, node=node)
        return
    region = await settle_separation(store, opening.separation, options.region)
    tokens.use(await session_key(store))
    async with (
        hosting_database(store, opening.in_region(region)) as host,
        protocol_of(host.database) as protocol,
    ):
        protocol.use(host.databases)
        host.attach(protocol)
        if options.seed is not None:
            # Imported only for a server that fills tables.
            from dynactor.api.serve.seeding import seed  # noqa: PLC0415

            await seed(host.database, options.seed)
        yield _Parts(protocol, store, host)


def _administered(options: ServeOptions, parts: _Parts) -> Administered:
    """The parts that the admin port shows and changes, without its settings."""
    from dynactor.api.admin.reset_routes import SuiteControls  # noqa: PLC0415
    from dynactor.api.admin_port.listener import Administered  # noqa: PLC0415

    protocol, store, host, node = parts
    if store is None or host is None:
        assert node is not None
        return Administered(lambda: node.store_figures, protocol, node=node)
    controls = SuiteControls(host, can_reset=options.in_memory or options.allow_reset)
    faults = _fault_injector(host, protocol) if options.allow_faults else None
    backups = _backups(options, store)
    return Administered(store.figures, protocol, backups, controls, faults)


def _certificate_watch(certificate: ServerCertificate | NodeCertificate) -> FileWatch:
    return FileWatch(lambda: certificate.paths, certificate.reload)


@asynccontextmanager
async def _protocol(traces: TraceOptions, *parts: Any, **checks: Any) -> AsyncIterator[Protocol]:
    """The protocol of these parts, which exports traces if they have an endpoint."""
    if traces.traces_endpoint is None:
        yield Protocol(*parts, **checks)
        return
    # Only a server that exports traces imports the libraries for that.
    from dynactor.api.tracing.trace_export import TraceExport, trace_exporter  # noqa: PLC0415
    from dynactor.api.tracing.traced_protocol import Sampling, TracedProtocol  # noqa: PLC0415

    export = TraceExport(trace_exporter(traces.traces_endpoint))
    try:
        sampling = Sampling(traces.traces_sampled)
        protocol = TracedProtocol(*parts, **checks, sink=export, sampling=sampling)
        protocol.figures.traces = lambda: export.counts
        yield protocol
    finally:
        await export.close()


def _fault_injector(host: DatabaseHost, protocol: Protocol) -> FaultInjector:
    """Make the injector of faults. Operations are wrapped only while rules exist."""

    def changed() -> None:
        faulty = partial(with_faults, injector=injector)
        protocol.replace_operations(faulty if injector.has_rules else None)

    injector = FaultInjector(protocol.figures, changed)
    host.on_reset(injector.clear)
    return injector


def _http_settings(
    options: ServeOptions, admin_endpoint: str | None, admin: socket.socket | None
) -> HttpSettings:
    return HttpSettings(
        region=options.region,
        access=options.access,
        drain_seconds=options.drain_seconds,
        most_connections=options.max_connections or connections_limit(),
        identity=ServerIdentity(__version__, options.store_kind, admin_endpoint),
        admin_is_everywhere=admin is not None and listens_everywhere(admin),
        large_requests_bytes=memory_bytes() // _LARGE_REQUESTS_SHARE,
        unsent_answers_bytes=memory_bytes() // _UNSENT_ANSWERS_SHARE,
    )


def _broker(options: ServeOptions) -> Broker | None:
    settings = options.kafka.broker_settings
    if settings is None:
        return None
    # The client library is loaded only if changes are published.
    from dynactor.streams.kafka.aiokafka_broker import Kafka  # noqa: PLC0415

    return Kafka(settings)


def _backups(options: ServeOptions, store: Store) -> Backups | None:
    directory = options.backup_dir
    return None if directory is None else Backups(store, directory.expanduser())


@contextmanager
def _admin_listener(options: ServeOptions) -> Iterator[socket.socket | None]:
    if options.no_admin:
        yield None
        return
    with _listen_for_admin(options) as listener:
        yield listener


def _listen_for_admin(options: ServeOptions) -> socket.socket:
    """Listen on the given port, or on the first free one of the default ports."""
    if options.admin_port is not None:
        ports = [options.admin_port]
    elif options.port == 0:
        ports = [0]
    else:
        ports = [port for port in _ADMIN_PORTS if port != options.port]
    for port in ports[:-1]:
        with suppress(CannotListen):
            return listen(options.admin_host, port, option_prefix="--admin-")
    return listen(options.admin_host, ports[-1], option_prefix="--admin-")


@asynccontextmanager
async def _store(options: ServeOptions) -> AsyncIterator[Store]:
    if options.store is not None:
        async with open_postgresql(options.store, options.read_store) as store:
            yield store
        return
    directory = options.data_directory
    if directory is not None and not options.serve_backup:
        refuse_backup(directory)
    mib = options.cache_mib
    tuning = RocksOptions(block_cache_bytes=None if mib is None else mib * MIB)
    store = await (
        open_rocks_in_memory(tuning) if directory is None else open_rocks(directory, tuning)
    )
    try:
        if directory is not None:
            drop_backup_mark(directory)
        yield store
    finally:
        await store.close()


def data_location(options: ServeOptions) -> str:
    """The location of the data, for messages, without the password of a database."""
    if options.store is not None:
        from dynactor.storage.postgresql.address import parse_address  # noqa: PLC0415

        return parse_address(options.store).shown
    directory = options.data_directory
    return "memory, lost when the server stops" if directory is None else str(directory)
