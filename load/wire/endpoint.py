"""Parses the URL of an endpoint."""

from __future__ import annotations

import os
import re
import ssl
from functools import cache
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_AWS: Final = re.compile(r"(?:[a-z0-9-]+\.)*dynamodb(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com")


class NotAnEndpoint(ValueError):
    """The text is not a URL of an endpoint; the message shows a valid one."""


class Endpoint(Struct, frozen=True):
    """A server's address. ``aws_region`` is set if the server is AWS's."""

    host: str
    port: int
    is_tls: bool
    aws_region: str | None = None

    @property
    def host_header(self) -> str:
        """The Host header, which a signature covers."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = _DEFAULT_PORTS["https" if self.is_tls else "http"]
        return host if self.port == default else f"{host}:{self.port}"

    def tls(self) -> ssl.SSLContext | None:
        """The TLS settings, if the endpoint uses TLS."""
        return _tls() if self.is_tls else None


@cache
def _tls() -> ssl.SSLContext:
    # Cached for all connections, because this call reads all certificate authorities.
    return ssl.create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE") or None)


def parse_endpoint(url: str) -> Endpoint:
    """The endpoint of a URL.

    Raises:
        NotAnEndpoint: the URL is invalid.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise NotAnEndpoint(f"{url!r} is not an endpoint: {error}") from error
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise NotAnEndpoint(f"{url!r} is not an endpoint: give a URL such as http://127.0.0.1:8000")
    if parts.path not in {"", "/"} or parts.query or parts.username:
        raise NotAnEndpoint(f"{url!r} is not an endpoint: nothing may follow its host and port")
    aws = _AWS.fullmatch(parts.hostname)
    return Endpoint(
        parts.hostname,
        port or _DEFAULT_PORTS[parts.scheme],
        parts.scheme == "https",
        aws[1] if aws else None,
    )
