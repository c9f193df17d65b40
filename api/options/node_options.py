"""The options of ``dynactor serve`` that concern several nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from cyclopts import Group, Parameter

from dynactor.api.http.server_identity import host_and_port
from dynactor.api.options.admin_options import read_secret_option
from dynactor.api.options.configuration_error import ConfigurationError

_NODES: Final = Group(
    "Several nodes",
    help="Run several servers on one database of --store.",
    sort_key=4,
)
_MOST_NAME_CHARACTERS: Final = 100


class PeerAddress(NamedTuple):
    """The address of a node for other nodes."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only the same machine can connect."""
        try:
            return self.host == "localhost" or ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def is_wildcard(self) -> bool:
        """Whether it means all addresses of the machine."""
        try:
            return ip_address(self.host).is_unspecified
        except ValueError:
            return False


@Parameter(name="*", group=_NODES)
@dataclass(frozen=True, kw_only=True)
class NodeOptions:
    """Invariant: other nodes can connect to the address, and need a secret from another machine."""

    peer_listen: str | None = None
    """HOST:PORT at which this node listens for other nodes. Port 0 takes a free port. Needs
    --store."""

    peer_advertise: str | None = None
    """HOST:PORT at which other nodes reach this one, such as behind NAT. Default: the address of
    --peer-listen."""

    node_name: str | None = None
    """Name of this node, different from those of other nodes. Default: the address at which they
    reach it."""

    peer_secret_file: Path | None = None
    """File with the secret that all nodes share. Needed without --peer-ca, unless --peer-listen is
    a loopback address."""

    peer_ca: Path | None = None
    """File with the certificate authorities of nodes, in PEM form. A node then accepts only nodes
    with a certificate of theirs. Needs TLS. Default: the authorities of the system."""

    def __post_init__(self) -> None:
        address = self.address
        if address is None:
            given = (self.peer_advertise, self.node_name, self.peer_secret_file, self.peer_ca)
            if any(value is not None for value in given):
                raise ConfigurationError(
                    "--peer-advertise, --node-name, --peer-secret-file and --peer-ca are for "
                    "several nodes: give --peer-listen"
                )
            return
        advertised = self.advertised
        if advertised is None and address.is_wildcard:
            raise ConfigurationError(
                f"--peer-listen {self.peer_listen}: give the address at which other nodes reach "
                "this one, such as 10.0.0.5:7000, here or with --peer-advertise"
            )
        if advertised is not None and (advertised.is_wildcard or not advertised.port):
            raise ConfigurationError(
                f"--peer-advertise {self.peer_advertise}: give the address at which other nodes "
                "reach this one, such as 10.0.0.5:7000"
            )
        if not address.is_loopback and not self.is_authenticated:
            raise ConfigurationError(
                f"Every machine that can reach {self.peer_listen} could send requests there: give "
                "--peer-secret-file or --peer-ca, the same on all nodes"
            )
        if self.node_name is not None and not 0 < len(self.node_name) <= _MOST_NAME_CHARACTERS:
            raise ConfigurationError(
                f"--node-name must have 1 to {_MOST_NAME_CHARACTERS} characters"
            )
        self.secret  # noqa: B018 - to find errors at once

    @cached_property
    def address(self) -> PeerAddress | None:
        """The address of --peer-listen.

        Raises:
            ConfigurationError: it is not an address.
        """
        return _parsed("--peer-listen", self.peer_listen)

    @cached_property
    def advertised(self) -> PeerAddress | None:
        """The address of --peer-advertise.

        Raises:
            ConfigurationError: it is not an address.
        """
        return _parsed("--peer-advertise", self.peer_advertise)

    @property
    def is_authenticated(self) -> bool:
        """Whether a node that connects has to prove that it belongs to the cluster."""
        return self.peer_secret_file is not None or self.peer_ca is not None

    # Read once: the checked value is the used value, and a pipe can't be read twice.
    @cached_property
    def secret(self) -> str:
        """The secret that nodes share; empty if none is given.

        Raises:
            ConfigurationError: the file has no usable value.
        """
        if self.peer_secret_file is None:
            return ""
        return read_secret_option(self.peer_secret_file, "--peer-secret-file")

    def name_at(self, port: int) -> str:
        """The name of this node, which listens at this port."""
        return self.address_at(port) if self.node_name is None else self.node_name

    def address_at(self, port: int) -> str:
        """The address for other nodes; this node listens at this port."""
        if self.advertised is not None:
            return host_and_port(*self.advertised)
        assert self.address is not None
        return host_and_port(self.address.host, port)


def _parsed(option: str, text: str | None) -> PeerAddress | None:
    if text is None:
        return None
    try:
        url = urlsplit(f"//{text}")
        host, port = url.hostname, url.port
    except ValueError:
        host = port = None
    if not host or port is None or url.netloc != text or "@" in text:
        raise ConfigurationError(
            f"{option} {text} is not understood: give HOST:PORT, such as 10.0.0.5:7000"
        )
    return PeerAddress(host, port)
