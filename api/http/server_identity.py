"""The answer to ``GET /_dynactor``, by which tools learn what they speak to."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

IDENTITY_PATH: Final = "/_dynactor"

StoreKind: TypeAlias = Literal["memory", "disk", "postgresql"]


class ServerIdentity(Struct, frozen=True):
    """A server's version, where its data is, and the URL of its admin listener if it has one."""

    version: str
    store: StoreKind
    admin_endpoint: str | None = None


def http_url(host: str, port: int | None) -> str:
    """The URL of a listener; an IPv6 address is put into brackets."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
