"""A server on a virtual clock that a test sets, and whose metrics it reads."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tests.support.server import Server, running_server

_METRICS = re.compile(r"Metrics on http://[^:]+:([0-9]+)/metrics")


class Clocked:
    """What is asked of such a server beside DynamoDB's API."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.endpoint = server.endpoint
        found = _METRICS.search(server.announcement)
        assert found is not None, server.announcement
        self._port = int(found[1])

    def set(self, epoch_seconds: float) -> None:
        """Set the clock on to a time."""
        self._ask("PUT", "/clock", {"now": epoch_seconds})

    def metric(self, name: str, table: str) -> float:
        """A metric of a table; 0 if it is not there."""
        text = self._ask("GET", "/metrics").decode()
        found = re.search(rf'^{name}{{table="{re.escape(table)}"}} (\S+)$', text, re.MULTILINE)
        return 0.0 if found is None else float(found[1])

    def deleted_items(self, table: str) -> int:
        """How many items of a table time to live has deleted."""
        return int(self.metric("dynactor_time_to_live_deleted_item_count_total", table))

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> bytes:
        with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)) as connection:
            headers = {"Content-Type": "application/json"}
            connection.request(method, path, msgspec.json.encode(body) if body else None, headers)
            with closing(connection.getresponse()) as response:
                answer = response.read()
                assert response.status == 200, answer
                return answer


@contextmanager
def clocked_server(
    epoch_seconds: float | str, *arguments: str, data_dir: Path | None = None
) -> Iterator[Clocked]:
    """A server whose clock stands at that time, or goes on from ``now``."""
    options = ("--virtual-clock", str(epoch_seconds), "--admin-port", "0")
    with running_server(*options, *arguments, data_dir=data_dir) as server:
        yield Clocked(server)
