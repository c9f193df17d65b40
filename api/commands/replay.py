"""The command ``dynactor replay``: has a running server publish a table's changes once more."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Final, Protocol

import anyio
import msgspec
from aiohttp import ClientSession
from cyclopts import Parameter
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from dynactor.actors.derived.kafka.replay_progress import ENDED
from dynactor.api.admin.replay_routes import REPLAYS_PATH, ReplayAnswer
from dynactor.api.commands.admin_client import AdminClient, AdminRequestFailed
from dynactor.api.commands.client import CannotCall

DONE: Final = 0
TROUBLE: Final = 1

_LOOK_SECONDS: Final = 0.2

_encode = msgspec.json.Encoder().encode


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    """What to publish, and where."""

    table: str
    """The table whose changes are published."""

    start: Annotated[str, Parameter(name="--from")]
    """beginning, snapshot, a sequence number, or a time: ISO 8601 or seconds since 1970.

    beginning is the oldest change that is kept. snapshot publishes every item first, and then
    what was changed since. A sequence number stands for its change and all that was made from
    then on.
    """

    to_topic: str
    """The topic to publish to. It is made if it is missing."""

    follow: Annotated[bool, Parameter(negative=())] = False
    """Go on with every later change, until this command is stopped."""

    json: Annotated[bool, Parameter(negative=())] = False
    """Print how it stands as JSON: a line whenever something has changed, the end as the last."""

    admin_endpoint: str = "http://127.0.0.1:8001"
    """The server's admin listener, as it announces it."""


def carry_out(options: ReplayOptions) -> int:
    """Carry out the command; returns its exit code."""
    try:
        return anyio.run(_run, options)
    except (CannotCall, AdminRequestFailed) as error:
        sys.stderr.write(f"dynactor: {error}\n")
        return TROUBLE


class _Report(Protocol):
    def __call__(self, replay: ReplayAnswer) -> None: ...


async def _run(options: ReplayOptions) -> int:
    body = {
        "table": options.table,
        "from": options.start,
        "to_topic": options.to_topic,
        "follow": options.follow,
    }
    async with ClientSession() as session:
        server = AdminClient(options.admin_endpoint, session)
        # Signals are received from the start: no job is left behind.
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            replay = await server.ask("POST", REPLAYS_PATH, ReplayAnswer, body=body)
            stopped = False
            with _reporting(options) as report:
                while replay.state not in ENDED:
                    report(replay)
                    with anyio.move_on_after(_LOOK_SECONDS):
                        stopped = await anext(signals) is not None
                    method = "DELETE" if stopped else "GET"
                    replay = await server.ask(method, f"{REPLAYS_PATH}/{replay.id}", ReplayAnswer)
                report(replay)
    if not options.json:
        sys.stdout.write(_summary(replay))
    sys.stderr.write(_remarks(replay))
    is_meant = replay.state == "DONE" or (stopped and options.follow)
    return DONE if is_meant else TROUBLE


# -- what is told ---------------------------------------------------------------------------


@contextmanager
def _reporting(options: ReplayOptions) -> Iterator[_Report]:
    if options.json:
        yield _JsonLines()
        return
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        yield _Bars(progress)


class _JsonLines:
    """A JSON object a line."""

    def __init__(self) -> None:
        self._last: ReplayAnswer | None = None

    def __call__(self, replay: ReplayAnswer) -> None:
        """Write a line if there is news."""
        if replay != self._last:
            self._last = replay
            sys.stdout.write(_encode(replay).decode() + "\n")
            sys.stdout.flush()


class _Bars:
    """A bar for the items of a snapshot, one for changes, and words where nothing goes on."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}
        self._problem: str | None = None

    def __call__(self, replay: ReplayAnswer) -> None:
        """Show how it stands."""
        if replay.start == "snapshot":
            self._show("items", replay.items, replay.items_total)
        if replay.start != "snapshot" or replay.state not in ("STARTING", "SNAPSHOT"):
            self._show("changes", replay.changes, replay.changes_total)
        if replay.problem != self._problem and replay.state not in ENDED:
            self._problem = replay.problem
            self._progress.console.print(f"waiting: {replay.problem}" if replay.problem else "on")

    def _show(self, name: str, done: int, total: int) -> None:
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=total)
        self._progress.update(self._tasks[name], completed=done, total=total)


def _summary(replay: ReplayAnswer) -> str:
    """What was done, in a line."""
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
    """What somebody may not expect."""
    remarks = ""
    if replay.start == "beginning" and not replay.whole:
        remarks += (
            "Older changes of the table are not kept: --from snapshot starts with every item\n"
        )
    if replay.missing_changes:
        remarks += (
            f"{replay.missing_changes:,} changes between them are missing: they were made while "
            "nobody followed the table\n"
        )
    if replay.omitted_images:
        remarks += f"{replay.omitted_images:,} records were too large with their images\n"
    return remarks
