"""Requests to a server's admin port, which include setting its virtual clock."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.support.clients.clients import Answer
from tests.support.servers.server import Server, running_server

JSON = "application/json"
_DEADLINE_SECONDS = 30


def admin_port(server: Server, host: str = "127.0.0.1") -> int:
    """The admin port, from the server's output."""
    found = re.search(
        rf"^Metrics on http://{re.escape(host)}:(\d+)/metrics$", server.announcement, re.MULTILINE
    )
    assert found, server.announcement
    return int(found[1])


def ask(
    port: int,
    path: str,
    method: str = "GET",
    body: Any = None,
    *,
    host: str = "localhost",
    address: str = "127.0.0.1",
    content_type: str | None = JSON,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Send one request to the admin port; a body other than text is sent as JSON."""
    headers = {"Host": host, "X-Dynactor-Admin": "1", **(headers or {})}
    if content_type and body is not None:
        headers["Content-Type"] = content_type
    text = body if isinstance(body, str) or body is None else json.dumps(body)
    with closing(
        http.client.HTTPConnection(address, port, timeout=_DEADLINE_SECONDS)
    ) as connection:
        connection.request(method, path, text, headers)
        with closing(connection.getresponse()) as response:
            return Answer(response.status, response.headers, response.read())


class ClockNotMoved(Exception):
    """The server could not store the new time."""


class ServerClock:
    """The virtual clock of a server. Each method returns the clock's time in epoch seconds.

    Raises:
        ClockNotMoved: the server's store can't be written at this moment.
    """

    def __init__(self, server: Server) -> None:
        self._port = admin_port(server)

    def now(self) -> float:
        """The current time of the virtual clock."""
        return self._now(ask(self._port, "/clock"))

    def step(self, seconds: float) -> float:
        """Advance the clock."""
        return self._now(ask(self._port, "/clock/step", "POST", {"seconds": seconds}))

    def set(self, **setting: float | str) -> float:
        """Set ``now``, ``speed`` or both."""
        return self._now(ask(self._port, "/clock", "PUT", setting))

    def _now(self, answer: Answer) -> float:
        if answer.status == 500:
            raise ClockNotMoved(answer.body)
        assert answer.status == 200, answer.body
        now: float = answer.json["now"]
        return now


@contextmanager
def server_with_clock(
    start: str | float, *arguments: str, data_dir: Path | None = None
) -> Iterator[tuple[Server, ServerClock]]:
    """A server on a virtual clock that only ``ServerClock`` advances."""
    options = ("--admin-port", "0", "--virtual-clock", str(start), *arguments)
    with running_server(*options, data_dir=data_dir) as server:
        yield server, ServerClock(server)
