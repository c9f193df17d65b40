"""Nodes of a cluster in one process, on a simulated loop, with a fake database and fake links.

The fake database has one lock and an epoch, as PostgreSQL has. A commit of a node whose epoch is
not the present one is refused. A link loses the answers of a node that is killed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import copy_context
from types import SimpleNamespace
from typing import Any, cast

import anyio
from msgspec import structs

from dynactor.api.http.protocol import JSON_1_0, Answer, Protocol, Request
from dynactor.api.nodes.changes import Changes
from dynactor.api.nodes.home_link import AnswerLost, HomeLink, NotSent
from dynactor.api.nodes.membership import Membership
from dynactor.api.nodes.node import Node, OpenHome
from dynactor.api.requests.operation import Call, Operation
from dynactor.model.members import Beat, Member
from dynactor.storage.store import CannotOpen, Closed, InUse, Store
from tests.support.clients.clients import AUTHORIZATION
from tests.support.databases.fake_operations import EchoInput
from tests.support.environment.simulated_loop import NODE, SimulatedLoop

# Like a commit, and the opening of the tables.
_COMMIT_SECONDS = 0.01
_OPEN_SECONDS = 0.1
_MESSAGE_SECONDS = 0.001
_CONNECT_SECONDS = 0.5


class FakeDatabase:
    """The members, the ownership, and the texts that were written."""

    def __init__(self) -> None:
        self.rows: dict[str, Member] = {}
        # By name: the epoch with which a member became the home, or 0.
        self.epochs: dict[str, int] = {}
        self.epoch = 0
        self.owner: str | None = None
        self.written: list[str] = []

    def members(self) -> tuple[Member, ...]:
        """The members, and which of them is the home."""
        return tuple(
            structs.replace(row, is_home=0 < self.epochs[row.name] == self.epoch)
            for row in self.rows.values()
        )

    def home_name(self) -> str | None:
        """The member that is the home."""
        return next((member.name for member in self.members() if member.is_home), None)


class FakeMembers:
    """The row of one node. Each statement takes effect in the middle of its time."""

    def __init__(self, database: FakeDatabase, name: str) -> None:
        self._database = database
        self._joined = 0
        self.me = Member(name, "", 0, name, "1")

    async def join(self) -> bool:
        await anyio.sleep(_MESSAGE_SECONDS)
        self._joined += 1
        self.me = structs.replace(self.me, incarnation=f"{self._joined} of {id(self)}")
        self._database.rows[self.me.name] = self.me
        self._database.epochs[self.me.name] = 0
        return True

    async def beat(self, epoch: int, *, is_leaving: bool) -> Beat:
        await anyio.sleep(_MESSAGE_SECONDS)
        database = self._database
        row = database.rows.get(self.me.name)
        is_member = row is not None and row.incarnation == self.me.incarnation
        if row is not None and is_member:
            database.rows[row.name] = structs.replace(row, beat=row.beat + 1, is_leaving=is_leaving)
            database.epochs[row.name] = epoch
        beat = Beat(database.members(), is_member, database.epoch)
        await anyio.sleep(_MESSAGE_SECONDS)
        return beat

    async def remove(self, member: Member) -> bool:
        await anyio.sleep(_MESSAGE_SECONDS)
        database = self._database
        row = database.rows.get(member.name)
        if row is None or (row.incarnation, row.beat) != (member.incarnation, member.beat):
            return False
        del database.rows[member.name]
        if database.epochs[member.name] == database.epoch:
            database.owner = None
        return True

    async def is_owned(self) -> bool:
        await anyio.sleep(_MESSAGE_SECONDS)
        return self._database.owner is not None

    async def leave(self) -> None:
        await anyio.sleep(_MESSAGE_SECONDS)
        self._database.rows.pop(self.me.name, None)


class FakeLink(HomeLink):
    """Messages to another node of the simulation."""

    def __init__(self, cluster: SimulatedCluster, address: str, changes: Changes) -> None:
        self.address = address
        self.is_open = self.is_refused = False
        self.failure = ""
        self._cluster = cluster
        self._changes = changes
        self._asked: set[asyncio.Future[Answer]] = set()

    async def ask(self, request: Request) -> Answer:
        if not self.is_open:
            raise NotSent
        asked: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asked.add(asked)
        self._cluster.deliver(self.address, request, asked)
        try:
            return await asked
        except NotSent:
            self.is_refused = True
            self._changes.notify()
            raise
        finally:
            self._asked.discard(asked)

    async def run(self) -> None:
        try:
            while True:
                ended = self._cluster.ends.get(self.address)
                if ended is not None and self.address not in self._cluster.unreachable:
                    self.is_open, self.failure = True, ""
                    self._changes.notify()
                    await ended.wait()
                self._end()
                await anyio.sleep(_CONNECT_SECONDS)
        finally:
            self._end()

    def _end(self) -> None:
        self.is_open, self.failure = False, "the node has ended"
        for asked in self._asked:
            if not asked.done():
                asked.set_exception(AnswerLost())
        self._changes.notify()


class SimulatedCluster:
    """Nodes by number, from 1 on. Each has its own queue of callbacks."""

    def __init__(self) -> None:
        self.database = FakeDatabase()
        self.nodes: dict[str, Node] = {}
        self.protocols: dict[str, Protocol] = {}
        # Set when a node is killed, or has ended.
        self.ends: dict[str, anyio.Event] = {}
        # Nodes to which no new link can be opened.
        self.unreachable: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def loop(self) -> SimulatedLoop:
        """The loop of all nodes."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        return loop

    async def start(self, number: int) -> None:
        """Start a node and wait until it is ready.

        Raises:
            CannotOpen: the node does not become ready.
        """
        name = f"n{number}"
        ready: asyncio.Future[None] = self.loop.create_future()
        context = copy_context()
        context.run(NODE.set, number)
        self._tasks[name] = self.loop.create_task(self._run(name, ready), context=context)
        await ready

    async def _run(self, name: str, ready: asyncio.Future[None]) -> None:
        changes = Changes()
        membership = Membership(FakeMembers(self.database, name), changes)
        await membership.join()
        protocol = Protocol(None, (Operation("PutItem", EchoInput, _write),))
        node = Node(
            membership,
            changes,
            protocol,
            lambda taken_over: self._opening(name, taken_over),
            linking=lambda address: FakeLink(self, address, changes),
            drain_seconds=10,
        )
        self.nodes[name], self.protocols[name] = node, protocol
        self.ends[name] = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(node.run)
            try:
                await node.wait_ready()
            except CannotOpen as error:
                ready.set_exception(error)
                group.cancel_scope.cancel()
            else:
                ready.set_result(None)
        self.ends.pop(name).set()

    @asynccontextmanager
    async def _opening(self, name: str, _lost: Callable[[], None]) -> AsyncIterator[OpenHome]:
        database = self.database
        if database.owner is not None:
            raise InUse("another node owns it")
        database.owner = name
        database.epoch += 1
        epoch = database.epoch
        await anyio.sleep(_OPEN_SECONDS)
        try:
            home = SimpleNamespace(database=database, epoch=epoch)
            databases: Any = SimpleNamespace(home=home, separation="shared")
            yield OpenHome(cast("Store", None), epoch, databases)
        finally:
            if database.epoch == epoch:
                database.owner = None

    def deliver(self, address: str, request: Request, asked: asyncio.Future[Answer]) -> None:
        """Give a request to another node, which answers by ``asked``."""
        context = copy_context()
        context.run(NODE.set, int(address.removeprefix("n")))
        self.loop.create_task(self._answer(address, request, asked), context=context)

    async def _answer(self, address: str, request: Request, asked: asyncio.Future[Answer]) -> None:
        await anyio.sleep(_MESSAGE_SECONDS)
        done = self.nodes[address].answer_peer(request)
        answer = await done if done is not None and not isinstance(done, Answer) else done
        if asked.done():
            return
        if answer is None:
            asked.set_exception(NotSent())
        else:
            asked.set_result(answer)

    async def put(self, number: int, text: str) -> Answer:
        """Send a write to a node; raises ``AnswerLost`` if the node ends before it answers."""
        protocol, end = self.protocols[f"n{number}"], self.ends[f"n{number}"]
        request = Request(
            "DynamoDB_20120810.PutItem",
            JSON_1_0,
            AUTHORIZATION,
            *("", "", "", ""),
            b'{"Text":"%s"}' % text.encode(),
        )
        context = copy_context()
        context.run(NODE.set, number)

        async def ask() -> Answer:
            answer = protocol.answer(request)
            return answer if isinstance(answer, Answer) else await answer

        asking = self.loop.create_task(ask(), context=context)
        ending = self.loop.create_task(end.wait())
        waited: set[asyncio.Future[Any]] = {asking, ending}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        if not asking.done():
            raise AnswerLost
        return asking.result()

    def kill(self, number: int) -> None:
        """Let a node do nothing any more; the database ends its session."""
        name = f"n{number}"
        self.loop.stopped.add(number)
        if self.database.owner == name:
            self.database.owner = None
        self.ends.pop(name).set()

    def pause(self, number: int) -> None:
        """Suspend a node, whose connections stay open."""
        self.loop.stopped.add(number)

    def resume(self, number: int) -> None:
        """Continue a suspended node."""
        self.loop.stopped.discard(number)

    async def leave(self, number: int) -> None:
        """Stop a node as SIGTERM does."""
        node = self.nodes[f"n{number}"]
        context = copy_context()
        context.run(NODE.set, number)
        context.run(node.hand_over)
        context.run(node.end)
        await self._tasks[f"n{number}"]

    def end(self) -> None:
        """Let killed nodes be canceled with the others."""
        self.loop.stopped.clear()


async def _write(call: Call[EchoInput]) -> bytes:
    home: Any = call.database
    database: FakeDatabase = home.database
    await anyio.sleep(_COMMIT_SECONDS)
    if database.epoch != home.epoch:
        raise Closed("another server has taken over the database")
    database.written.append(call.request.Text)
    await anyio.sleep(_COMMIT_SECONDS)
    return b"{}"
