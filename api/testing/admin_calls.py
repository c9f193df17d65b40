"""Requests to the admin port of a server, with the standard library alone."""

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

    Every call has a connection of its own: on one that is used again, nobody could tell whether a
    request that failed was carried out.

    Raises:
        AdminError: the request was refused.
        OSError: the server can't be reached.
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
