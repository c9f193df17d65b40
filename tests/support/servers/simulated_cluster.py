"""Nodes of a cluster in one process, on a simulated loop, with a fake database and fake links.

The fake database has one lock and an epoch for the leader and for each share, as PostgreSQL has. A
commit of a node whose epoch is not the present one is refused. A link loses the answers of a node
that is killed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import copy_context
from itertools import count
from types import SimpleNamespace
from typing import Any

import anyio
from msgspec import json, structs

from dynactor.actors.catalog.homes import (
    MOVING,
    HomeChange,
    MoveGuard,
    MoveTables,
    RecallTables,
    TakeTables,
)
from dynactor.api.http.protocol import JSON_1_0, Answer, Protocol, Request
from dynactor.api.nodes.changes import Changes
from dynactor.api.nodes.frames import NodeMessage
from dynactor.api.nodes.membership import Membership
from dynactor.api.nodes.node import Node, OpenLeader
from dynactor.api.nodes.node_link import AnswerLost, NodeLink, NotSent
from dynactor.api.nodes.share_keeper import OpenShare
from dynactor.api.requests.call import Call
from dynactor.model.errors import InternalServerError
from dynactor.model.kept_failure import KeptFailure
from dynactor.model.latency_histogram import LatencyHistogram
from dynactor.model.members import Beat, Claim, Claims, Member
from dynactor.storage.store import CannotOpen, Closed, InUse
from dynactor.storage.store_figures import EngineFigures, StoreFigures
from tests.support.clients.clients import AUTHORIZATION
from tests.support.databases.fake_operations import EchoInput
from tests.support.databases.fake_operations import operation as fake_operation
from tests.support.environment.simulated_loop import NODE, SimulatedLoop

TABLES = ("ta", "tb", "tc", "td", "te", "tf")
NO_SIZES = EngineFigures(0, 0, 0, 0, None)
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
        # By slot: the epoch of a share, and whether a session holds its lock.
        self.shares: dict[int, int] = {}
        self.locked: dict[str, int] = {}
        self.claims: dict[str, Claim] = {}
        self.claims_version = 0
        self.groups: dict[str, str] = {}
        # By table: the epoch of the database of a node that opened it last.
        self.opened: dict[str, tuple[int, int]] = {}
        self.violations: list[str] = []
        # The time in which the database answers whether a share has ended.
        self.fence_seconds = _MESSAGE_SECONDS
        # The time in which the followers of tables start, after the tables are open.
        self.follow_seconds = 0.0
        # By name: the error of a node's clock.
        self.ahead_seconds: dict[str, float] = {}

    def members(self) -> tuple[Member, ...]:
        """The members, and which of them is the home."""
        return tuple(
            structs.replace(row, is_leader=0 < self.epochs[row.name] == self.epoch)
            for row in self.rows.values()
        )

    def is_current(self, owner: tuple[int, int]) -> bool:
        """Whether commits of the leader's database, or of a share's, are accepted."""
        epoch, share = owner
        return self.shares.get(share >> 32) == share if share else self.epoch == epoch

    def home_name(self) -> str | None:
        """The member that is the home."""
        return next((member.name for member in self.members() if member.is_leader), None)


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

    async def beat(self, epoch: int, share: int, *, is_leaving: bool) -> Beat:
        await anyio.sleep(_MESSAGE_SECONDS)
        database = self._database
        row = database.rows.get(self.me.name)
        is_member = row is not None and row.incarnation == self.me.incarnation
        if row is not None and is_member:
            database.rows[row.name] = structs.replace(
                row, beat=row.beat + 1, is_leaving=is_leaving, share=share
            )
            database.epochs[row.name] = epoch
        share_epoch = database.shares[share >> 32] if share else 0
        beat = Beat(
            database.members(),
            is_member,
            database.epoch,
            database.claims_version,
            share_epoch,
            database.ahead_seconds.get(self.me.name, 0.0),
        )
        await anyio.sleep(_MESSAGE_SECONDS)
        return beat

    async def claims(self) -> Claims:
        await anyio.sleep(_MESSAGE_SECONDS)
        claims = Claims(self._database.claims_version, dict(self._database.claims))
        await anyio.sleep(_MESSAGE_SECONDS)
        return claims

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


class FakeTables:
    """The database of the leader, or of a share. Each change is one commit of its owner."""

    def __init__(self, database: FakeDatabase, epoch: int, share: int) -> None:
        self.database = database
        self.owner = (epoch, share)
        self._share = share
        self._open: set[str] = set()
        self._guard: MoveGuard | None = None
        self.tables_elsewhere: dict[str, int] = {}
        self.is_closed = False
        for name in TABLES:
            self._open_or_note(name)

    @property
    def table_groups(self) -> dict[str, str]:
        return self.database.groups

    def runs(self, name: str) -> bool:
        return name in self._open

    def table_names(self) -> list[str]:
        return sorted(self._open | self.tables_elsewhere.keys())

    def movable_tables(self) -> list[str]:
        return sorted(self._open)

    async def confirm_owner(self) -> None:
        await anyio.sleep(_MESSAGE_SECONDS)
        if not self.database.is_current(self.owner):
            raise Closed("another server has taken over the database")

    def guard_moves(self, guard: MoveGuard) -> None:
        self._guard = guard

    async def ask(self, message: HomeChange) -> None:
        # The actor finishes a change although the caller is canceled.
        await asyncio.shield(asyncio.create_task(self._change_later(message)))

    async def _change_later(self, message: HomeChange) -> None:
        # Sooner than a write, which a move has to wait for.
        await anyio.sleep(_MESSAGE_SECONDS)
        if isinstance(message, MoveTables):
            await self._move(message)
        else:
            self._change(message)
            if isinstance(message, TakeTables) and self._guard is not None:
                self._guard.opened()
                await anyio.sleep(self.database.follow_seconds)
            await anyio.sleep(_COMMIT_SECONDS)

    async def _move(self, message: MoveTables) -> None:
        guard = self._guard
        assert guard is not None
        names = [name for name in message.names if name in self._open or self._is_own(name)]
        if not guard.may_give(message.epoch):
            return
        async with guard.holding(names) as are_idle:
            if are_idle:
                for name in names:
                    self._open.discard(name)
                    self.tables_elsewhere[name] = MOVING
                self._change(message)
                await anyio.sleep(_COMMIT_SECONDS)

    def _change(self, message: HomeChange) -> None:
        database = self.database
        if self.is_closed or not database.is_current(self.owner):
            raise InternalServerError("another server has taken over the database")
        if isinstance(message, TakeTables):
            for name in message.names:
                claim = database.claims.get(name)
                if claim is not None and claim.epoch in message.ended:
                    self._claim(name, None)
                self._open_or_note(name)
        elif isinstance(message, MoveTables):
            for name in message.names:
                if name not in self._open and self._is_own(name):
                    self._claim(name, Claim(message.epoch) if message.epoch else None)
                    self._open_or_note(name)
        elif isinstance(message, RecallTables):
            for name in message.names:
                claim = database.claims.get(name)
                if claim is not None:
                    self._claim(name, Claim(claim.epoch, is_recalled=True))
        else:
            database.groups.update(dict.fromkeys(message.names, min(message.names)))

    def _claim(self, name: str, claim: Claim | None) -> None:
        self.database.claims_version += 1
        if claim is None:
            self.database.claims.pop(name, None)
        else:
            self.database.claims[name] = claim

    def _is_own(self, name: str) -> bool:
        claim = self.database.claims.get(name)
        return (claim.epoch if claim else 0) == self._share

    def _open_or_note(self, name: str) -> None:
        if name in self._open:
            return
        if self._is_own(name):
            self.tables_elsewhere.pop(name, None)
            self._open.add(name)
            self.database.opened[name] = self.owner
        else:
            claim = self.database.claims.get(name)
            self.tables_elsewhere[name] = claim.epoch if claim else 0

    async def write(self, names: list[str], text: str) -> None:
        await anyio.sleep(_COMMIT_SECONDS)
        if not self.database.is_current(self.owner):
            raise Closed("another server has taken over the database")
        if not self._open.issuperset(names):
            raise Closed("the table was closed")
        for name in names:
            # PostgreSQL compares only the owner's epoch. So a table that another owner has opened
            # since must be impossible.
            if self.database.opened[name] != self.owner:
                self.database.violations.append(f"two homes of {name}")
        self.database.written.append(text)
        await anyio.sleep(_COMMIT_SECONDS)


class FakeStore:
    """The store of the leader, or of a share."""

    def __init__(self, database: FakeDatabase, owner: tuple[int, int]) -> None:
        self._database = database
        self._owner = owner
        self.is_in_doubt = False

    def figures(self) -> StoreFigures:
        return StoreFigures(NO_SIZES, LatencyHistogram(), "", waiting_commits=None)

    async def fence(self, share: int, *, only_ended: bool) -> bool:
        await anyio.sleep(_MESSAGE_SECONDS)
        database, slot = self._database, share >> 32
        if not database.is_current(self._owner):
            raise Closed("another server has taken over the database")
        if not (only_ended and slot in database.locked.values()) and (
            database.shares[slot] == share
        ):
            database.shares[slot] += 1
        is_fenced = database.shares[slot] != share
        await anyio.sleep(database.fence_seconds)
        return is_fenced


class FakeLink(NodeLink):
    """Messages to another node of the simulation."""

    def __init__(
        self, cluster: SimulatedCluster, node: str, address: str, changes: Changes
    ) -> None:
        self.address = address
        self._node = node
        self.is_open = self.is_refused = False
        self.failure = ""
        self._cluster = cluster
        self._changes = changes
        self._asked: set[asyncio.Future[Answer]] = set()

    async def ask(self, message: Request | NodeMessage) -> Answer:
        if not self.is_open:
            raise NotSent
        asked: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asked.add(asked)
        self._cluster.deliver(self.address, message, asked)
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
                if self._cluster.connects(self._node, self.address):
                    self.is_open, self.failure = True, ""
                    self._changes.notify()
                    closed = self._cluster.closings[self._node, self.address] = anyio.Event()
                    await closed.wait()
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
        # The time in which the leader opens its tables.
        self.open_seconds = _OPEN_SECONDS
        # Nodes to which no new link can be opened.
        self.unreachable: set[str] = set()
        # Pairs of nodes that can't reach each other.
        self._cuts: set[frozenset[str]] = set()
        # Set when a link is closed, by its two nodes.
        self.closings: dict[tuple[str, str], anyio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        # By name: the number of the node's queue. A node that is started again has another queue,
        # so that nothing wakes what the killed one would still do.
        self._queues: dict[str, int] = {}
        self._next_queue = count(1)

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
        self._queues[name] = next(self._next_queue)
        context.run(NODE.set, self._queues[name])
        self._tasks[name] = self.loop.create_task(self._run(name, ready), context=context)
        await ready

    async def _run(self, name: str, ready: asyncio.Future[None]) -> None:
        changes = Changes()
        membership = Membership(FakeMembers(self.database, name), changes)
        await membership.join()
        operations = [
            fake_operation(operation, _write)
            for operation in ("PutItem", "TransactWriteItems", "UpdateContinuousBackups")
        ]
        protocol = Protocol(None, operations)
        node = Node(
            membership,
            changes,
            protocol,
            lambda taken_over: self._opening(name, taken_over),
            opening_share=lambda taken_over: self._opening_share(name, taken_over),
            linking=lambda address: FakeLink(self, name, address, changes),
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
        self._end_node(name)

    @asynccontextmanager
    async def _opening(self, name: str, _lost: Callable[[], None]) -> AsyncIterator[OpenLeader]:
        database = self.database
        if database.owner is not None:
            raise InUse("another node owns it")
        database.owner = name
        database.epoch += 1
        epoch = database.epoch
        await anyio.sleep(self.open_seconds)
        try:
            tables = FakeTables(database, epoch, 0)
            databases: Any = SimpleNamespace(main=tables, separation="shared")
            store: Any = FakeStore(database, tables.owner)
            yield OpenLeader(store, epoch, databases)
            tables.is_closed = True
        finally:
            if database.epoch == epoch:
                database.owner = None

    @asynccontextmanager
    async def _opening_share(self, name: str, lost: Callable[[], None]) -> AsyncIterator[OpenShare]:
        database = self.database
        await anyio.sleep(_OPEN_SECONDS)
        slot = next(slot for slot in count(3) if slot not in database.locked.values())
        share = database.shares[slot] = database.shares.get(slot, slot << 32) + 1
        database.locked[name] = slot
        tables = FakeTables(database, 0, share)

        async def beat() -> None:
            while database.is_current(tables.owner):
                await anyio.sleep(1)
            lost()

        kept = KeptFailure()
        databases: Any = SimpleNamespace(main=tables, separation="shared")
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(beat)
                with kept:
                    yield OpenShare(FakeStore(database, tables.owner), share, databases)
                tables.is_closed = True
                group.cancel_scope.cancel()
            kept.raise_again()
        finally:
            if database.locked.get(name) == slot:
                del database.locked[name]

    def deliver(
        self, address: str, request: Request | NodeMessage, asked: asyncio.Future[Answer]
    ) -> None:
        """Give a message to another node, which answers by ``asked``."""
        context = copy_context()
        context.run(NODE.set, self._queues[address])
        self.loop.create_task(self._answer(address, request, asked), context=context)

    async def _answer(
        self, address: str, request: Request | NodeMessage, asked: asyncio.Future[Answer]
    ) -> None:
        await anyio.sleep(_MESSAGE_SECONDS)
        done = self.nodes[address].answer_peer(request)
        answer = await done if done is not None and not isinstance(done, Answer) else done
        if asked.done():
            return
        if answer is None:
            asked.set_exception(NotSent())
        else:
            asked.set_result(answer)

    async def put(self, number: int, text: str, *tables: str, operation: str = "PutItem") -> Answer:
        """Send a write to a node; raises ``AnswerLost`` if the node ends before it answers.

        A write to several tables is a transaction.
        """
        protocol, end = self.protocols[f"n{number}"], self.ends[f"n{number}"]
        body: dict[str, Any] = {"Text": f"{' '.join(tables)}|{text}"}
        if len(tables) == 1:
            body["TableName"] = tables[0]
        elif tables:
            operation = "TransactWriteItems"
            body["TransactItems"] = [{"Put": {"TableName": name}} for name in tables]
        request = Request(
            f"DynamoDB_20120810.{operation}",
            JSON_1_0,
            AUTHORIZATION,
            *("", "", "", ""),
            json.encode(body),
        )
        context = copy_context()
        context.run(NODE.set, self._queues[f"n{number}"])

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
        self.loop.stop_node(self._queues[name])
        if self.database.owner == name:
            self.database.owner = None
        self.database.locked.pop(name, None)
        self._end_node(name)

    def _end_node(self, name: str) -> None:
        self.ends.pop(name).set()
        for (source, target), closed in self.closings.items():
            if name in (source, target):
                closed.set()

    def connects(self, source: str, target: str) -> bool:
        """Whether a link between two nodes can be opened."""
        is_cut = target in self.unreachable or frozenset((source, target)) in self._cuts
        return target in self.ends and not is_cut

    def cut(self, *numbers: int) -> None:
        """Close the link between two nodes until ``heal`` is called."""
        pair = frozenset(f"n{number}" for number in numbers)
        self._cuts.add(pair)
        for nodes, closed in self.closings.items():
            if pair == frozenset(nodes):
                closed.set()

    def heal(self) -> None:
        """End all cuts."""
        self._cuts.clear()

    def pause(self, number: int) -> None:
        """Suspend a node, whose connections stay open."""
        self.loop.stop_node(self._queues[f"n{number}"])

    def resume(self, number: int) -> None:
        """Continue a suspended node."""
        self.loop.resume_node(self._queues[f"n{number}"])

    async def leave(self, number: int) -> None:
        """Stop a node as SIGTERM does."""
        node = self.nodes[f"n{number}"]
        context = copy_context()
        context.run(NODE.set, self._queues[f"n{number}"])
        context.run(node.hand_over)
        context.run(node.end)
        await self._tasks[f"n{number}"]

    def end(self) -> None:
        """Let killed nodes be canceled with the others."""
        self.loop.resume_all_nodes()


async def _write(call: Call[EchoInput]) -> bytes:
    tables: Any = call.database
    names, _, text = call.request.Text.partition("|")
    for name in names.split():
        if not tables.runs(name):
            tables.database.violations.append(f"{name} is not here")
    await tables.write(names.split(), text)
    return b"{}"
