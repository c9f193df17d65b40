"""Runs a workload from start to result: worker processes and their messages."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from dynactor.load.check.findings import Findings
from dynactor.load.results.histogram import Histogram, merged
from dynactor.load.results.result import Cost, Generator, Operation, Phase, Result, Second, latency
from dynactor.load.run.messages import (
    Checking,
    Failed,
    Filled,
    Measured,
    Message,
    Ready,
    Report,
    Tick,
    decode,
)
from dynactor.load.run.outcomes import EXPECTED, THROTTLES
from dynactor.load.work.plan import Plan

if TYPE_CHECKING:
    import psutil

_PROJECT: Final = Path(__file__).parents[3]
_LINE_BYTES: Final = 1 << 26


class RunFailed(Exception):
    """A worker could not continue; the message says why."""


class Watcher(Protocol):
    """Is notified of the progress of a run."""

    def filled(self, items: int) -> None:
        """Report that this many of all items were written before the run."""
        ...

    def second(self, second: Second) -> None:
        """All workers have finished a second."""
        ...

    def checking(self, items: int) -> None:
        """Report that the run has ended, and that this many items are read back."""
        ...


class Run:
    """One run. ``stop`` ends it early; its result then covers the time until that."""

    def __init__(self, plan: Plan, watcher: Watcher, server_pid: int | None = None) -> None:
        """Find the server's process.

        Raises:
            RunFailed: there is no such process.
        """
        self._plan = plan
        self._watcher = watcher
        self._server = _process(server_pid) if server_pid else None
        self._processes: list[Process] = []
        self._ready = 0
        self._all_ready = asyncio.Event()
        self._reports: list[Report] = []
        self._all_reported = asyncio.Event()
        self._filled: dict[int, int] = {}
        self._checking: dict[int, int] = {}
        self._ticks: defaultdict[int, list[Tick]] = defaultdict(list)
        self._timeline: list[Second] = []
        self._server_cpu_seconds: list[float] = []

    def stop(self) -> None:
        """End the run early."""
        self._send(b"stop\n")

    def _send(self, line: bytes) -> None:
        for process in self._processes:
            assert process.stdin is not None
            with suppress(ConnectionError, RuntimeError):
                process.stdin.write(line)

    async def measure(self, label: str, workload: str) -> Result:
        """Fill the table, run the workload, and check the items.

        Raises:
            RunFailed: a worker could not continue.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                for number in range(self._plan.workers):
                    process = await self._start(number)
                    tasks.create_task(self._listen(number, process))
                self._send(msgspec.json.encode(self._plan) + b"\n")
                await self._all_ready.wait()
                started_at = datetime.now(UTC)
                self._send(b"go\n")
                watching = tasks.create_task(self._watch_server())
                await self._all_reported.wait()
                watching.cancel()
                if len(self._server_cpu_seconds) == 1:
                    # The workers ended before the second measurement of the server.
                    self._note_server()
        except ExceptionGroup as group:
            failed, others = group.split(RunFailed)
            if failed is None or others is not None:
                raise
            raise failed.exceptions[0] from None
        finally:
            await self._end()
        return self._result(label, workload, started_at)

    async def _start(self, number: int) -> Process:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "dynactor.load.run.worker", str(number)),
            cwd=_PROJECT,
            stdin=PIPE,
            stdout=PIPE,
            limit=_LINE_BYTES,
        )
        self._processes.append(process)
        return process

    async def _end(self) -> None:
        for process in self._processes:
            if process.returncode is None and len(self._reports) < self._plan.workers:
                process.kill()
            # ``communicate`` closes the pipes of the process, too.
            await process.communicate()

    async def _listen(self, number: int, process: Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            message = decode(line)
            self._receive(number, message)
            if isinstance(message, Report):
                return
        raise RunFailed("a worker ended early, see above")

    def _receive(self, number: int, message: Message) -> None:
        match message:
            case Filled(items):
                self._filled[number] = items
                self._watcher.filled(sum(self._filled.values()))
            case Ready():
                self._ready += 1
                if self._ready == self._plan.workers:
                    self._all_ready.set()
            case Tick(second):
                ticks = self._ticks[second]
                ticks.append(message)
                if len(ticks) == self._plan.workers:
                    self._timeline.append(self._merged(second, ticks))
                    self._watcher.second(self._timeline[-1])
            case Checking(items):
                self._checking[number] = items
                self._watcher.checking(sum(self._checking.values()))
            case Report():
                self._reports.append(message)
                if len(self._reports) == self._plan.workers:
                    self._all_reported.set()
            case Failed(text):
                raise RunFailed(text)

    def _merged(self, second: int, ticks: Sequence[Tick]) -> Second:
        histogram = merged(Histogram(tick.latencies) for tick in ticks)
        return Second(
            second,
            self._phase(second),
            sum(tick.requests for tick in ticks),
            sum(tick.errors for tick in ticks),
            sum(tick.throttles for tick in ticks),
            *(
                (histogram.percentile(50), histogram.percentile(99), histogram.maximum)
                if histogram.total
                else (None, None, None)
            ),
        )

    def _phase(self, second: int) -> Phase:
        """The phase at the start of a second."""
        if second < self._plan.ramp_seconds:
            return "ramp"
        if second < self._plan.lead_seconds:
            return "warm-up"
        return "measured" if second < self._plan.lead_seconds + self._plan.seconds else "end"

    async def _watch_server(self) -> None:
        await asyncio.sleep(self._plan.lead_seconds)
        self._note_server()
        await asyncio.sleep(self._plan.seconds)
        self._note_server()

    def _note_server(self) -> None:
        if self._server is not None:
            # The given process may have started the server as a child process.
            processes = [self._server, *self._server.children(recursive=True)]
            times = [process.cpu_times() for process in processes]
            self._server_cpu_seconds.append(sum(each.user + each.system for each in times))

    def _result(self, label: str, workload: str, started_at: datetime) -> Result:
        reports = self._reports
        seconds = max(report.seconds for report in reports)
        by_name: defaultdict[str, list[Measured]] = defaultdict(list)
        for report in reports:
            for name, measured in report.operations.items():
                by_name[name].append(measured)
        unsent = merged(Histogram(report.unsent) for report in reports)
        every = [measured for each in by_name.values() for measured in each]
        total = _operation(every, seconds, unsent)
        cpu_seconds = [report.cpu_seconds for report in reports]
        findings = [report.findings for report in reports if report.findings is not None]
        all_findings = Findings() if findings else None
        for each in findings:
            assert all_findings is not None
            all_findings.add(each)
        return Result(
            label=label,
            workload=workload,
            started_at=started_at.isoformat(timespec="seconds"),
            machine=_machine(),
            plan=self._plan,
            seconds=round(seconds, 3),
            total=total,
            operations={name: _operation(each, seconds) for name, each in sorted(by_name.items())},
            timeline=self._timeline,
            generator=Generator(
                _cost(sum(cpu_seconds), total.requests),
                round(max(cpu_seconds) / seconds, 3) if seconds else 0.0,
                latency(merged(Histogram(report.lateness) for report in reports)),
                unsent.total,
            ),
            server=self._server_cost(total.requests),
            error_examples={
                name: text
                for report in reversed(reports)
                for name, text in report.error_examples.items()
            },
            findings=all_findings,
        )

    def _server_cost(self, requests: int) -> Cost | None:
        if len(self._server_cpu_seconds) < 2:
            return None
        before, after = self._server_cpu_seconds
        return _cost(after - before, requests)


def _operation(
    measured: Sequence[Measured], seconds: float, unsent: Histogram | None = None
) -> Operation:
    requests = sum(each.requests for each in measured)
    outcomes: Counter[str] = Counter()
    for each in measured:
        outcomes.update(each.outcomes)
    histogram = merged(Histogram(each.latencies) for each in measured)
    if unsent is not None:
        histogram.add(unsent)
    throttles = sum(outcomes[name] for name in THROTTLES)
    expected = sum(outcomes[name] for name in EXPECTED)
    return Operation(
        requests,
        round(requests / seconds, 1) if seconds else 0.0,
        outcomes.total() - throttles - expected,
        throttles,
        dict(outcomes.most_common()),
        latency(histogram),
    )


def _cost(cpu_seconds: float, requests: int) -> Cost:
    of_request = round(cpu_seconds / requests * 1e6, 2) if requests else None
    return Cost(round(cpu_seconds, 3), of_request)


def _machine() -> str:
    return (
        f"{os.cpu_count()} processors, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}"
    )


def _process(server_pid: int) -> psutil.Process:
    """The server's process, whose processor time is measured.

    Raises:
        RunFailed: there is no process with that number, or psutil is missing.
    """
    if find_spec("psutil") is None:
        raise RunFailed("--server-pid needs psutil: pip install 'dynactor[load]'")
    # The library is optional.
    import psutil  # noqa: PLC0415

    try:
        return psutil.Process(server_pid)
    except psutil.NoSuchProcess:
        raise RunFailed(f"There is no process {server_pid} on this machine") from None
