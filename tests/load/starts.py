"""The start time of commands: ``python -m tests.load.starts [--before CHECKOUT]``.

The command prints medians of processor time. Its rounds alternate between this checkout and another
one. The line ``floor`` is the time to import only the libraries of a server. The commands connect
to an address without a listener.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from typing import Final

import psutil

from tests.load.peers.servers import process_seconds, user_environment
from tests.support.servers.server import PROJECT

_FLOOR: Final = "import aiohttp.web, msgspec, anyio, uvloop, rocksdict"
_NOBODY: Final = ("--admin-endpoint", "http://127.0.0.1:9")
_REPLAY: Final = ("--table", "t", "--from", "beginning", "--to-topic", "u")
_COMMANDS: Final = {
    "--help": ("--help",),
    "--version": ("--version",),
    "clock": ("clock", *_NOBODY),
    "backup": ("backup", *_NOBODY),
    "insights": ("insights", "--table", "t", *_NOBODY),
    "replay": ("replay", *_REPLAY, *_NOBODY),
}


def _main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.load.starts")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--before", type=Path, help="a checkout to compare with")
    options = parser.parse_args()
    checkouts = {"now": PROJECT}
    if options.before is not None:
        checkouts["before"] = options.before
    figures: defaultdict[str, list[float]] = defaultdict(list)
    # The first round compiles modules.
    for number in range(options.rounds + 1):
        for name, figure in _round(checkouts).items():
            if number:
                figures[name].append(figure)
    for name, values in figures.items():
        sys.stdout.write(f"{name:32} {median(values):8.3f}\n")


def _round(checkouts: dict[str, Path]) -> dict[str, float]:
    found = {"floor, seconds": _seconds([sys.executable, "-c", _FLOOR], PROJECT)}
    for label, checkout in checkouts.items():
        seconds, mib = _server(checkout)
        found[f"serve --in-memory {label}, seconds"] = seconds
        found[f"serve --in-memory {label}, MiB"] = mib
        for name, arguments in _COMMANDS.items():
            command = [sys.executable, "-m", "dynactor", *arguments]
            found[f"{name} {label}, seconds"] = _seconds(command, checkout)
    return found


def _seconds(command: list[str], folder: Path) -> float:
    """The processor time of a command to its end."""
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, env=user_environment(), capture_output=True, check=False)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _server(checkout: Path) -> tuple[float, float]:
    """The processor time of a server until it listens, and its resident memory in MiB."""
    command = [sys.executable, "-m", "dynactor", "serve", "--in-memory", "--port", "0"]
    with subprocess.Popen(
        command,
        cwd=checkout,
        env=user_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Listening on ")
        seconds = process_seconds(process.pid)
        memory = psutil.Process(process.pid).memory_info()
        process.send_signal(signal.SIGTERM)
        process.wait()
    return seconds, memory.rss / (1 << 20)


if __name__ == "__main__":
    _main()
