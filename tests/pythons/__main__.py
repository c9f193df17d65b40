"""Run the tests of model, storage, streams and wire on the other supported Pythons here.

Each Python gets its own virtual environment, .venv-VERSION. Prints which ran and which did not.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from time import monotonic
from typing import Final

from tests.pythons import interpreters
from tests.pythons.interpreters import PROJECT, Interpreter

_ROOMS: Final = ("tests/model", "tests/storage", "tests/streams", "tests/wire")
# Number of parts into which --in-turn divides the files, to save time.
_PARTS: Final = 8


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests.

    Returns:
        The exit code: 0 if the tests passed on every interpreter they were run on.
    """
    parser = argparse.ArgumentParser(prog="make test-pythons", description=__doc__)
    parser.add_argument(
        "--in-turn",
        action="store_true",
        help="use one interpreter, another one each day, and an eighth of the files",
    )
    parser.add_argument("--workers", default=os.environ.get("WORKERS", "2"))
    options = parser.parse_args(arguments)
    supported, own = interpreters.supported(), interpreters.own()
    found = interpreters.others(supported, own, os.environ)
    chosen, tests, what = found, list(_ROOMS), "all files"
    if options.in_turn and found:
        rounds, place = divmod(datetime.now(UTC).toordinal(), len(found))
        chosen = [found[place]]
        part = rounds % _PARTS
        tests = _files()[part::_PARTS]
        what = f"part {part + 1} of {_PARTS} of the files"
    lines, has_passed = [], True
    for interpreter in found:
        if interpreter in chosen:
            began = monotonic()
            passed = _run(interpreter, tests, options.workers)
            has_passed &= passed
            verdict = "passed" if passed else "FAILED"
            seconds = monotonic() - began
            lines.append(f"CPython {interpreter.name}: {verdict}, {what}, {seconds:.0f} s")
        else:
            lines.append(f"CPython {interpreter.name}: NOT RUN, another one has its turn today")
    present = {own.minor, *(each.minor for each in found)}
    lines += [
        f"CPython {major}.{minor}: NOT RUN, not found"
        for major, minor in supported
        if (major, minor) not in present
    ]
    print(f"CPython {own.name}: NOT RUN, `make test` uses it", *lines, sep="\n", flush=True)
    return 0 if has_passed else 1


def _files() -> list[str]:
    """The files of all tests, in the same order on every machine."""
    return sorted(
        str(path.relative_to(PROJECT))
        for room in _ROOMS
        for path in (PROJECT / room).rglob("test_*.py")
    )


def _run(interpreter: Interpreter, tests: Sequence[str], workers: str) -> bool:
    """Install into the interpreter's environment and run the tests; whether they passed."""
    environment = f".venv-{interpreter.name}"
    print(f"CPython {interpreter.name}, {interpreter.executable}", flush=True)
    commands = (
        ["make", "install", f"VENV={environment}", f"PYTHON={interpreter.executable}"],
        [
            *(f"{environment}/bin/pytest", "--numprocesses", workers, "--dist", "loadfile"),
            *("--override-ini", f"cache_dir={environment}/.pytest_cache", *tests),
        ],
    )
    return all(subprocess.run(each, cwd=PROJECT, check=False).returncode == 0 for each in commands)


if __name__ == "__main__":
    sys.exit(main())
