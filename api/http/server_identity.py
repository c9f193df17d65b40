"""The answer to ``GET /_dynactor``, which identifies the server to tools."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

IDENTITY_PATH: Final = "/_dynactor"

StoreKind: TypeAlias = Literal["memory", "disk", "postgresql"]


class ServerIdentity(Struct, frozen=True):
    """A server's version, its kind of store, and the URL of its admin listener, if any."""

    version: str
    store: StoreKind
    admin_endpoint: str | None = None


def http_url(host: str, port: int | None, scheme: str = "http") -> str:
    """The URL of a listener, with brackets around an IPv6 address."""
    return f"{scheme}://{host_and_port(host, port)}"


def host_and_port(host: str, port: int | None) -> str:
    """The address of a listener, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
