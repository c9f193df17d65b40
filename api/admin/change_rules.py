"""The rules for requests to the admin port.

A read needs a proof only if ``CallerRules`` says so. A change needs three things:

- a proof that allows changes (``callers.py``);
- the header ``X-Dynactor-Admin: 1``, which a web page can't send without a preflight request;
- no ``Origin`` header, or the listener's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, NamedTuple

from dynactor.api.admin_api.callers import UNKNOWN, Caller, CallerRules, Level
from dynactor.api.admin_api.change_header import CHANGE_HEADER, CHANGE_HEADER_VALUE

READING: Final = frozenset({"GET", "HEAD"})


class ChangeRefusal(NamedTuple):
    """The reason why a request is refused."""

    status: HTTPStatus
    message: str


def page_refusal(method: str, headers: Mapping[str, str]) -> ChangeRefusal | None:
    """The refusal of a change that a page of another site may have sent."""
    if method in READING:
        return None
    if headers.get(CHANGE_HEADER) != CHANGE_HEADER_VALUE:
        return _forbidden(f"A change needs the header {CHANGE_HEADER}: {CHANGE_HEADER_VALUE}")
    origin = headers.get("Origin")
    if origin is not None and origin.partition("://")[2] != headers.get("Host", ""):
        return _forbidden(f"Pages of {origin} may not change this server")
    return None


def refusal(
    method: str, headers: Mapping[str, str], caller: Caller, rules: CallerRules
) -> ChangeRefusal | None:
    """The refusal of a request; None if the caller may send it."""
    if caller.level is Level.NOTHING:
        return ChangeRefusal(
            HTTPStatus.UNAUTHORIZED,
            "A request to this port needs a secret or a client certificate: see the options "
            "--admin-secret-file, --admin-read-secret-file and --admin-client-ca of the server",
        )
    if method in READING:
        return None
    refused = page_refusal(method, headers)
    if refused is not None or caller.level is Level.FULL:
        return refused
    if caller.proof != UNKNOWN:
        return _forbidden(f"This caller may only read: {caller.proof}")
    if rules.secret is None:
        return _forbidden(
            "Changes are accepted from the same machine only: start the server with "
            "--admin-secret-file to allow others"
        )
    return ChangeRefusal(
        HTTPStatus.UNAUTHORIZED,
        "A change from another machine needs the secret of --admin-secret-file: send "
        "Authorization: Bearer SECRET",
    )


def _forbidden(message: str) -> ChangeRefusal:
    return ChangeRefusal(HTTPStatus.FORBIDDEN, message)
