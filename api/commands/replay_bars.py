"""Progress bars of a replay on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

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
from dynactor.api.admin_api.replay_messages import ReplayAnswer


class ReplayBars:
    """A bar for the items of a snapshot, one for changes, and a line for each problem."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}
        self._problem: str | None = None

    @classmethod
    @contextmanager
    def shown(cls) -> Iterator[Self]:
        """Show bars on standard error within the context."""
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=Console(stderr=True)) as progress:
            yield cls(progress)

    def __call__(self, replay: ReplayAnswer) -> None:
        """Show the replay's progress."""
        if replay.start == "snapshot":
            self._show("items", replay.items, replay.items_total)
        if replay.start != "snapshot" or replay.state not in ("STARTING", "SNAPSHOT"):
            self._show("changes", replay.changes, replay.changes_total)
        if replay.problem != self._problem and replay.state not in ENDED:
            self._problem = replay.problem
            text = f"waiting: {replay.problem}" if replay.problem else "continuing"
            self._progress.console.print(text)

    def _show(self, name: str, done: int, total: int) -> None:
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=total)
        self._progress.update(self._tasks[name], completed=done, total=total)
