"""Runs a seed in a process of its own."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final

import msgspec

from tests.simulation.nodes.seed import Outcome, Trace, run_seed

# A seed that takes more processor time has an endless loop.
_MOST_SECONDS: Final = 120.0


def forked(
    seed: int,
    operations: int | None = None,
    trace_file: Path | None = None,
    planting: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Outcome:
    """Run a seed in a child process, and return its outcome; ``planting`` plants a fault in it."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, _MOST_SECONDS)
        # The child ends soon, and a collection at some moment could run finalizers.
        gc.disable()
        trace = Trace(keeps_lines=trace_file is not None)
        with planting():
            outcome = run_seed(seed, trace, operations)
        if trace_file is not None:
            trace_file.write_text("\n".join(trace.lines))
        with os.fdopen(writing, "wb") as file:
            file.write(msgspec.json.encode(outcome))
        sys.stdout.flush()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        encoded = file.read()
    _, status = os.waitpid(child, 0)
    if not encoded:
        reason = f"the process ended with status {status}"
        return Outcome(seed, [reason], "", 0, 0, 0.0, 0)
    return msgspec.json.decode(encoded, type=Outcome)
