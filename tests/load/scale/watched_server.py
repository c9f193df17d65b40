"""The server in a control group, with its event loop monitored: ``-m`` this, then ``serve …``.

It takes the product's command line. A timer requests a turn of the loop every few milliseconds, and
records its delay, during which no request is processed. The kernel reports how long the loop's
thread was runnable without a processor, because on a busy machine that delay is not the loop's
fault. The longest delay in each 0.1 seconds goes to a file, as a line of JSON.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import Any, Final

import msgspec
from msgspec import Struct

MODULE: Final = "tests.load.scale.watched_server"
_VARIABLE: Final = "SCALE_WATCH"
_PAUSE_SECONDS: Final = 0.003
_REPORT_SECONDS: Final = 0.1


class Watch(Struct, frozen=True):
    """The monitoring of a server: the group it joins, the file of its delays."""

    group: str | None
    waits: str

    def environment(self) -> Mapping[str, str]:
        """The environment variable for the server's process."""
        return {_VARIABLE: msgspec.json.encode(self).decode()}


class Wait(Struct, frozen=True):
    """The longest delay of the event loop in an interval that ends at a monotonic time.

    ``queued_seconds`` is the part of the delay in which the loop's thread waited for a processor.
    """

    at: float
    seconds: float
    queued_seconds: float

    @property
    def blocked_seconds(self) -> float:
        """The delay that the loop itself caused."""
        return max(0.0, self.seconds - self.queued_seconds)


def read_waits(path: Path) -> Iterator[Wait]:
    """All recorded waits so far."""
    for line in path.read_bytes().splitlines():
        yield msgspec.json.decode(line, type=Wait)


class _Watcher:
    """Requests a turn of the loop every few milliseconds, and records its delay."""

    def __init__(self, loop: asyncio.AbstractEventLoop, loop_thread: int, path: Path) -> None:
        self._loop = loop
        self._statistics = Path(f"/proc/self/task/{loop_thread}/schedstat")
        self._path = path
        self._longest = Wait(0, 0, 0)
        self._reported_at = self._due_at = monotonic()
        self._queued_seconds = 0.0
        self._ask()

    def _ask(self) -> None:
        self._queued_seconds = _queued_seconds(self._statistics)
        self._due_at = monotonic() + _PAUSE_SECONDS
        self._loop.call_later(_PAUSE_SECONDS, self._note)

    def _note(self) -> None:
        now = monotonic()
        queued = _queued_seconds(self._statistics) - self._queued_seconds
        wait = Wait(now, max(0.0, now - self._due_at), queued)
        if wait.blocked_seconds >= self._longest.blocked_seconds:
            self._longest = wait
        if now - self._reported_at >= _REPORT_SECONDS:
            with self._path.open("ab") as file:
                file.write(msgspec.json.encode(self._longest) + b"\n")
            self._reported_at, self._longest = now, Wait(0, 0, 0)
        self._ask()


def _queued_seconds(statistics: Path) -> float:
    return int(statistics.read_text().split()[1]) / 1e9


def _main() -> None:
    watch = msgspec.json.decode(os.environ[_VARIABLE], type=Watch)
    if watch.group is not None:
        (Path(watch.group) / "cgroup.procs").write_text(str(os.getpid()))
    # Import after joining the group, because the group's limit includes imported code.
    import dynactor.api.command_line as entry  # noqa: PLC0415
    from dynactor.api.serve import service  # noqa: PLC0415

    serve: Callable[[Any], Coroutine[Any, Any, None]] = service.serve_until_signal

    async def serve_watched(options: Any) -> None:
        _Watcher(asyncio.get_running_loop(), threading.get_native_id(), Path(watch.waits))
        await serve(options)

    # Replace the function, because the product has no option for a watched loop.
    setattr(service, "serve_until_signal", serve_watched)  # noqa: B010
    entry.main()


if __name__ == "__main__":
    _main()
