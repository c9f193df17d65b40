"""Runs seeds of the simulation of several nodes; each seed runs in a process of its own.

python -m tests.simulation.nodes --seeds 1000 [--first 1]
python -m tests.simulation.nodes --seed 17 [--trace FILE]
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
import time
from pathlib import Path
from typing import Final

import msgspec

from tests.simulation.nodes.seed import Outcome, Trace, run_seed

# A seed that takes longer has an endless loop.
_MOST_SECONDS: Final = 120


def main() -> int:
    """Run the seeds; return the exit status."""
    parser = argparse.ArgumentParser(prog="make simulate")
    parser.add_argument("--seeds", type=int, default=100, help="number of seeds")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seed", type=int, help="run this seed alone, and show its violations")
    parser.add_argument("--operations", type=int, help="number of operations of each seed")
    parser.add_argument("--trace", type=Path, help="write the trace of --seed to a file")
    options = parser.parse_args()
    if options.seed is not None:
        outcome = forked(options.seed, options.operations, options.trace)
        print(f"seed {outcome.seed}: {outcome.operations} operations, ", end="")
        print(f"{outcome.acknowledged} acknowledged, trace {outcome.digest}")
        print(*outcome.violations, sep="\n")
        return bool(outcome.violations)
    failed = 0
    began = time.monotonic()
    for done, seed in enumerate(range(options.first, options.first + options.seeds), 1):
        outcome = forked(seed, options.operations)
        if outcome.violations:
            failed += 1
            print(f"\nseed {seed} failed: {outcome.violations[0][:2000]}")
            print(f"repeat it by: make simulate SEED={seed}", flush=True)
        if done % 10 == 0 or done == options.seeds:
            seconds = time.monotonic() - began
            print(
                f"\r{done} of {options.seeds} seeds, {failed} failed, {seconds / done:.2f} s each",
                end="",
                flush=True,
            )
    print()
    return bool(failed)


def forked(seed: int, operations: int | None = None, trace_file: Path | None = None) -> Outcome:
    """Run a seed in a child process, and return its outcome."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_MOST_SECONDS)
        # The child ends soon, and a collection at some moment could run finalizers.
        gc.disable()
        trace = Trace(keeps_lines=trace_file is not None)
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


if __name__ == "__main__":
    sys.exit(main())
