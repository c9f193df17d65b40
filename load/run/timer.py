"""A timer with microsecond precision, because event loops round theirs to a millisecond.

A request that is sent half a millisecond late would count with that delay.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Final, Protocol

_CLOCK_MONOTONIC: Final = 1
_ABSOLUTE: Final = 1
# A time of zero would switch the timer off.
_SOON_SECONDS: Final = 1e-6
_NANOSECONDS: Final = 1_000_000_000


class Timer(Protocol):
    """Calls back once after each ``set``."""

    def set(self, at: float) -> None:
        """Call back at that time of the performance counter, or now if it is past."""
        ...

    def close(self) -> None:
        """Cancel the timer."""
        ...


class _LoopTimer:
    """The fallback, as precise as the event loop."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._callback = callback
        self._handle: asyncio.TimerHandle | None = None

    def set(self, at: float) -> None:
        self._handle = self._loop.call_later(max(0.0, at - perf_counter()), self._callback)

    def close(self) -> None:
        if self._handle is not None:
            self._handle.cancel()


class _TimeSpec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _TimerSpec(ctypes.Structure):
    _fields_ = (("interval", _TimeSpec), ("value", _TimeSpec))


class _TimerFile:
    """Linux's timerfd; Python supports it from 3.13 on."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._file = self._libc.timerfd_create(_CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._file < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        asyncio.get_running_loop().add_reader(self._file, self._ring)

    def set(self, at: float) -> None:
        # The performance counter is the monotonic clock here.
        seconds, rest = divmod(max(at, _SOON_SECONDS), 1)
        spec = _TimerSpec(_TimeSpec(0, 0), _TimeSpec(int(seconds), int(rest * _NANOSECONDS)))
        if self._libc.timerfd_settime(self._file, _ABSOLUTE, ctypes.byref(spec), None):
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def _ring(self) -> None:
        try:
            os.read(self._file, 8)
        except BlockingIOError:
            # The timer was set again after it expired.
            return
        self._callback()

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._file)
        os.close(self._file)


def open_timer(callback: Callable[[], None]) -> Timer:
    """The most precise timer of this system."""
    return _TimerFile(callback) if sys.platform == "linux" else _LoopTimer(callback)
