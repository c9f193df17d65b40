"""The start of the admin port, from the settings and the parts of the server."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from dynactor.api.faults.faulty_operation import with_faults
from dynactor.api.faults.injector import FaultInjector
from dynactor.api.hosting.database_host import DatabaseHost
from dynactor.api.http.protocol import Protocol
from dynactor.api.http.server import CannotListen, listen
from dynactor.api.options.server_settings import ServerSettings
from dynactor.api.tls.certificate import ServerCertificate
from dynactor.storage.directory_backups import Backups
from dynactor.storage.store import Store

if TYPE_CHECKING:
    from dynactor.api.admin_port.listener import Administered
    from dynactor.api.nodes.node import Node

# 8001 is also the default port of dynamodb-admin.
_PORTS: Final = range(8001, 8011)


class AdminParts(NamedTuple):
    """The parts that answer requests: the host of a single server's databases, or a node."""

    protocol: Protocol
    store: Store | None
    host: DatabaseHost | None = None
    node: Node | None = None


@contextmanager
def admin_listener(settings: ServerSettings) -> Iterator[socket.socket | None]:
    """The listener of the admin port; None without one."""
    if settings.admin.no_admin:
        yield None
        return
    with _listen(settings) as listener:
        yield listener


def _listen(settings: ServerSettings) -> socket.socket:
    """Listen on the given port, or on the first free one of the default ports."""
    admin = settings.admin
    if admin.port is not None:
        ports = [admin.port]
    elif settings.port == 0:
        ports = [0]
    else:
        ports = [port for port in _PORTS if port != settings.port]
    for port in ports[:-1]:
        with suppress(CannotListen):
            return listen(admin.host, port, option_prefix="--admin-")
    return listen(admin.host, ports[-1], option_prefix="--admin-")


@asynccontextmanager
async def running_admin(
    settings: ServerSettings,
    parts: AdminParts,
    listener: socket.socket | None,
    certificate: ServerCertificate | None,
    endpoint: str,
) -> AsyncIterator[str | None]:
    """The URL of the admin port, which serves within the context; None without a listener."""
    if listener is None:
        yield None
        return
    # Imported only for an admin port.
    from dynactor.api.admin_port.listener import serving_admin  # noqa: PLC0415

    administered = _administered(settings, parts)._replace(
        callers=settings.admin.callers,
        console=settings.admin.console_mode,
        checks_keys=settings.keys.file is not None,
        endpoint=endpoint,
    )
    async with serving_admin(administered, settings.admin_access, listener, certificate) as url:
        yield url


def _administered(settings: ServerSettings, parts: AdminParts) -> Administered:
    """The parts that the admin port shows and changes, without its settings."""
    from dynactor.api.admin.reset_routes import SuiteControls  # noqa: PLC0415
    from dynactor.api.admin_port.listener import Administered  # noqa: PLC0415

    protocol, store, host, node = parts
    if store is None or host is None:
        assert node is not None
        return Administered(lambda: node.store_figures, protocol, node=node)
    suites, directory = settings.suites, settings.store.backup_dir
    controls = SuiteControls(host, can_reset=settings.store.in_memory or suites.allow_reset)
    faults = _fault_injector(host, protocol) if suites.allow_faults else None
    backups = None if directory is None else Backups(store, directory.expanduser())
    return Administered(store.figures, protocol, backups, controls, faults)


def _fault_injector(host: DatabaseHost, protocol: Protocol) -> FaultInjector:
    """Make the injector of faults. Operations are wrapped only while rules exist."""

    def changed() -> None:
        faulty = partial(with_faults, injector=injector)
        protocol.replace_operations(faulty if injector.has_rules else None)

    injector = FaultInjector(protocol.figures, changed)
    host.on_reset(injector.clear)
    return injector
