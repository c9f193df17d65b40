"""A separate process that sends or reads, so its cost is not counted as the server's.

The module of such a process reads its plan as JSON from the first line of its standard input. When
it is ready, it prints ``ready``. After a second line it measures, and prints its report as JSON.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process

import msgspec
from msgspec import Struct

from tests.support.servers.server import PROJECT


class MeasuringProcess:
    """A process that has printed ``ready``."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, module: str, plan: Struct) -> MeasuringProcess:
        """Start a module with a plan, and wait until it is ready.

        Raises:
            RuntimeError: the process failed, and has printed the reason on standard error.
        """
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module), cwd=PROJECT, stdin=PIPE, stdout=PIPE
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(plan) + b"\n")
        if await process.stdout.readline() != b"ready\n":
            raise RuntimeError(f"{module} failed, see above")
        return cls(process)

    async def report(self) -> bytes:
        """Send the second line, and wait for the report."""
        report, _ = await self._process.communicate(b"go\n")
        return report
