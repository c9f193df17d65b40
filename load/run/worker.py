"""A worker: one process, one event loop, many connections.

``python -m dynactor.load.run.worker NUMBER`` reads a ``Plan`` as JSON from the first line of its
standard input. The worker connects, fills the table if the plan says so, and reports that it is
ready. It starts the run after a line ``go``, and ends the run early after a line ``stop`` or at the
end of its input. ``messages.py`` has its messages.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from bisect import bisect
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import accumulate
from random import Random
from time import perf_counter, process_time
from typing import Any, Final

from msgspec import json

from dynactor.load.check.final import index_settled, read_back
from dynactor.load.check.ledger import Ledger
from dynactor.load.check.operations import CheckedOperations
from dynactor.load.results.histogram import of_values
from dynactor.load.run.clients import Clients, open_clients
from dynactor.load.run.fill import ITEMS_TO_A_REQUEST, CannotFill, fillings
from dynactor.load.run.loops import ClosedLoop, Draw, Finite, OpenLoop
from dynactor.load.run.messages import Checking, Failed, Filled, Message, Ready, Report, encode
from dynactor.load.run.recorder import Recorder
from dynactor.load.wire.endpoint import parse_endpoint
from dynactor.load.wire.requests import Requests
from dynactor.load.wire.signing import NoCredentials, Signer, find_credentials
from dynactor.load.work.bodies import Bodies
from dynactor.load.work.key_space import KeySpace
from dynactor.load.work.keys import key_choice
from dynactor.load.work.operations import Dialogue, Operations
from dynactor.load.work.pacing import Pacing
from dynactor.load.work.plan import Plan
from dynactor.load.work.records import Records

_TICK_SECONDS: Final = 1.0


class _Worker:
    """The state of one worker's run."""

    def __init__(self, plan: Plan, worker: int) -> None:
        self.plan = plan
        self.worker = worker
        self.endpoint = parse_endpoint(plan.endpoint)
        signer = (
            Signer(find_credentials(), plan.region, self.endpoint.host_header)
            if plan.sign
            else None
        )
        self.records = Records(plan)
        requests = Requests(self.endpoint, plan.region, signer)
        self.bodies = Bodies(plan, self.records, requests)
        self.recorder = Recorder(by_due_time=bool(plan.rate))
        random = Random(f"{plan.seed} {worker}")
        space = KeySpace(plan, worker)
        choice = key_choice(plan.key_choice, random)
        self.ledger = Ledger(plan.fields, plan.keys) if plan.verify else None
        self.operations = (
            CheckedOperations(
                plan, self.bodies, space, choice, random, records=self.records, ledger=self.ledger
            )
            if self.ledger is not None
            else Operations(plan, self.bodies, space, choice, random)
        )
        self.draw = _drawing(plan, self.operations, random)

    async def fill(self, clients: Clients) -> None:
        filling = Finite(clients, fillings(self.plan, self.worker, self.bodies))
        async with _each_second(lambda: _send(Filled(filling.ended * ITEMS_TO_A_REQUEST))):
            await filling.run()

    async def run(self, clients: Clients, stop: asyncio.Event) -> Report:
        plan, recorder = self.plan, self.recorder
        started_at = perf_counter()
        begin_at = started_at + plan.lead_seconds
        recorder.window = (begin_at, begin_at + plan.seconds)
        seconds = iter(range(1 << 32))
        async with _each_second(lambda: _send(recorder.tick(next(seconds)))):
            loop = self._start_loop(clients, started_at)
            await _wait(stop, begin_at - perf_counter())
            cpu_before = process_time()
            await _wait(stop, plan.lead_seconds + plan.seconds + started_at - perf_counter())
            ended_at = perf_counter()
            cpu_seconds = process_time() - cpu_before
            end_at = min(ended_at, begin_at + plan.seconds)
            recorder.window = (begin_at, end_at)
            await loop.stop()
        findings = None
        if self.ledger is not None:
            await self._check(clients, self.ledger)
            findings = self.ledger.findings
        return Report(
            recorder.measured(),
            max(0.0, end_at - begin_at),
            cpu_seconds,
            of_values(recorder.unsent).counts,
            of_values(recorder.lateness).counts,
            clients.error_examples,
            findings,
        )

    def _start_loop(self, clients: Clients, started_at: float) -> ClosedLoop | OpenLoop:
        plan = self.plan
        if not plan.rate:
            closed = ClosedLoop(clients, self.draw, self.recorder)
            closed.start(plan.ramp_seconds)
            return closed
        pacing = Pacing(plan.rate, plan.ramp_seconds, self.worker, plan.workers)
        opened = OpenLoop(clients, self.draw, self.recorder, pacing)
        opened.start(started_at)
        return opened

    async def _check(self, clients: Clients, ledger: Ledger) -> None:
        assert isinstance(self.operations, CheckedOperations)
        items = len(ledger.numbers())
        _send(Checking(items))
        reading = Finite(clients, read_back(self.operations, ledger))
        await reading.run()
        ledger.findings.items_unread = items - reading.ended
        if "gsi-query" in self.plan.mix:
            settling: Iterator[Dialogue] = index_settled(
                self.plan, self.records, self.bodies, ledger
            )
            await Finite(clients, settling).run()


def _drawing(plan: Plan, operations: Operations, random: Random) -> Draw:
    """Draws random operations by their shares."""
    by_name = operations.by_name()
    chosen = [(name, by_name[name]) for name in plan.mix]
    if len(chosen) == 1:
        ((name, operation),) = chosen
        return lambda: (name, operation())
    limits = list(accumulate(plan.mix.values()))
    whole = limits.pop()

    def draw() -> tuple[str, Dialogue]:
        drawn, operation = chosen[bisect(limits, random.random() * whole)]
        return drawn, operation()

    return draw


def _send(message: Message) -> None:
    sys.stdout.buffer.write(encode(message) + b"\n")
    sys.stdout.buffer.flush()


@asynccontextmanager
async def _each_second(send: Any) -> AsyncIterator[None]:
    """Report at each full second from now on, and once at the end."""
    loop = asyncio.get_running_loop()
    started_at = loop.time()

    async def send_each() -> None:
        number = 0
        while True:
            number += 1
            await asyncio.sleep(started_at + number * _TICK_SECONDS - loop.time())
            send()

    async with asyncio.TaskGroup() as tasks:
        sending = tasks.create_task(send_each())
        try:
            yield
        finally:
            sending.cancel()
            send()


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(max(0.0, seconds)):
            await event.wait()


async def _listen(lines: asyncio.StreamReader, stop: asyncio.Event) -> None:
    while await lines.readline() not in {b"", b"stop\n"}:
        pass
    stop.set()


async def _work(plan: Plan, number: int, lines: asyncio.StreamReader) -> None:
    worker = _Worker(plan, number)
    async with open_clients(
        worker.endpoint, plan.connections_of(number), plan.timeout_seconds
    ) as clients:
        if plan.fill:
            await worker.fill(clients)
        _send(Ready())
        if await lines.readline() != b"go\n":
            return
        # The pause of a garbage collection would count as latency of the server. Only lost
        # connections leave reference cycles here.
        gc.collect()
        gc.disable()
        stop = asyncio.Event()
        listening = asyncio.ensure_future(_listen(lines, stop))
        report = await worker.run(clients, stop)
        listening.cancel()
    _send(report)


async def _main() -> None:
    loop = asyncio.get_running_loop()
    # The parent process decides when the worker ends.
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    plan = json.decode(await lines.readline(), type=Plan)
    working = asyncio.ensure_future(_work(plan, int(sys.argv[1]), lines))
    broken: list[BaseException] = []

    def break_off(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Stop the run, because handling an answer raised an exception."""
        error = context.get("exception")
        broken.append(error or RuntimeError(context["message"]))
        working.cancel()

    loop.set_exception_handler(break_off)
    try:
        await working
    except asyncio.CancelledError:
        if not broken:
            raise
        _fail(broken[0])
    except (OSError, NoCredentials) as error:
        _fail(error)
    except BaseExceptionGroup as group:
        _fail(group)


def _fail(error: BaseException) -> None:
    cause = error
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    if not isinstance(cause, (OSError, CannotFill, NoCredentials)):
        raise error
    _send(Failed(str(cause)))


if __name__ == "__main__":
    if sys.platform != "win32":
        import uvloop

        uvloop.run(_main())
    else:
        asyncio.run(_main())
