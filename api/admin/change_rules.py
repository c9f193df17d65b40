"""The rules for changes over the admin port.

Every caller may read. A change needs three things:

- a caller on the same machine, the secret of ``--admin-secret-file``, or a page of the console
  that has signed in with this secret;
- the header ``X-Dynactor-Admin: 1``, which a web page can't send without a preflight request;
- no ``Origin`` header, or the listener's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from hmac import compare_digest
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final, NamedTuple

from dynactor.api.admin.change_header import CHANGE_HEADER, CHANGE_HEADER_VALUE

_READING: Final = frozenset({"GET", "HEAD"})
_SCHEME: Final = "Bearer "


class Refusal(NamedTuple):
    """The reason why a change is refused."""

    status: HTTPStatus
    message: str


def change_refusal(
    method: str,
    headers: Mapping[str, str],
    peer: str | None,
    secret: str | None,
    *,
    is_signed_in: bool = False,
) -> Refusal | None:
    """The refusal of a request that would change something; None if it is allowed.

    ``peer`` is the caller's IP address, ``secret`` the secret that other machines must send, unless
    they have signed in at the console.
    """
    if method in _READING:
        return None
    if headers.get(CHANGE_HEADER) != CHANGE_HEADER_VALUE:
        return _forbidden(f"A change needs the header {CHANGE_HEADER}: {CHANGE_HEADER_VALUE}")
    origin = headers.get("Origin")
    if origin is not None and origin.partition("://")[2] != headers.get("Host", ""):
        return _forbidden(f"Pages of {origin} may not change this server")
    if is_signed_in or is_local(peer):
        return None
    if secret is None:
        return _forbidden(
            "Changes are accepted from the same machine only: start the server with "
            "--admin-secret-file to allow others"
        )
    if _knows(headers.get("Authorization", ""), secret):
        return None
    return Refusal(
        HTTPStatus.UNAUTHORIZED,
        "A change from another machine needs the secret of --admin-secret-file: send "
        "Authorization: Bearer SECRET",
    )


def caller_of(
    headers: Mapping[str, str], peer: str | None, secret: str | None, *, is_signed_in: bool
) -> str:
    """The proof that a caller has given, in words for the log."""
    if secret is not None and _knows(headers.get("Authorization", ""), secret):
        return "secret"
    if is_signed_in:
        return "console"
    return "same machine" if is_local(peer) else "unknown"


def _forbidden(message: str) -> Refusal:
    return Refusal(HTTPStatus.FORBIDDEN, message)


def is_local(peer: str | None) -> bool:
    """Whether a caller with this IP address is on the same machine."""
    if peer is None:
        return False
    address = ip_address(peer.partition("%")[0])
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def _knows(authorization: str, secret: str) -> bool:
    given = authorization.removeprefix(_SCHEME).strip()
    return authorization.startswith(_SCHEME) and compare_digest(given.encode(), secret.encode())
