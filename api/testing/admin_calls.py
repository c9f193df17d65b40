"""Requests to the admin port of a server, with the standard library only."""

from __future__ import annotations

import http.client
import json
from contextlib import closing
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

_DEADLINE_SECONDS: Final = 60.0
_HEADERS: Final = {"Content-Type": "application/json", "X-Dynactor-Admin": "1"}


class AdminError(RuntimeError):
    """The admin port refused a request; the message is the server's."""


def call_admin(endpoint: str, method: str, path: str, body: Any = None) -> Any:
    """Send a request with a JSON body, and return the JSON of the answer.

    Each call uses a new connection. After a failure on a reused connection, a client can't know
    whether the request was carried out. Raises ``AdminError`` if the request was refused, or
    ``OSError`` if the server is unreachable.
    """
    text = None if method in ("GET", "DELETE") else json.dumps({} if body is None else body)
    host = urlsplit(endpoint).netloc
    with closing(http.client.HTTPConnection(host, timeout=_DEADLINE_SECONDS)) as connection:
        connection.request(method, path, text, _HEADERS)
        with closing(connection.getresponse()) as response:
            content = json.loads(response.read())
            if response.status >= HTTPStatus.BAD_REQUEST:
                raise AdminError(content["message"])
            return content
