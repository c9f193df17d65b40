"""The parts of an HTTP request that policies may ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from msgspec import Struct


class Client(Struct, frozen=True):
    """The other end of a connection; ``is_secure`` with TLS."""

    address: str = ""
    is_secure: bool = False


class Connection(Client, frozen=True, eq=False):
    """A client of this node. Each connection has an object of its own."""


NO_CLIENT: Final = Client()


class TrustedCaller(Struct, frozen=True):
    """A caller that is known without a signature: a page of the console, or this server itself.

    Region and access key select the tables of a server with separate regions.
    """

    region: str = ""
    access_key_id: str = ""


class Sender(Protocol):
    """A request whose signature has been verified."""

    @property
    def authorization(self) -> str: ...  # noqa: D102 - the header
    @property
    def query(self) -> str: ...  # noqa: D102 - of the URL
    @property
    def headers(self) -> Mapping[str, str]: ...  # noqa: D102 - names in lower case
    @property
    def client(self) -> Client: ...  # noqa: D102 - see the class
