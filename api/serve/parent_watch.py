"""Ends the server when the process that started it ends in any way."""

from __future__ import annotations

import os
import select
import signal
import stat
import threading
from typing import Final

_POLL_SECONDS: Final = 0.5
_STDIN: Final = 0


def end_with_parent() -> None:
    """Send this process SIGTERM once its parent has ended.

    The parent has ended when this process has another parent, or when standard input is a pipe or
    a socket at its end. The second way notices the end at once, even an end before this call. Both
    work on Linux and macOS, and after SIGKILL.
    """
    watch = threading.Thread(target=_watch, args=(os.getppid(),), name="parent", daemon=True)
    watch.start()


def _watch(parent: int) -> None:
    poll = select.poll()
    if _is_stream(_STDIN):
        poll.register(_STDIN, select.POLLIN | select.POLLHUP)
    while os.getppid() == parent:
        if poll.poll(_POLL_SECONDS * 1000) and _is_at_end(_STDIN):
            break
    os.kill(os.getpid(), signal.SIGTERM)


def _is_stream(descriptor: int) -> bool:
    """Whether a descriptor is a pipe or a socket: only their end means that the parent ended."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _is_at_end(descriptor: int) -> bool:
    """Read and ignore input from the parent; returns whether the input has ended."""
    try:
        return not os.read(descriptor, 65536)
    except BlockingIOError:
        return False
    except OSError:
        return True
