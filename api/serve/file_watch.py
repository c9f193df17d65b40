"""Watches files, and has them read again when they change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeAlias

import anyio

from dynactor.model.kept_failure import KeptFailure

CHECK_SECONDS: Final = 1.0

# The identity of a file's content; None for a missing file.
_Stamp: TypeAlias = tuple[int, int, int] | None


class FileWatch:
    """Calls ``reload`` when one of the files changes. ``paths`` may give other files each time."""

    def __init__(self, paths: Callable[[], Iterable[Path]], reload: Callable[[], None]) -> None:
        self._paths = paths
        self._reload = reload
        self._seen = self._stamps()

    def check(self) -> None:
        """Reload if a file has changed since the last check."""
        stamps = self._stamps()
        if stamps != self._seen:
            self._seen = stamps
            self._reload()

    def reload(self) -> None:
        """Reload in any case."""
        self._seen = self._stamps()
        self._reload()

    def _stamps(self) -> dict[Path, _Stamp]:
        return {path: _stamp(path) for path in self._paths()}


@asynccontextmanager
async def watching(watches: list[FileWatch]) -> AsyncIterator[None]:
    """Check the files every second within the context."""
    if not watches:
        yield
        return

    async def check() -> None:
        while True:
            await anyio.sleep(CHECK_SECONDS)
            for watch in watches:
                watch.check()

    kept = KeptFailure()
    async with anyio.create_task_group() as group:
        group.start_soon(check)
        with kept:
            yield
        group.cancel_scope.cancel()
    kept.raise_again()


def _stamp(path: Path) -> _Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
