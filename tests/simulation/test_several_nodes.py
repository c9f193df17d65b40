"""Nodes with the real actors, on simulated time: ``make simulate`` runs more seeds."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

SEED: Final = 3
OPERATIONS: Final = 120


def output_of(hash_seed: int) -> str:
    """The outcome of a short run in a process with this seed of hashes."""
    command = ["--seed", f"{SEED}", "--operations", f"{OPERATIONS}"]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.simulation.nodes", *command],
        env={**os.environ, "PYTHONHASHSEED": f"{hash_seed}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_a_seed_has_no_violation_and_the_same_trace_in_every_process():
    first, second = output_of(1), output_of(2)
    assert first == second
    assert f"seed {SEED}: {OPERATIONS} operations" in first
