"""Settings of both HTTP lanes: limits, timeouts, access."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Struct

from dynactor import __version__
from dynactor.api.http.browser_access import Access
from dynactor.api.http.server_identity import ServerIdentity
from dynactor.model.account import REGION
from dynactor.model.limits import KIB, MIB, REQUEST_BYTES
from dynactor.model.option import Option, OptionGroup

HEADER_BYTES: Final = 16 * KIB  # <= of a request's line and headers; more gets status 400
SERVER_NAME: Final = "dynactor"
# For answers that browsers show: they are no pages.
NO_PAGE: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}


class HttpSettings(Struct, frozen=True):
    """The server's identity and access, its timeouts and its limits of memory.

    ``idle_seconds`` is the timeout for a client that sends nothing, ``transfer_seconds`` for a
    client that is sending a request or reading an answer.

    ``large_requests_bytes`` limits the memory of large requests, and ``grace_seconds`` is how long
    a slow sender may make other requests wait for memory (``dynactor.api.http.body_memory``).
    ``unsent_answers_bytes`` limits the memory of answers that clients do not read
    (``dynactor.api.http.unsent_answers``). ``admin_is_everywhere``: the admin listener of
    ``identity`` listens on all addresses. ``most_connections`` follows from ``max_connections``.
    """

    max_connections: Annotated[
        int | None, Option("--max-connections", OptionGroup.PROCESS, at_least=1)
    ] = None
    """Most connections of clients. Further connections are closed at once. Default: about
    half of the files that the process may open."""

    drain_seconds: Annotated[float, Option("--drain-seconds", OptionGroup.PROCESS)] = 10
    """Seconds that requests in flight may take when the server stops."""

    region: str = REGION
    access: Access = Access()
    identity: ServerIdentity = ServerIdentity(__version__, "memory")
    admin_is_everywhere: bool = False
    idle_seconds: float = 120
    transfer_seconds: float = 60
    large_requests_bytes: int = 256 * MIB
    grace_seconds: float = 5
    unsent_answers_bytes: int = 256 * MIB
    most_connections: int = 10_000

    @property
    def least_bytes_per_second(self) -> float:
        """The lowest rate at which the largest request arrives before its timeout."""
        return REQUEST_BYTES / self.transfer_seconds
