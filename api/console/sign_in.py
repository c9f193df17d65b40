"""The callers of the console: their sessions, and the tokens of their pages.

A caller on the same machine needs no session, unless the server has a secret or access keys. Others
sign in with the secret of ``--admin-secret-file`` and get a cookie. Every request of a page also
sends the page's token, which belongs to the session. A page of another site can read neither.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from hmac import compare_digest, digest
from http import HTTPStatus
from secrets import token_bytes, token_hex
from time import monotonic
from typing import Final

from aiohttp import web

from dynactor.api.admin.change_header import CONSOLE_HEADER
from dynactor.api.admin.change_rules import Refusal, is_local

SESSION_SECONDS: Final = 12 * 60 * 60
# Wrong secrets in a minute, over all callers.
MOST_TRIES: Final = 5

_MOST_SESSIONS: Final = 100
_MINUTE_SECONDS: Final = 60.0
_COOKIE: Final = "dynactor_console"


class SignIn:
    """Decides who may use the console.

    Invariant: ``_sessions`` has the end of each session, the oldest session first.
    """

    def __init__(
        self,
        secret: str | None,
        *,
        checks_keys: bool,
        now: Callable[[], float] = monotonic,
    ) -> None:
        """``checks_keys``: clients of the API need access keys."""
        self._secret = secret
        self._checks_keys = checks_keys
        self._now = now
        self._key = token_bytes(32)
        self._sessions: dict[str, float] = {}
        self._failures: deque[float] = deque(maxlen=MOST_TRIES)

    def refusal(self, peer: str | None) -> Refusal | None:
        """The reason why nobody at this IP address can use the console, or None."""
        if self._secret is not None:
            return None
        if self._checks_keys:
            return Refusal(
                HTTPStatus.FORBIDDEN,
                "Clients of this server need access keys, so its console needs a secret: start the "
                "server with --admin-secret-file",
            )
        if is_local(peer):
            return None
        return Refusal(
            HTTPStatus.FORBIDDEN,
            "The console answers the same machine only: start the server with --admin-secret-file "
            "to sign in from others",
        )

    def session(self, request: web.BaseRequest) -> str | None:
        """The caller's session, an empty text if it needs none; None before it has signed in."""
        if self.refusal(request.remote) is not None:
            return None
        if self._secret is None:
            return ""
        session = request.cookies.get(_cookie_name(request), "")
        ends_at = self._sessions.get(session)
        return session if ends_at is not None and self._now() < ends_at else None

    def token(self, session: str) -> str:
        """The token of the pages of a session."""
        return digest(self._key, session.encode(), "sha256").hex()

    def allows(self, request: web.BaseRequest) -> bool:
        """Whether a request comes from a page of a caller that has signed in."""
        session = self.session(request)
        if session is None:
            return False
        given = request.headers.get(CONSOLE_HEADER, "")
        # The text of a header may have surrogates, for bytes that are not UTF-8.
        return compare_digest(given.encode(errors="surrogateescape"), self.token(session).encode())

    def sign_in(self, request: web.BaseRequest, given: str) -> web.Response | Refusal:
        """Begin a session if the secret is right."""
        now = self._now()
        if len(self._failures) == MOST_TRIES and now - self._failures[0] < _MINUTE_SECONDS:
            return Refusal(
                HTTPStatus.TOO_MANY_REQUESTS, "Too many wrong secrets: try again in a minute"
            )
        if self._secret is None or not compare_digest(given.encode(), self._secret.encode()):
            self._failures.append(now)
            return Refusal(HTTPStatus.UNAUTHORIZED, "This is not the secret of --admin-secret-file")
        self._forget_old(now)
        session = token_hex(32)
        self._sessions[session] = now + SESSION_SECONDS
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
        while self._sessions and (
            len(self._sessions) >= _MOST_SESSIONS or next(iter(self._sessions.values())) <= now
        ):
            del self._sessions[next(iter(self._sessions))]


def _cookie_name(request: web.BaseRequest) -> str:
    # A browser sends a host's cookies to all of its ports, so each port has a name of its own.
    port = request.host.rpartition(":")[2]
    return f"{_COOKIE}_{port}" if port.isdecimal() else _COOKIE
