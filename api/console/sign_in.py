"""The callers of the console: their sessions, and the tokens of their pages.

A caller on the same machine needs no session, unless the server has a secret or access keys. A
caller with a client certificate needs none either. Others sign in with a secret and get a cookie.
Every request of a page also sends the page's token, which belongs to the session. A page of another
site can read neither.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from hmac import compare_digest, digest
from http import HTTPStatus
from secrets import token_bytes, token_hex
from time import monotonic
from typing import Final, NamedTuple

import anyio
from aiohttp import web

from dynactor.api.admin.change_rules import ChangeRefusal
from dynactor.api.admin_api.callers import CallerRules, Level, certificate_name, is_local
from dynactor.api.admin_api.change_header import CONSOLE_HEADER
from dynactor.api.console.wrong_secrets import WrongSecrets

SESSION_SECONDS: Final = 12 * 60 * 60

_MOST_SESSIONS: Final = 100
_COOKIE: Final = "dynactor_console"


class _ConsoleSession(NamedTuple):
    """A caller that has signed in."""

    ends_at: float
    level: Level


class SignIn:
    """Decides who may use the console.

    Invariant: ``_sessions`` has the oldest session first.
    """

    def __init__(
        self,
        rules: CallerRules,
        *,
        checks_keys: bool,
        now: Callable[[], float] = monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        """``checks_keys``: clients of the API need access keys."""
        self._rules = rules
        self._checks_keys = checks_keys
        self._now = now
        self._key = token_bytes(32)
        self._sessions: dict[str, _ConsoleSession] = {}
        self._wrong_secrets = WrongSecrets(now, sleep)

    def refusal(self, peer: str | None, certificate: str | None = None) -> ChangeRefusal | None:
        """The reason why nobody at this IP address can use the console, or None.

        ``certificate`` is the common name of the caller's certificate.
        """
        if self._rules.has_secrets or certificate is not None:
            return None
        if self._rules.has_certificates:
            return ChangeRefusal(
                HTTPStatus.UNAUTHORIZED,
                "The console needs a client certificate of --admin-client-ca",
            )
        if self._checks_keys:
            return ChangeRefusal(
                HTTPStatus.FORBIDDEN,
                "Clients of this server need access keys, so its console needs a secret: start the "
                "server with --admin-secret-file",
            )
        if is_local(peer):
            return None
        return ChangeRefusal(
            HTTPStatus.FORBIDDEN,
            "The console answers the same machine only: start the server with --admin-secret-file "
            "to sign in from others",
        )

    def session(self, request: web.BaseRequest) -> str | None:
        """The caller's session, an empty text if it needs none; None before it has signed in."""
        certificate = certificate_name(request)
        if self.refusal(request.remote, certificate) is not None:
            return None
        name = request.cookies.get(_cookie_name(request), "")
        session = self._sessions.get(name)
        if session is not None and self._now() < session.ends_at:
            return name
        return "" if certificate is not None or not self._rules.has_secrets else None

    def token(self, session: str) -> str:
        """The token of the pages of a session."""
        return digest(self._key, session.encode(), "sha256").hex()

    def level(self, request: web.BaseRequest) -> Level:
        """The requests that a page may send: none, unless its caller has signed in."""
        session = self.session(request)
        if session is None:
            return Level.NOTHING
        # The text of a header may have surrogates, for bytes that are not UTF-8.
        given = request.headers.get(CONSOLE_HEADER, "").encode(errors="surrogateescape")
        if not compare_digest(given, self.token(session).encode()):
            return Level.NOTHING
        if session:
            return self._sessions[session].level
        certificate = certificate_name(request)
        return Level.FULL if certificate is None else self._rules.certificate_level(certificate)

    async def sign_in(self, request: web.BaseRequest, given: str) -> web.Response | ChangeRefusal:
        """Begin a session if the secret is right. Wrong secrets delay their address."""
        if not await self._wrong_secrets.admit(request.remote):
            return ChangeRefusal(
                HTTPStatus.TOO_MANY_REQUESTS, "Too many wrong secrets: try again in a minute"
            )
        level = self._rules.secret_level(given)
        if level is Level.NOTHING:
            self._wrong_secrets.note(request.remote)
            return ChangeRefusal(
                HTTPStatus.UNAUTHORIZED, "This is not the secret of --admin-secret-file"
            )
        now = self._now()
        self._forget_old(now)
        session = token_hex(32)
        self._sessions[session] = _ConsoleSession(now + SESSION_SECONDS, level)
        response = web.Response(status=HTTPStatus.NO_CONTENT)
        response.set_cookie(
            _cookie_name(request),
            session,
            max_age=SESSION_SECONDS,
            path="/",
            httponly=True,
            samesite="Strict",
            secure=request.scheme == "https",
        )
        return response

    def sign_out(self, request: web.BaseRequest) -> web.Response:
        """End the caller's session."""
        self._sessions.pop(request.cookies.get(_cookie_name(request), ""), None)
        response = web.Response(status=HTTPStatus.NO_CONTENT)
        response.del_cookie(_cookie_name(request), path="/")
        return response

    def _forget_old(self, now: float) -> None:
        for name, session in list(self._sessions.items()):
            if session.ends_at > now and len(self._sessions) < _MOST_SESSIONS:
                break
            del self._sessions[name]


def _cookie_name(request: web.BaseRequest) -> str:
    # A browser sends a host's cookies to all of its ports, so each port has a name of its own.
    port = request.host.rpartition(":")[2]
    return f"{_COOKIE}_{port}" if port.isdecimal() else _COOKIE
