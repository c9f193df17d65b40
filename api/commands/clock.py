"""The command ``dynactor clock``: reads and moves the virtual clock of a running server."""

from __future__ import annotations

import sys
from typing import Any

from cyclopts import App

from dynactor.api.admin_api.clock_messages import CLOCK_PATH, STEP_PATH, ClockAnswer
from dynactor.api.admin_api.times import pace, parse_length
from dynactor.api.clients.server_address import ServerAddress

clock = App(
    name="clock",
    help="Read or move the clock of a server that was started with --virtual-clock.",
    help_format="markdown",
)


@clock.default
@clock.command
def read(*, server: ServerAddress | None = None) -> None:
    """Print the time and the speed of the clock."""
    _change(server, "GET", CLOCK_PATH)


@clock.command(name="set")
def set_time(time: str, /, *, server: ServerAddress | None = None) -> None:
    """Set the clock to a later time.

    Parameters
    ----------
    time
        Seconds since 1970, or ISO 8601 such as 2030-01-31T12:00:00Z.
    """
    _change(server, "PUT", CLOCK_PATH, {"now": time})


@clock.command
def step(length: str, /, *, server: ServerAddress | None = None) -> None:
    """Advance the clock.

    Parameters
    ----------
    length
        Seconds, or a number followed by s, m, h or d: 90s, 15m, 25h, 2d.
    """
    try:
        seconds = parse_length(length)
    except ValueError as error:
        sys.exit(f"dynactor: {error}")
    _change(server, "POST", STEP_PATH, {"seconds": seconds})


@clock.command
def speed(speed: float, /, *, server: ServerAddress | None = None) -> None:
    """Set the speed of the clock.

    Parameters
    ----------
    speed
        Seconds of the clock in a real second: 0 stops the clock, 1 is real time, 60 is a minute a
        second.
    """
    _change(server, "PUT", CLOCK_PATH, {"speed": speed})


def _change(
    server: ServerAddress | None, method: str, path: str, body: dict[str, Any] | None = None
) -> None:
    """Send a request, and print the new state of the clock."""
    client = (server or ServerAddress()).admin_client()
    state = client.ask(method, path, ClockAnswer, body=body)
    sys.stdout.write(f"{state.now_iso} ({state.now:.6f}), {pace(state.speed)}\n")
