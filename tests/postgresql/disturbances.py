"""Faults of PostgreSQL that end by themselves, for tests under load."""

from __future__ import annotations

import subprocess
from typing import Final

from tests.support.servers.postgresql import Postgresql

_CHUNK_BYTES: Final = 1 << 16
# Longer than statements are repeated before clients get errors.
_LONG_SECONDS: Final = 6.0


def disturb(server: Postgresql, fault: str) -> None:
    """Let a fault begin and end."""
    match fault:
        case "kill":
            server.kill()
            server.start()
        case "fast stop":
            server.stop()
            server.start()
        case "long outage":
            server.stop()
            _wait(_LONG_SECONDS)
            server.start()
        case "sessions":
            server.sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'dynactor'"
            )
        case "pause":
            server.pause()
            _wait(0.5)
            server.resume()
        case "full disk":
            ballast = server.data.parent / "ballast"
            with ballast.open("wb", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(_CHUNK_BYTES))
                except OSError:
                    _wait(2.0)
            ballast.unlink()
        case _:
            raise AssertionError(fault)


def _wait(seconds: float) -> None:
    # The duration of this process is the length of the fault.
    subprocess.run(["/usr/bin/env", "sleep", str(seconds)], check=True)
