"""The command ``dynactor replay``: makes a running server publish a table's changes again."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Annotated, Final, Protocol, Self

import msgspec
from cyclopts import Parameter

from dynactor.actors.derived.kafka.replay_progress import ENDED
from dynactor.api.admin_api.replay_messages import REPLAYS_PATH, ReplayAnswer
from dynactor.api.clients.tables_address import TablesAddress

DONE: Final = 0
TROUBLE: Final = 1

_POLL_SECONDS: Final = 0.2
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_PIPE_BYTES: Final = 4096

_encode = msgspec.json.Encoder().encode


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    """The changes to publish, and the topic."""

    table: str
    """Table whose changes are published."""

    start: Annotated[str, Parameter(name="--from")]
    """Start: beginning, snapshot, a sequence number, a time (ISO 8601 or seconds since 1970), or
    an age (90s, 15m, 1h, 2d).

    beginning is the oldest recorded change. snapshot publishes every item first, and then later
    changes. A sequence number selects its change and all later ones.
    """

    to_topic: str
    """Topic to publish to; created if missing."""

    follow: Annotated[bool, Parameter(negative=())] = False
    """Continue with later changes until this command is stopped."""

    json: Annotated[bool, Parameter(negative=())] = False
    """Print the progress as JSON, one line per change of state."""

    server: TablesAddress = field(default_factory=TablesAddress)


class _ReplayReport(Protocol):
    def __call__(self, replay: ReplayAnswer) -> None: ...


def replay(options: ReplayOptions) -> int:
    """Run the command; returns its exit code."""
    body = {
        "table": options.table,
        "from": options.start,
        "to_topic": options.to_topic,
        "follow": options.follow,
    }
    server = options.server.admin_client()
    # Signals are received before the request, so that a signal cancels every started replay.
    with StopSignal() as stop:
        progress = server.ask("POST", REPLAYS_PATH, ReplayAnswer, body=body)
        stopped = False
        with _reporting(options) as report:
            while progress.state not in ENDED:
                report(progress)
                signaled = stop.wait(_POLL_SECONDS)
                stopped = stopped or signaled
                method = "DELETE" if signaled else "GET"
                progress = server.ask(method, f"{REPLAYS_PATH}/{progress.id}", ReplayAnswer)
            report(progress)
    if not options.json:
        sys.stdout.write(_summary(progress))
    sys.stderr.write(_remarks(progress))
    # A replay with --follow has no end, so a stop by a signal is a success.
    has_succeeded = progress.state == "DONE" or (stopped and options.follow)
    return DONE if has_succeeded else TROUBLE


class StopSignal:
    """SIGTERM and SIGINT within the context.

    A pipe keeps the signals, because an ``Event`` can't be set while the same thread waits for it:
    the handler could wait forever for the lock that the interrupted ``wait`` holds.
    """

    def __enter__(self) -> Self:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._earlier = {number: signal.signal(number, self._note) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._earlier.items():
            signal.signal(number, handler)
        os.close(self._reader)
        os.close(self._writer)

    def wait(self, seconds: float) -> bool:
        """Wait for a signal, at most for that time; return whether there were any."""
        readable, _, _ = select.select([self._reader], [], [], seconds)
        return bool(readable and os.read(self._reader, _PIPE_BYTES))

    def _note(self, *_: object) -> None:
        # A full pipe has noted a signal already.
        with suppress(BlockingIOError):
            os.write(self._writer, b"s")


# -- output ---------------------------------------------------------------------------------


@contextmanager
def _reporting(options: ReplayOptions) -> Iterator[_ReplayReport]:
    if options.json:
        yield _ReplayLines()
    elif sys.stderr.isatty():
        # Imported only for a terminal.
        from dynactor.api.commands.replay_bars import ReplayBars  # noqa: PLC0415

        with ReplayBars.shown() as bars:
            yield bars
    else:
        yield _ProblemLines()


class _ReplayLines:
    """Writes one JSON object per line."""

    def __init__(self) -> None:
        self._last: ReplayAnswer | None = None

    def __call__(self, replay: ReplayAnswer) -> None:
        """Write a line if the progress has changed."""
        if replay != self._last:
            self._last = replay
            sys.stdout.write(_encode(replay).decode() + "\n")
            sys.stdout.flush()


class _ProblemLines:
    """Writes a line to standard error for each problem that delays the replay."""

    def __init__(self) -> None:
        self._problem: str | None = None

    def __call__(self, replay: ReplayAnswer) -> None:
        if replay.problem != self._problem and replay.state not in ENDED:
            self._problem = replay.problem
            sys.stderr.write(f"waiting: {replay.problem}\n" if replay.problem else "continuing\n")


def _summary(replay: ReplayAnswer) -> str:
    """The result in one line."""
    items = f"{replay.items:,} items and " if replay.start == "snapshot" else ""
    ended = {
        "DONE": "",
        "CANCELLED": ", then it was stopped",
        "FAILED": f", then it failed: {replay.problem}",
    }[replay.state]
    return (
        f"{items}{replay.changes:,} changes of table {replay.table} were published to topic "
        f"{replay.to_topic}{ended}\n"
    )


def _remarks(replay: ReplayAnswer) -> str:
    remarks = ""
    if replay.start == "beginning" and not replay.whole:
        remarks += (
            "Older changes of the table are not kept: --from snapshot starts with every item\n"
        )
    if replay.missing_changes:
        remarks += (
            f"{replay.missing_changes:,} changes between the published ones are missing: they were "
            "made while nothing followed the table\n"
        )
    if replay.omitted_images:
        remarks += f"{replay.omitted_images:,} records were published without images, because they "
        remarks += "were too large with them\n"
    return remarks
