"""What the two ways into the server have in common: limits, time-outs, who is let in."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dynactor import __version__
from dynactor.api.http.browser_access import Access
from dynactor.api.http.server_identity import ServerIdentity
from dynactor.model.limits import KIB, MIB, REQUEST_BYTES

HEADER_BYTES: Final = 16 * KIB  # <= of a request's line and headers; more is answered 400
SERVER_NAME: Final = "dynactor"


class HttpSettings(Struct, frozen=True):
    """What is shown and allowed, and how long clients are waited for.

    ``idle_seconds`` is for a client that sends nothing; ``transfer_seconds`` for the rest of a
    request once it has begun, and for an answer to be taken; ``drain_seconds`` for requests
    under way when the server stops. ``large_requests_bytes`` is how much of large requests is held
    at a time, ``grace_seconds`` how long the sender of one may be late while others wait for room
    (``dynactor.api.http.body_memory``). ``unsent_answers_bytes`` is how much of answers is held for
    clients that do not read them (``dynactor.api.http.unsent_answers``). ``admin_is_everywhere`` is
    set if the admin listener of ``identity`` listens on all addresses.
    """

    region: str
    access: Access = Access()
    identity: ServerIdentity = ServerIdentity(__version__, "memory")
    admin_is_everywhere: bool = False
    idle_seconds: float = 120
    transfer_seconds: float = 60
    drain_seconds: float = 10
    large_requests_bytes: int = 256 * MIB
    grace_seconds: float = 5
    unsent_answers_bytes: int = 256 * MIB

    @property
    def least_bytes_per_second(self) -> float:
        """The pace at which the largest request is just read in time.

        Whoever is put out for being slower while others wait would not be in time with that one.
        """
        return REQUEST_BYTES / self.transfer_seconds
