"""A signal that stops a command is never lost, at whatever moment it arrives."""

from __future__ import annotations

import faulthandler
import signal
import sys
from types import FrameType
from typing import Any

import pytest

from dynactor.api.commands.replay import StopSignal

_MOST_LINES = 100


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_at_any_line_of_a_wait_is_noted_once(number: signal.Signals) -> None:
    # Without this, a handler that never returns would block all tests.
    faulthandler.dump_traceback_later(30, exit=True)
    try:
        lines = 0
        while raised(number, lines):
            lines += 1
            assert lines < _MOST_LINES
        assert lines
    finally:
        faulthandler.cancel_dump_traceback_later()


def raised(number: signal.Signals, line: int) -> bool:
    """Raise a signal before a line of ``wait``; return whether ``wait`` has that many lines."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        if event == "line":
            if count == line:
                signal.raise_signal(number)
            count += 1
        return trace

    earlier = sys.gettrace()
    with StopSignal() as stop:
        sys.settrace(trace)
        try:
            noted = [stop.wait(0)]
        finally:
            sys.settrace(earlier)
        is_raised = count > line
        noted += [stop.wait(0), stop.wait(0)]
        assert sum(noted) == is_raised
    return is_raised


def test_many_signals_are_one() -> None:
    with StopSignal() as stop:
        for _ in range(70_000):
            signal.raise_signal(signal.SIGTERM)
        assert stop.wait(0)
