"""Runs seeds of the simulation of several nodes; each seed runs in a process of its own.

python -m tests.simulation.nodes --seeds 1000 [--first 1]
python -m tests.simulation.nodes --seed 17 [--trace FILE]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.simulation.nodes.forked import forked


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
            shorter = f' ARGS="--operations {options.operations}"' if options.operations else ""
            print(f"repeat it by: make simulate SEED={seed}{shorter}", flush=True)
        if done % 10 == 0 or done == options.seeds:
            seconds = time.monotonic() - began
            print(
                f"\r{done} of {options.seeds} seeds, {failed} failed, {seconds / done:.2f} s each",
                end="",
                flush=True,
            )
    print()
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
