"""The settings of several nodes on one store."""

from __future__ import annotations

from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

from dynactor.api.http.server_identity import host_and_port
from dynactor.model.configuration_error import ConfigurationError
from dynactor.model.option import Option, OptionGroup
from dynactor.model.secret_fields import SecretFields


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


def _address(option: str, text: str | None) -> PeerAddress | None:
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


class NodeSettings(SecretFields, frozen=True):
    """This node, and its proof for other nodes. Without an address, the server is no node."""

    secret_fields = frozenset({"secret"})

    address: Annotated[
        PeerAddress | None,
        Option("--peer-listen", OptionGroup.NODES, partial(_address, "--peer-listen"), str | None),
    ] = None
    """HOST:PORT at which this node listens for other nodes. Port 0 takes a free port. Needs
    --store."""

    advertised: Annotated[
        PeerAddress | None,
        Option(
            "--peer-advertise", OptionGroup.NODES, partial(_address, "--peer-advertise"), str | None
        ),
    ] = None
    """HOST:PORT at which other nodes reach this one, such as behind NAT. Default: the address of
    --peer-listen."""

    name: Annotated[str | None, Option("--node-name", OptionGroup.NODES)] = None
    """Name of this node, different from those of other nodes. Default: the address at which they
    reach it."""

    secret_file: Annotated[Path | None, Option("--peer-secret-file", OptionGroup.NODES)] = None
    """File with the secret that all nodes share. Needed without --peer-ca, unless --peer-listen is
    a loopback address."""

    ca: Annotated[Path | None, Option("--peer-ca", OptionGroup.NODES)] = None
    """File with the certificate authorities of nodes, in PEM form. A node then accepts only nodes
    with a certificate of theirs. Needs TLS. Default: the authorities of the system."""

    # The secret of the file, which is read once; empty if none is given.
    secret: str = ""

    @property
    def is_authenticated(self) -> bool:
        """Whether a node that connects has to prove that it belongs to the cluster."""
        return self.secret_file is not None or self.ca is not None

    def name_at(self, port: int) -> str:
        """The name of this node, which listens at this port."""
        return self.address_at(port) if self.name is None else self.name

    def address_at(self, port: int) -> str:
        """The address for other nodes; this node listens at this port."""
        if self.advertised is not None:
            return host_and_port(*self.advertised)
        assert self.address is not None
        return host_and_port(self.address.host, port)
