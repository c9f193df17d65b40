"""Nodes with the real actors and the real store for PostgreSQL, in one process on simulated time.

Only what is outside of a node is a fake: PostgreSQL, the network, and the sockets of clients. A
node can be killed, suspended, stopped, and cut off from PostgreSQL or from another node.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import copy_context
from itertools import count
from random import Random
from typing import Any, Final

import anyio
from msgspec import json

from dynactor.actors.derived.expiry.time_to_live_settings import TimeToLiveSettings
from dynactor.actors.derived.kafka.relay_settings import RelaySettings
from dynactor.actors.parts.database_settings import DatabaseSettings
from dynactor.actors.runtime.clock import SystemClock
from dynactor.api.hosting.database_host import Opening
from dynactor.api.hosting.store_settings import StoreSettings
from dynactor.api.http.protocol import JSON_1_0, Answer, Protocol, Request
from dynactor.api.keys.session_tokens import SessionTokens
from dynactor.api.nodes.changes import Changes
from dynactor.api.nodes.membership import Membership
from dynactor.api.nodes.node import Node, running_node
from dynactor.api.nodes.node_link import AnswerLost, NodeLink, NotSent
from dynactor.api.nodes.share_keeper import OpenShare
from dynactor.api.registry import NOT_IMPLEMENTED, OPERATIONS
from dynactor.api.serve import running_node as assembly
from dynactor.storage.postgresql.members import PostgresqlMembers, open_members
from dynactor.storage.store import StoreError
from dynactor.streams.shard import ShardSettings
from tests.simulation.nodes.fake_connections import Network
from tests.simulation.nodes.fake_kafka import KafkaNetwork, NodesBroker
from tests.support.clients import wire
from tests.support.clients.clients import AUTHORIZATION
from tests.support.environment.simulated_loop import NODE, SimulatedLoop

# The settings of relays to Kafka.
RELAYS: Final = RelaySettings(delivery="exactly-once", partition_count=2)
_URL: Final = "postgresql://test@database/test"
# The time-outs of ``api/nodes/link.py``.
_CONNECT_SECONDS: Final = 2.0
_AGAIN_SECONDS: Final = 0.5
_PING_SECONDS: Final = 6.0
_RESTART_SECONDS: Final = 1.0
_DRAIN_SECONDS: Final = 10.0
CLIENT_SECONDS: Final = 25.0


class Process:
    """A process of a node; a restarted node is another one."""

    def __init__(self, number: int, queue: int) -> None:
        self.name = f"n{number}"
        self.number = number
        self.queue = queue
        self.protocol: Protocol | None = None
        self.node: Node | None = None
        self.is_suspended = False
        self.is_leaving = False
        # The requests of clients in flight.
        self.asked: list[asyncio.Future[Any]] = []
        self.stop = anyio.Event()
        self.ended = anyio.Event()

    @property
    def is_up(self) -> bool:
        """Whether the process serves."""
        return self.protocol is not None and not self.is_leaving and not self.ended.is_set()


class Cluster:
    """The processes by the number of their node, and the links between them."""

    def __init__(self, network: Network, draw: Random, seed: int) -> None:
        self.network = network
        self.processes: dict[int, Process] = {}
        self.violations: list[str] = []
        # Pairs of nodes whose messages are held, and the messages.
        self.cuts: dict[tuple[str, str], list[Callable[[], None]]] = {}
        # The names of the nodes whose machines have failed.
        self._failed: set[str] = set()
        # How shards roll and logs are trimmed, and the interval of both.
        self.streams = ShardSettings()
        self.keep_streams_seconds = 5.0
        # The links to Kafka; None without it.
        self.kafka: KafkaNetwork | None = None
        # Gets each answer, with the node that was asked, the request, and the time it was sent at.
        self.heard: Callable[[str, Request, float, wire.Answer], None] = lambda *_: None
        self._draw = draw
        self._seed = seed
        self._queues: dict[int, Process] = {}
        self._next_queue = count(1)
        self._links: list[SimulatedLink] = []

    @property
    def loop(self) -> SimulatedLoop:
        """The loop of all nodes."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        return loop

    def name_of(self, queue: int) -> str:
        """The name of the node with a queue."""
        process = self._queues.get(queue)
        return "" if process is None else process.name

    def up(self) -> list[Process]:
        """The processes that answer clients."""
        return [each for each in self.processes.values() if each.is_up]

    # -- processes ----------------------------------------------------------------------------

    def start(self, number: int) -> None:
        """Start a process of a node, again and again until it is ready."""
        process = Process(number, next(self._next_queue))
        self.processes[number] = self._queues[process.queue] = process
        if process.name in self._failed:
            self._failed.remove(process.name)
            for one, other in [pair for pair in self.cuts if process.name in pair]:
                self.heal(one, other)
        context = copy_context()
        context.run(NODE.set, process.queue)
        self.loop.create_task(self._run(process), context=context).add_done_callback(
            lambda task: self._ended(process, task)
        )

    def _ended(self, process: Process, task: asyncio.Task[None]) -> None:
        process.ended.set()
        self._end_links(process)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, StoreError):
            shown = "".join(traceback.format_exception(error))
            self.violations.append(f"{process.name} ended with {shown}")
        for asked in process.asked:
            if not asked.done():
                asked.set_exception(AnswerLost())
        if self.processes.get(process.number) is not process:
            return
        if process.is_leaving:
            del self.processes[process.number]
        else:
            self.loop.call_later(_RESTART_SECONDS, self.start, process.number)

    def kill(self, number: int, *, is_machine: bool = False) -> None:
        """End a process at once; if its machine fails, nothing notices that soon."""
        process = self.processes.pop(number)
        # Its callbacks and tasks stay in memory, because their end would run their clean-up.
        self.loop.stop_node(process.queue)
        process.ended.set()
        self.network.kill(process.name, is_machine=is_machine)
        if is_machine:
            self._failed.add(process.name)
            self.cut_off(process.name, None)
        else:
            self._end_links(process)
        for asked in process.asked:
            if not asked.done():
                asked.set_exception(AnswerLost())

    def suspend(self, number: int) -> None:
        """Suspend a process, whose connections stay open."""
        process = self.processes[number]
        process.is_suspended = True
        self.loop.stop_node(process.queue)

    def resume(self, number: int) -> None:
        """Continue a suspended process."""
        process = self.processes[number]
        process.is_suspended = False
        self.loop.resume_node(process.queue)

    async def leave(self, number: int) -> None:
        """Stop a process as SIGTERM does."""
        process = self.processes[number]
        process.is_leaving = True
        if process.node is not None:
            context = copy_context()
            context.run(NODE.set, process.queue)
            context.run(process.node.hand_over)
        with anyio.move_on_after(_DRAIN_SECONDS):
            while process.asked and not process.ended.is_set():
                await anyio.sleep(0.05)
        process.stop.set()
        await process.ended.wait()

    async def _run(self, process: Process) -> None:
        changes = Changes()
        address = process.name
        members = await open_members(_URL, process.name, f"{address}:1", "1")
        assert isinstance(members, PostgresqlMembers)
        membership = Membership(members, changes)
        await membership.join()
        protocol = Protocol(None, OPERATIONS.values(), NOT_IMPLEMENTED)
        store = StoreSettings(url=_URL)
        settings = DatabaseSettings(
            copy_messages=False,
            streams=self.streams,
            keep_streams_seconds=self.keep_streams_seconds,
            relays=RELAYS,
            table_transition_seconds=0.2,
            time_to_live=TimeToLiveSettings(delay_seconds=0.5),
            seed=self._seed * 1000 + process.queue,
        )
        broker = None if self.kafka is None else NodesBroker(self.kafka, process.name)
        opening = Opening(settings, SystemClock, broker)
        parts = assembly.NodeParts(protocol, opening, SessionTokens(), None)

        def opening_share(lost: Callable[[], None]) -> AbstractAsyncContextManager[OpenShare]:
            return assembly._opening_share(store, parts, lost)

        process.node = node = Node(
            membership,
            changes,
            protocol,
            lambda lost: assembly._opening_leader(store, parts, lost),
            opening_share=opening_share,
            linking=lambda address: SimulatedLink(
                self, process, address.partition(":")[0], address, changes
            ),
            drain_seconds=_DRAIN_SECONDS,
        )
        async with running_node(node):
            process.protocol = protocol
            await process.stop.wait()
        await members.close()

    # -- links --------------------------------------------------------------------------------

    def process_named(self, name: str) -> Process | None:
        """The process of a node, if there is one."""
        return next((each for each in self.processes.values() if each.name == name), None)

    def add_link(self, link: SimulatedLink) -> None:
        """Keep a link, to end it with the process at its other end."""
        self._links.append(link)

    def _end_links(self, process: Process) -> None:
        for link in [each for each in self._links if each.target is process]:
            self._links.remove(link)
            self.later(link.owner, link.lose)

    def cut_off(self, one: str, other: str | None) -> None:
        """Hold all messages between two nodes, or between one and all others."""
        names = [each.name for each in self.processes.values()] if other is None else [other]
        for name in names:
            self.cuts.setdefault(_pair(one, name), [])

    def heal(self, one: str, other: str) -> None:
        """Deliver the messages between two nodes again."""
        for send in self.cuts.pop(_pair(one, other), ()):
            send()

    def later(self, process: Process, work: Callable[..., None], *parts: Any) -> None:
        """Do something in a process after the time of a message."""
        context = copy_context()
        context.run(NODE.set, process.queue)
        self.loop.call_later(self._delay(), work, *parts, context=context)

    def send(self, sender: str, receiver: Process, work: Callable[..., None], *parts: Any) -> None:
        """Send a message from a node to a process."""
        held = self.cuts.get(_pair(sender, receiver.name))
        if held is None:
            self.later(receiver, work, *parts)
        else:
            held.append(lambda: self.later(receiver, work, *parts))

    def is_cut(self, one: str, other: str) -> bool:
        """Whether messages between two nodes are held."""
        return _pair(one, other) in self.cuts

    def _delay(self) -> float:
        return 0.0001 + self._draw.random() / 2_000

    # -- clients ------------------------------------------------------------------------------

    async def ask(
        self, process: Process, operation: str, body: dict[str, Any], service: str = "DynamoDB"
    ) -> wire.Answer:
        """Send a request to a process as a client does.

        Raises:
            AnswerLost: the process ended before it answered, or it did not answer in time.
        """
        assert process.protocol is not None
        request = Request(
            f"{service}_20120810.{operation}",
            JSON_1_0,
            AUTHORIZATION,
            *("", "", "", ""),
            json.encode(body),
        )
        asked: asyncio.Future[wire.Answer] = self.loop.create_future()
        process.asked.append(asked)
        sent_at = self.loop.time()
        self.later(process, self._answer_client, process, request, asked)
        try:
            async with asyncio.timeout(CLIENT_SECONDS):
                answer = await asked
        except TimeoutError:
            raise AnswerLost from None
        finally:
            process.asked = [each for each in process.asked if each is not asked]
        self.heard(process.name, request, sent_at, answer)
        return answer

    def _answer_client(
        self, process: Process, request: Request, asked: asyncio.Future[wire.Answer]
    ) -> None:
        protocol = process.protocol
        assert protocol is not None

        async def answer() -> None:
            done = protocol.answer(request)
            answer = done if isinstance(done, Answer) else await done
            if not asked.done():
                asked.set_result(wire.Answer(answer.status, json.decode(answer.body or b"{}")))

        self.loop.create_task(answer())


class SimulatedLink(NodeLink):
    """The connection of a node to another one; see ``api/nodes/link.py``."""

    def __init__(
        self, cluster: Cluster, owner: Process, name: str, address: str, changes: Changes
    ) -> None:
        self.address = address
        self.owner = owner
        self.is_open = self.is_refused = False
        self.failure = ""
        # The process at the other end while the link is open.
        self.target: Process | None = None
        self._name = name
        self._cluster = cluster
        self._changes = changes
        self._asked: list[asyncio.Future[Answer]] = []
        self._lost = asyncio.Event()

    async def ask(self, request: Request) -> Answer:
        if not self.is_open or self.target is None:
            raise NotSent
        cluster = self._cluster
        asked: asyncio.Future[Answer] = cluster.loop.create_future()
        self._asked.append(asked)
        cluster.send(self.owner.name, self.target, self._execute, self.target, request, asked)
        try:
            return await asked
        finally:
            self._asked = [each for each in self._asked if each is not asked]

    def _execute(self, target: Process, request: Request, asked: asyncio.Future[Answer]) -> None:
        """Execute a request, at the other end."""
        node = target.node
        assert node is not None
        if target.ended.is_set():
            return

        async def answer() -> None:
            done = node.answer_peer(request)
            answer = await done if done is not None and not isinstance(done, Answer) else done
            self._cluster.send(
                target.name, self.owner, self._note, asked, answer, node.leadership is not None
            )

        self._cluster.loop.create_task(answer())

    def _note(self, asked: asyncio.Future[Answer], answer: Answer | None, is_leader: bool) -> None:
        if asked.done():
            return
        is_refused = answer is None and not is_leader
        if is_refused != self.is_refused:
            self.is_refused = is_refused
            self._changes.notify()
        if answer is None:
            asked.set_exception(NotSent())
        else:
            asked.set_result(answer)

    async def run(self) -> None:
        cluster = self._cluster
        try:
            while True:
                failure = await self._connect()
                if not failure:
                    await self._stay()
                    failure = "the other node has closed the connection"
                self._end(failure)
                await anyio.sleep(_AGAIN_SECONDS)
        finally:
            del cluster
            self._end("this node needs no connection")

    async def _connect(self) -> str:
        """Connect; return the failure, or an empty text."""
        target = self._cluster.process_named(self._name)
        if target is None or target.node is None or target.ended.is_set():
            await anyio.sleep(0.001)
            return "refused"
        if target.is_suspended or self._cluster.is_cut(self.owner.name, self._name):
            await anyio.sleep(_CONNECT_SECONDS)
            return "no answer"
        await anyio.sleep(0.002)
        self.target = target
        self._lost = asyncio.Event()
        self.is_open, self.failure = True, ""
        self._cluster.add_link(self)
        self._changes.notify()
        return ""

    async def _stay(self) -> None:
        """Wait until the connection ends, or pings get no answer."""
        silent_since: float | None = None
        loop = asyncio.get_running_loop()
        while not self._lost.is_set():
            target = self.target
            assert target is not None
            is_silent = target.is_suspended or self._cluster.is_cut(self.owner.name, self._name)
            if target.ended.is_set() and not is_silent:
                # The machine is back, and knows nothing of the connection.
                return
            if not is_silent:
                silent_since = None
            elif silent_since is None:
                silent_since = loop.time()
            elif loop.time() - silent_since >= _PING_SECONDS:
                return
            with anyio.move_on_after(2.0):
                await self._lost.wait()

    def lose(self) -> None:
        """End the connection, because the other process has ended."""
        self._lost.set()

    def _end(self, failure: str) -> None:
        self.is_open, self.failure = False, failure
        self.target = None
        for asked in self._asked:
            if not asked.done():
                asked.set_exception(AnswerLost())
        self._changes.notify()


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)


@asynccontextmanager
async def running_cluster(cluster: Cluster, nodes: int) -> AsyncIterator[None]:
    """Nodes with the numbers from 1 on, all of them ready."""
    for number in range(1, nodes + 1):
        cluster.start(number)
    while len(cluster.up()) < nodes:
        await anyio.sleep(0.1)
    yield
