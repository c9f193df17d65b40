"""A server on a virtual clock that a test sets, and its metrics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.servers.admin import ServerClock, admin_port, ask, server_with_clock
from tests.support.servers.server import Server


class Clocked:
    """A server, its virtual clock and its metrics."""

    def __init__(self, server: Server, clock: ServerClock) -> None:
        self.server = server
        self.endpoint = server.endpoint
        self._clock = clock
        self._port = admin_port(server)

    @property
    def now(self) -> int:
        """The present time in whole seconds."""
        return int(self._clock.now())

    def set(self, epoch_seconds: float) -> None:
        """Advance the clock to a time."""
        self._clock.set(now=epoch_seconds)

    def metric(self, name: str, table: str, index: str | None = None) -> float:
        """A metric of a table, or of an index of it; 0 if missing."""
        text = ask(self._port, "/metrics").body.decode()
        names = [*([] if index is None else [("index", index)]), ("table", table)]
        labels = ",".join(f'{label}="{value}"' for label, value in names)
        found = re.search(rf"^{name}{{{re.escape(labels)}}} (\S+)$", text, re.MULTILINE)
        return 0.0 if found is None else float(found[1])

    def deleted_items(self, table: str) -> int:
        """The number of a table's items that time to live has deleted."""
        return int(self.metric("dynactor_time_to_live_deleted_item_count_total", table))


@contextmanager
def clocked_server(
    epoch_seconds: float | str, *arguments: str, data_dir: Path | None = None
) -> Iterator[Clocked]:
    """A server whose virtual clock starts at this time, and only the test advances."""
    with server_with_clock(epoch_seconds, *arguments, data_dir=data_dir) as served:
        yield Clocked(*served)
