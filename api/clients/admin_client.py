"""A client of the admin listener, for commands that use a running server.

It uses only the standard library, so that short commands start fast. If the server needs a secret,
the client reads it from the file that one of the server's variables names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from dynactor.api.admin_api.change_header import CHANGE_HEADER, CHANGE_HEADER_VALUE
from dynactor.api.admin_api.secret_file import BadSecretFile, read_secret
from dynactor.api.clients.reach import CallFailed, CannotCall, no_address, not_reached
from dynactor.api.clients.trusted_authorities import tls_context

AnswerT = TypeVar("AnswerT")

_SCHEMES: Final = ("http", "https")
_TIMEOUT_SECONDS: Final = 300.0
_NO_HEADERS: Final[Mapping[str, str]] = {}
# The first of these variables that is set names the file of the secret.
_SECRET_VARIABLES: Final = ("DYNACTOR_ADMIN_SECRET_FILE", "DYNACTOR_ADMIN_READ_SECRET_FILE")


class AdminRequestFailed(CallFailed):
    """The admin listener refused a request; the message is the listener's."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class AdminClient:
    """Sends requests to one server, each on a new connection."""

    def __init__(
        self,
        endpoint: str,
        kind: str = "dynactor's admin listener",
        parameters: Mapping[str, str] | None = None,
        *,
        option: str = "--admin-endpoint",
    ) -> None:
        """``option`` gives another endpoint, for error messages."""
        self._option = option
        self._endpoint = endpoint.rstrip("/")
        # The query parameters of every request.
        self._parameters = parameters or {}
        # The expected kind of server, for error messages.
        self._kind = kind

    def ask(
        self,
        method: str,
        path: str,
        answer_type: type[AnswerT],
        *,
        parameters: dict[str, str] | None = None,
        body: dict[str, Any] | None = None,
        timeout_seconds: float | None = _TIMEOUT_SECONDS,
        if_missing: AnswerT | None = None,
    ) -> AnswerT:
        """The server's answer, which must start within ``timeout_seconds``; None waits forever.

        ``if_missing`` is the answer for a server that does not have the path, such as an earlier
        version. Raises ``AdminRequestFailed`` if the server refuses the request, or ``CannotCall``
        without an answer of such a server.
        """
        parameters = {**self._parameters, **(parameters or {})}
        if parameters:
            path = f"{path}?{urlencode(parameters)}"
        status, content = self._exchange(method, path, body, timeout_seconds)
        if status == HTTPStatus.NOT_FOUND and if_missing is not None:
            return if_missing
        return self._decoded(status, content, answer_type)

    def send(
        self, path: str, content: bytes | Path, content_type: str, answer_type: type[AnswerT]
    ) -> AnswerT:
        """Put bytes, or the content of a file; returns the answer, raises as ``ask``."""
        if self._parameters:
            path = f"{path}?{urlencode(self._parameters)}"
        headers = {"Content-Type": content_type}
        if isinstance(content, bytes):
            status, answer = self._exchange("PUT", path, content, _TIMEOUT_SECONDS, headers)
        else:
            with content.open("rb") as file:
                headers["Content-Length"] = str(content.stat().st_size)
                status, answer = self._exchange("PUT", path, file, _TIMEOUT_SECONDS, headers)
        return self._decoded(status, answer, answer_type)

    def _decoded(self, status: int, content: bytes, answer_type: type[AnswerT]) -> AnswerT:
        try:
            if status in (HTTPStatus.OK, HTTPStatus.CREATED):
                return msgspec.json.decode(content, type=answer_type)
            message = msgspec.json.decode(content)["message"]
        except (msgspec.MsgspecError, KeyError, TypeError):
            raise CannotCall(
                f"{self._endpoint} is not {self._kind}: invalid answer with HTTP status {status}"
            ) from None
        raise AdminRequestFailed(message, status)

    def read(self, path: str) -> str:
        """The text at a path of the server; raises ``AdminRequestFailed`` or ``CannotCall``."""
        status, content = self._exchange("GET", path, None, _TIMEOUT_SECONDS)
        text = content.decode(errors="replace")
        if status != HTTPStatus.OK:
            raise AdminRequestFailed(text.strip(), status)
        return text

    def _exchange(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | bytes | BinaryIO | None,
        timeout_seconds: float | None,
        more_headers: Mapping[str, str] = _NO_HEADERS,
    ) -> tuple[int, bytes]:
        try:
            address = urlsplit(self._endpoint)
            host, port = address.hostname, address.port
        except ValueError:
            raise no_address(self._endpoint) from None
        if address.scheme not in _SCHEMES or not host:
            raise no_address(self._endpoint)
        content = msgspec.json.encode(body) if isinstance(body, dict) else body
        headers = {CHANGE_HEADER: CHANGE_HEADER_VALUE, **_authorization(), **more_headers}
        if isinstance(body, dict):
            headers["Content-Type"] = "application/json"
        try:
            connection = _connection(address.scheme, host, port, timeout_seconds)
            connection.connect()
        except OSError as error:
            reason = error.strerror or str(error)
            raise not_reached(self._endpoint, reason, option=self._option) from None
        try:
            connection.request(method, f"{address.path}{path}", content, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, HTTPException) as error:
            raise CannotCall(f"No answer from {self._endpoint}: {error}") from None
        finally:
            connection.close()


def _authorization() -> dict[str, str]:
    """The header with the secret, if a variable names its file; raises ``CannotCall``."""
    for variable in _SECRET_VARIABLES:
        path = os.environ.get(variable)
        if path:
            try:
                secret = read_secret(Path(path).expanduser(), variable)
            except BadSecretFile as error:
                raise CannotCall(str(error)) from None
            return {"Authorization": f"Bearer {secret}"}
    return {}


def _connection(
    scheme: str, host: str, port: int | None, timeout_seconds: float | None
) -> HTTPConnection:
    if scheme == "http":
        return HTTPConnection(host, port, timeout=timeout_seconds)
    return HTTPSConnection(host, port, timeout=timeout_seconds, context=tls_context())
