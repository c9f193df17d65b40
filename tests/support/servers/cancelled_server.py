"""A server whose tasks are canceled: ``python -m tests.support.servers.cancelled_server serve``.

It takes the arguments of ``dynactor``. The signal ``CANCEL`` cancels the task group of the
connections, as anyio does when a task of the group ends with a cancellation.
"""

from __future__ import annotations

import asyncio
import signal
from typing import Final, Self

import pytest

import dynactor.api.command_line as entry
from dynactor.api.http import server
from dynactor.api.http.fast_lane import FastLanes

MODULE: Final = "tests.support.servers.cancelled_server"
CANCEL: Final = signal.SIGUSR1


class CancelledLanes(FastLanes):
    """Connections that are canceled on the signal."""

    async def __aenter__(self) -> Self:
        cancel = self._tasks.cancel_scope.cancel
        asyncio.get_running_loop().add_signal_handler(CANCEL, cancel)
        return await super().__aenter__()


def _main() -> None:
    # The class is replaced here, because the product has no interface for this.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "FastLanes", CancelledLanes)
        entry.main()


if __name__ == "__main__":
    _main()
