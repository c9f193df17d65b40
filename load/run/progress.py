"""Shows the progress of a run: a live table on a terminal, else one line per second."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.table import Table

from dynactor.load.results.result import Second
from dynactor.load.results.units import milliseconds
from dynactor.load.run.runner import Watcher
from dynactor.load.work.plan import Plan

_SHOWN_SECONDS: Final = 8


class Silent:
    """Shows no progress."""

    def filled(self, items: int) -> None:
        """See Watcher."""

    def second(self, second: Second) -> None:
        """See Watcher."""

    def checking(self, items: int) -> None:
        """See Watcher."""


class _Lines:
    """One line for each second, for logs."""

    def __init__(self, plan: Plan, console: Console) -> None:
        self._plan = plan
        self._console = console

    def filled(self, items: int) -> None:
        self._console.print(f"filling: {items:,} of {self._plan.keys:,} items")

    def second(self, second: Second) -> None:
        self._console.print(
            f"{second.second + 1:5} s  {second.phase:8}  {second.requests:9,} requests/s  "
            f"p50 {milliseconds(second.p50_us)} ms  p99 {milliseconds(second.p99_us)} ms  "
            f"{second.errors:,} errors  {second.throttles:,} throttles",
            soft_wrap=True,
            highlight=False,
        )

    def checking(self, items: int) -> None:
        self._console.print(f"verifying: {items:,} items are read back")


class _Table:
    """The latest seconds, and the totals since the beginning."""

    def __init__(self, plan: Plan, live: Live) -> None:
        self._plan = plan
        self._live = live
        self._seconds: deque[Second] = deque(maxlen=_SHOWN_SECONDS)
        self._requests = self._errors = self._throttles = 0
        self._state = "connecting"
        self._show()

    def filled(self, items: int) -> None:
        self._state = f"filling: {items:,} of {self._plan.keys:,} items"
        self._show()

    def second(self, second: Second) -> None:
        self._seconds.append(second)
        self._requests += second.requests
        self._errors += second.errors
        self._throttles += second.throttles
        whole = self._plan.lead_seconds + self._plan.seconds
        self._state = f"{second.phase}, {second.second + 1} of {whole:g} s"
        self._show()

    def checking(self, items: int) -> None:
        self._state = f"verifying: {items:,} items are read back"
        self._show()

    def _show(self) -> None:
        table = Table(title=f"{self._plan.endpoint}, {self._state}", title_justify="left")
        for heading in (
            "second",
            "requests/s",
            "p50 ms",
            "p99 ms",
            "max ms",
            "errors",
            "throttles",
        ):
            table.add_column(heading, justify="right")
        for second in self._seconds:
            table.add_row(
                str(second.second + 1),
                f"{second.requests:,}",
                milliseconds(second.p50_us),
                milliseconds(second.p99_us),
                milliseconds(second.max_us),
                f"{second.errors:,}",
                f"{second.throttles:,}",
            )
        table.add_section()
        table.add_row(
            "all", f"{self._requests:,}", "", "", "", f"{self._errors:,}", f"{self._throttles:,}"
        )
        self._live.update(table, refresh=True)


@contextmanager
def watching(plan: Plan, console: Console, *, quiet: bool) -> Iterator[Watcher]:
    """The watcher that fits the output."""
    if quiet:
        yield Silent()
    elif console.is_terminal:
        with Live(console=console, transient=True, auto_refresh=False) as live:
            yield _Table(plan, live)
    else:
        yield _Lines(plan, console)
