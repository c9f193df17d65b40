"""The seed of a simulated loop determines the order of the nodes' actions, in every process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from hashlib import sha256

import anyio
import pytest

from dynactor.actors.runtime.mailbox import Envelope, Mailbox, Message
from dynactor.actors.runtime.supervisor import Supervisor
from tests.support.environment.simulated_loop import NODE, SimulatedLoop, Stuck, simulated

NODES = 3
_MODULE = __name__.rpartition(".")[2]


class Hello(Message[int], frozen=True):
    number: int


class Greeter:
    """An actor that answers after a wait, and records its actions."""

    def __init__(self, name: str, trace: list[str]) -> None:
        self.name = name
        self.mailbox = Mailbox(100)
        self.in_progress: list[Envelope] = []
        self._trace = trace

    async def run(self) -> None:
        while batch := await self.mailbox.take(2, 1 << 20):
            self.in_progress = batch
            for envelope in batch:
                self._trace.append(f"{asyncio.get_running_loop().time():.3f} {self.name}")
                await asyncio.sleep(0.001 * (envelope.message.number % 3))
                envelope.answer(envelope.message.number)
            self.in_progress = []


async def _act(node: int, greeters: list[Greeter], trace: list[str]) -> None:
    NODE.set(node)
    for number in range(5):
        replies = [greeter.mailbox.put_nowait(Hello(number)) for greeter in greeters]
        # A set is iterated in the order of hashes, which must not differ between processes.
        pending = set(replies)
        while pending:
            done, pending = await asyncio.wait(
                pending, timeout=0.002, return_when=asyncio.FIRST_COMPLETED
            )
            trace += [f"node {node} has {reply.result()}" for reply in done]
        with anyio.move_on_after(0.001):
            async with anyio.create_task_group() as group:
                group.start_soon(anyio.sleep, number / 1_000)
        trace.append(f"node {node} ends round {number}")


async def _trace() -> list[str]:
    trace: list[str] = []
    async with anyio.create_task_group() as group:
        supervisor = Supervisor(group)
        greeters = []
        for node in range(NODES):
            NODE.set(node)
            greeters.append(Greeter(f"greeter {node}", trace))
            supervisor.start(greeters[-1])
        async with anyio.create_task_group() as nodes:
            for node in range(NODES):
                nodes.start_soon(_act, node, greeters, trace)
        for greeter in greeters:
            await supervisor.stop(greeter)
    return trace


def trace_of(seed: int) -> list[str]:
    """The actions of 3 nodes on a simulated loop."""
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(seed)) as runner:
        return runner.run(_trace())


def digest_of(seed: int) -> str:
    return sha256("\n".join(trace_of(seed)).encode()).hexdigest()


def test_the_same_seed_gives_the_same_trace_in_every_process() -> None:
    command = [
        sys.executable,
        "-c",
        f"from tests.actors.runtime import {_MODULE} as it; print(it.digest_of(7))",
    ]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    digests = {process.communicate()[0].strip() for process in processes}
    assert digests == {digest_of(7)}


def test_other_seeds_give_other_orders_of_the_same_actions() -> None:
    traces = [trace_of(seed) for seed in range(5)]
    assert len({tuple(trace) for trace in traces}) == 5
    acts = [sorted(act for act in trace if act.startswith("node")) for trace in traces]
    assert all(each == acts[0] for each in acts)


@simulated
async def test_the_callbacks_of_a_node_run_in_the_order_of_their_calls() -> None:
    loop, called = asyncio.get_running_loop(), list[int]()
    for number in range(20):
        loop.call_soon(called.append, number)
    await asyncio.sleep(0)
    assert called == list(range(20))


@simulated
async def test_time_jumps_to_the_next_timer() -> None:
    loop = asyncio.get_running_loop()
    await asyncio.sleep(86_400)
    assert loop.time() == 86_400
    cancelled = loop.call_later(10, called := [].append, 1)
    cancelled.cancel()
    await asyncio.sleep(20)
    assert loop.time() == 86_420
    assert called.__self__ == []


def test_tasks_that_wait_for_each_other_raise_an_error() -> None:
    async def wait() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Stuck), asyncio.Runner(loop_factory=lambda: SimulatedLoop(1)) as runner:
        runner.run(wait())
