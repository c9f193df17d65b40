"""The settings of the whole server. Its classes, and the classes in them, have all options."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Struct

from dynactor.actors.parts.database_settings import DatabaseSettings
from dynactor.api.access.policy_settings import PolicySettings
from dynactor.api.admin_api.admin_settings import AdminSettings
from dynactor.api.hosting.clock_settings import ClockSettings
from dynactor.api.hosting.store_settings import StoreSettings
from dynactor.api.hosting.suite_settings import SuiteSettings
from dynactor.api.http.browser_access import Access
from dynactor.api.http.settings import HttpSettings
from dynactor.api.keys.key_settings import KeySettings
from dynactor.api.nodes.node_settings import NodeSettings
from dynactor.api.options.log_settings import LogSettings
from dynactor.api.tls.tls_settings import TlsSettings
from dynactor.api.tracing.trace_settings import TraceSettings
from dynactor.model.configuration_error import ConfigurationError
from dynactor.model.option import Option, OptionGroup, listed
from dynactor.storage.namespaces import Separation
from dynactor.streams.kafka.broker import BrokerSettings

Regions: TypeAlias = Literal["shared", "apart"]
Compat: TypeAlias = Literal["dynamodb-local"]

_HOST_NAME: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?\Z")
_ORIGIN: Final = re.compile(r"(?:\*|null|[a-z][a-z0-9+.-]*://[^/?#*\s]+)\Z")


def _host_names(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse names that no client can send, because they are mistakes."""
    for name in listed(texts):
        if _HOST_NAME.match(name) is None:
            raise ConfigurationError(
                f"--allowed-hosts {name} is not a host name: leave out scheme and port, as in "
                "box.example.com"
            )
    return listed(texts)


def _origins(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse origins that no client can send, because they are mistakes."""
    for origin in listed(texts):
        if _ORIGIN.match(origin) is None:
            raise ConfigurationError(
                f"--cors-origins {origin} is not an origin: give only scheme, host and port, as in "
                "https://app.example.com, or * for all"
            )
    return listed(texts)


class ServerSettings(Struct, frozen=True):
    """The settings of the server. An address other than loopback was allowed explicitly."""

    host: Annotated[str, Option("--host", OptionGroup.ACCESS)] = "127.0.0.1"
    """Address to listen on. An address other than loopback needs access keys or --allow-open."""

    port: Annotated[int, Option("--port", OptionGroup.ACCESS, is_port=True)] = 8000
    """Port to listen on. 0 takes a free port."""

    suites: SuiteSettings = SuiteSettings()

    allow_open: Annotated[bool, Option("--allow-open", OptionGroup.ACCESS)] = False
    """Listen on any address although every access key is accepted."""

    host_names: Annotated[
        tuple[str, ...], Option("--allowed-hosts", OptionGroup.ACCESS, _host_names)
    ] = ()
    """Host names that clients may use, in addition to localhost and IP addresses. Example:
    db.example.com."""

    origins: Annotated[tuple[str, ...], Option("--cors-origins", OptionGroup.ACCESS, _origins)] = ()
    """Origins of web pages that may use the server from a browser. Example:
    https://app.example.com. * allows all."""

    keys: KeySettings = KeySettings()
    policies: PolicySettings = PolicySettings()
    store: StoreSettings = StoreSettings()
    tls: TlsSettings = TlsSettings()
    admin: AdminSettings = AdminSettings()
    logs: LogSettings = LogSettings()
    http: HttpSettings = HttpSettings()

    exit_with_parent: Annotated[bool, Option("--exit-with-parent", OptionGroup.PROCESS)] = False
    """Stop when the process that started the server ends, even after SIGKILL."""

    nodes: NodeSettings = NodeSettings()
    traces: TraceSettings = TraceSettings()
    broker: BrokerSettings = BrokerSettings()
    database: DatabaseSettings = DatabaseSettings()
    clock: ClockSettings = ClockSettings()

    regions: Annotated[Regions, Option("--regions", OptionGroup.REGIONS)] = "shared"
    """Tables of regions. shared: all regions have the same tables. apart: each region has its own
    tables; a request's region is in its signature. Earlier tables then belong to --region."""

    compat: Annotated[Compat | None, Option("--compat", OptionGroup.REGIONS)] = None
    """Behave as DynamoDB Local does: --gsi-lag awaited, --throttling observe, tables and indexes
    that are ACTIVE at once, and separate tables for each access key and region. Unused
    AttributeDefinitions are no error."""

    shared_db: Annotated[bool, Option("--shared-db", OptionGroup.REGIONS)] = False
    """With --compat: share all tables, as -sharedDb does."""

    def __repr__(self) -> str:
        """A text without the fields, because some of them are secrets."""
        return "ServerSettings(…)"

    @property
    def is_node(self) -> bool:
        """Whether the server is a node of a cluster."""
        return self.nodes.address is not None

    @property
    def separation(self) -> Separation:
        """The unit that has separate tables: the server, each region or each access key."""
        if self.compat is not None and not self.shared_db:
            return "access key"
        return "region" if self.regions == "apart" else "shared"

    @property
    def access(self) -> Access:
        """The access of web pages to the main port."""
        return self._access(self.host, self.origins)

    @property
    def admin_access(self) -> Access:
        """The access of web pages to the admin port: only the port's own pages may read."""
        return self._access(self.admin.host, ())

    def _access(self, host: str, origins: tuple[str, ...]) -> Access:
        """The access of web pages to a listener.

        A listener on a network is reached by unknown names, so names are checked only if some are
        configured.
        """
        names = frozenset(name.lower() for name in self.host_names)
        return Access(
            host_names=names if names or is_loopback(host) else None, origins=frozenset(origins)
        )


def is_loopback(host: str) -> bool:
    """Whether only the same machine can connect to an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
