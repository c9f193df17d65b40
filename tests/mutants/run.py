"""Plants faults one after another and reports whether, and how fast, their tests fail."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Final

from tests.mutants.order import Order
from tests.mutants.project_copy import ProjectCopy, project_copy

LIMIT_SECONDS: Final = 5.0


def main(faults: Sequence[Order], arguments: Sequence[str] | None = None) -> int:
    """Plant all faults, or those named on the command line.

    Returns:
        The exit code: 0 if the tests pass without a fault, and each fails in time with its fault.
    """
    parser = argparse.ArgumentParser(description="Plant faults and check that tests fail.")
    parser.add_argument("names", nargs="*", help="the faults to plant (default: all)")
    parser.add_argument("--list", action="store_true", help="print the faults and plant none")
    parser.add_argument(
        "--limit-seconds",
        type=float,
        default=LIMIT_SECONDS,
        help="how long a test may take to fail (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    unknown = set(options.names) - {fault.name for fault in faults}
    if unknown:
        parser.error(f"no such fault: {', '.join(sorted(unknown))}")
    chosen = [fault for fault in faults if not options.names or fault.name in options.names]
    if options.list:
        print(*map(_description, chosen), sep="\n\n")
        return 0
    with project_copy() as copy:
        complaints = list(_check_healthy(copy, chosen))
        for fault in chosen:
            complaints += _check(copy, fault, options.limit_seconds)
    print(f"{len(chosen)} faults planted, {len(complaints)} complaints", *complaints, sep="\n")
    return 1 if complaints else 0


def _description(fault: Order) -> str:
    lines = [fault.name, f"  {fault.description}", *(f"  {test}" for test in fault.test_ids)]
    return "\n".join(lines)


def _check_healthy(copy: ProjectCopy, faults: Sequence[Order]) -> Iterator[str]:
    tests = sorted({test for fault in faults for test in fault.test_ids})
    outcome = copy.run(tests)
    if outcome.passed:
        print(f"{len(tests)} tests pass without a fault", flush=True)
    else:
        yield f"the tests fail without a fault: {outcome.error_output or tests}"


def _check(copy: ProjectCopy, fault: Order, limit_seconds: float) -> Iterator[str]:
    """Run each test of a fault separately, with the fault planted; yields the failures."""
    problem = fault.problem()
    if problem is not None:
        yield f"{fault.name}: {problem}"
        return
    for test in fault.test_ids:
        with fault.planted(copy.directory):
            outcome = copy.run([test])
        verdict = "found"
        if outcome.error_output is not None:
            verdict = f"not run: {outcome.error_output}"
        elif outcome.passed:
            verdict = "SURVIVED"
        elif outcome.seconds > limit_seconds:
            verdict = "found late"
        print(f"{verdict:10} {outcome.seconds:6.2f} s  {fault.name}: {test}", flush=True)
        if verdict != "found":
            yield f"{fault.name}: {verdict} ({test})"
