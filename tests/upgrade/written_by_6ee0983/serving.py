"""The server on the directory, with a clock that stands still."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from scribe import Scribe

from tests.support.admin import ServerClock, admin_port, ask, server_with_clock
from tests.support.clients import WireClient
from tests.support.server import Server

# 2024-05-01T12:00:00Z
START: Final = 1_714_564_800
_A_YEAR: Final = "31536000"


class Serving:
    """A server, its clock, and a client of it."""

    def __init__(self, server: Server, clock: ServerClock, wire: WireClient) -> None:
        self.server = server
        self.clock = clock
        self.wire = wire

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric over all series with these labels."""
        page = ask(admin_port(self.server), "/metrics").body.decode()
        return sum(
            float(line.rpartition(" ")[2])
            for line in page.splitlines()
            if line.startswith(f"{name}{{")
            and all(f'{label}="{value}"' in line for label, value in labels.items())
        )


@contextmanager
def serving(
    scribe: Scribe, directory: Path, *options: str, ttl_delay_seconds: str = _A_YEAR
) -> Iterator[Serving]:
    """Run a server on the directory, and stop it in order unless it was killed.

    By default it deletes no expired items.
    """
    options = ("--throttling", "auto", "--ttl-delay-seconds", ttl_delay_seconds, *options)
    with (
        server_with_clock(START, *options, data_dir=directory) as (server, clock),
        closing(WireClient(server.endpoint)) as wire,
    ):
        scribe.wire = wire
        yield Serving(server, clock, wire)
        if server.process.poll() is None:
            assert server.stop() == 0, server.log
