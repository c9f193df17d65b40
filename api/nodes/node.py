"""This server as a node of a cluster.

One node is the home: it owns the database and runs the actors of all tables. The others forward
their requests to it. When the home leaves or fails, another node takes the ownership, which
PostgreSQL gives to one server at a time, and becomes the home. PostgreSQL refuses later commits of
the previous home, so correctness does not depend on the members.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Final, NamedTuple, TypeAlias

import anyio
import structlog

from dynactor.actors.catalog.databases import Databases
from dynactor.api.admin.nodes_messages import NodesState, NodeState
from dynactor.api.http.protocol import Answer, Protocol, Request
from dynactor.api.nodes.changes import Changes
from dynactor.api.nodes.forwarding import HOME_SECONDS, Forwarding
from dynactor.api.nodes.home_link import HomeLink
from dynactor.api.nodes.membership import BEAT_SECONDS, Membership
from dynactor.api.nodes.node_figures import NodeFigures
from dynactor.model.kept_failure import KeptFailure
from dynactor.model.latency_histogram import LatencyHistogram
from dynactor.model.members import Member
from dynactor.storage.store import CannotOpen, InUse, Store, StoreError, Unavailable
from dynactor.storage.store_figures import EngineFigures, StoreFigures

# Another node may become the home when the home's beat stays the same for this number of renewals.
_SUSPECT_BEATS: Final = 2
_TRY_SECONDS: Final = 0.1
_START_SECONDS: Final = 15.0

_NO_STORE: Final = StoreFigures(
    EngineFigures(0, 0, 0, 0, None), LatencyHistogram(), "", waiting_commits=None
)

_log = structlog.get_logger("nodes")


class OpenHome(NamedTuple):
    """The store and the databases of the home."""

    store: Store
    epoch: int
    databases: Databases


# Opens what a home needs; the argument is called if another server takes the ownership.
OpeningHome: TypeAlias = Callable[[Callable[[], None]], AbstractAsyncContextManager[OpenHome]]


class Node:
    """The roles of this node: it is the home while ``home`` is set, and else forwards requests."""

    def __init__(
        self,
        membership: Membership,
        changes: Changes,
        protocol: Protocol,
        opening: OpeningHome,
        *,
        linking: Callable[[str], HomeLink],
        drain_seconds: float,
    ) -> None:
        self.membership = membership
        self._changes = changes
        self._protocol = protocol
        self._opening = opening
        self._linking = linking
        self._drain_seconds = drain_seconds
        self.home: OpenHome | None = None
        self.link: HomeLink | None = None
        self.forwarding = Forwarding(
            protocol, changes, lambda: self.link, lambda: self.home is not None
        )
        # The reason why this node can't be the home, until it is the home or another node is.
        self._refusal: StoreError | None = None
        self._homes_taken = 0
        # The last time at which requests could be answered, of the event loop's clock.
        self._ready_at = 0.0
        self._end = anyio.Event()
        protocol.detour(self.forwarding.answer)

    @property
    def is_ready(self) -> bool:
        """Whether requests can be answered."""
        return self.home is not None or (self.link is not None and self.link.is_open)

    @property
    def readiness(self) -> str:
        """The reason why no requests can be answered, or an empty text.

        While requests wait for a home, all nodes are ready. Otherwise a load balancer would refuse
        the requests.
        """
        if self.membership.is_leaving:
            return "the node is leaving the cluster"
        if self.is_ready or asyncio.get_running_loop().time() < self._ready_at + HOME_SECONDS:
            return ""
        return "this node has no connection to a home of the tables"

    @property
    def store_figures(self) -> StoreFigures:
        """The figures of the store, which only the home has open."""
        return _NO_STORE if self.home is None else self.home.store.figures()

    @property
    def figures(self) -> NodeFigures:
        """The state for the metrics."""
        beat = self.membership.beat
        return NodeFigures(
            self.home is not None,
            0 if beat is None else len(beat.members),
            self._homes_taken,
            self.forwarding.figures,
        )

    @property
    def state(self) -> NodesState:
        """The cluster, as this node saw it in its last renewal."""
        membership = self.membership
        beat = membership.beat
        members = () if beat is None else beat.members
        home = next((member.name for member in members if member.is_home), None)
        return NodesState(
            membership.me.name,
            home,
            0 if beat is None else beat.owned_epoch,
            [
                NodeState(
                    member.name,
                    member.address,
                    member.version,
                    member.is_home,
                    member.is_leaving,
                    membership.still_beats(member),
                )
                for member in members
            ],
        )

    def answer_peer(self, request: Request) -> Answer | Awaitable[Answer] | None:
        """The answer to a forwarded request; None if this node is not the home."""
        return None if self.home is None else self._protocol.answer(request)

    async def wait_ready(self) -> None:
        """Wait until requests can be answered.

        Raises:
            CannotOpen: there is no home, and this node can't become the home.
        """
        with anyio.move_on_after(_START_SECONDS):
            while not self.is_ready:
                await self._changes.wait(_START_SECONDS)
        if self.is_ready:
            return
        home = self.membership.home
        if home is not None:
            failure = "" if self.link is None else self.link.failure
            raise CannotOpen(
                f"Node {home.name} is the home of all tables and can't be reached at "
                f"{home.address}{f' ({failure})' if failure else ''}: correct its --peer-listen, "
                "the secret, or the network"
            )
        if self._refusal is not None:
            raise self._refusal
        raise CannotOpen("No node became the home of the tables")

    async def run(self) -> None:
        """Renew the membership, keep the link, and be the home if there is no other."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.membership.run)
            group.start_soon(self._keep_link)
            group.start_soon(self._note_readiness)
            await self._take_turns_as_home()
            # Requests of this node's clients are forwarded until the server has answered them all.
            await self._end.wait()
            group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await self.membership.leave()

    def hand_over(self) -> None:
        """Let another node be the home, if there is another one, before this node ends."""
        if self.membership.has_successor:
            self.membership.is_leaving = True
            self._changes.notify()

    def end(self) -> None:
        """End ``run``, after the requests in flight."""
        self.membership.is_leaving = True
        self._changes.notify()
        self._end.set()

    # -- the home ---------------------------------------------------------------------------

    async def _take_turns_as_home(self) -> None:
        while not self.membership.is_leaving:
            if not await self._may_become_home():
                await self._changes.wait(_TRY_SECONDS if self._lacks_home() else BEAT_SECONDS)
                continue
            try:
                await self._be_home()
            except InUse as error:
                self._refusal = error
            except StoreError as error:
                self._refusal = error
                self._changes.notify()
                _log.error("home_not_opened", reason=str(error))
                await anyio.sleep(BEAT_SECONDS)

    def _lacks_home(self) -> bool:
        """Whether no other node is the home, as far as this one knows."""
        if self.membership.beat is None:
            return False
        home = self.membership.home
        if home is None or home.is_leaving:
            return True
        if self.membership.still_beats(home) >= _SUSPECT_BEATS:
            return True
        link = self.link
        if link is None or link.address != home.address:
            return False
        return bool(link.failure) or link.is_refused

    async def _may_become_home(self) -> bool:
        if not self._lacks_home():
            return False
        try:
            is_owned = await self.membership.is_owned()
            if is_owned:
                # Another node may have just become the home.
                await self.membership.renew()
                self._refusal = self._refusal or InUse(
                    "The database is in use by a server without --peer-listen: stop that server"
                )
        except Unavailable:
            return False
        return not is_owned

    async def _be_home(self) -> None:
        """Be the home until this node leaves, or another server has taken over.

        Raises:
            InUse: another node was faster.
            StoreError: the data can't be opened.
        """
        is_lost = False

        def lose() -> None:
            nonlocal is_lost
            is_lost = True
            self._changes.notify()

        async with self._opening(lose) as home:
            self.membership.epoch = home.epoch
            self.home = home
            self._homes_taken += 1
            self._refusal = None
            self._protocol.resume(home.databases)
            self._changes.notify()
            _log.info("ownership_acquired", node=self.membership.me.name, epoch=home.epoch)
            try:
                with suppress(Unavailable):
                    await self.membership.renew()
                while not (is_lost or self.membership.is_leaving):
                    await self._changes.wait(BEAT_SECONDS)
                    # A renewal shows this before the store does.
                    if self.membership.owned_epoch > home.epoch:
                        lose()
                if self.membership.is_leaving:
                    with suppress(Unavailable):
                        await self.membership.renew()
            finally:
                self.home = None
                self.membership.epoch = 0
                self._protocol.detour(self.forwarding.answer)
            await self._protocol.wait_idle(0 if is_lost else self._drain_seconds)
        _log.info("ownership_released", node=self.membership.me.name, is_lost=is_lost)

    async def _note_readiness(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if self.is_ready:
                self._ready_at = loop.time()
            await self._changes.wait(BEAT_SECONDS)

    # -- the link to the home ---------------------------------------------------------------

    async def _keep_link(self) -> None:
        while True:
            home = self.membership.home
            if home is None or self.home is not None:
                await self._changes.wait(BEAT_SECONDS)
                continue
            await self._link_to(home)

    async def _link_to(self, home: Member) -> None:
        epoch = self.membership.owned_epoch
        link = self.link = self._linking(home.address)
        async with anyio.create_task_group() as group:
            group.start_soon(link.run)
            while self._is_home(home, epoch):
                await self._changes.wait(BEAT_SECONDS)
            group.cancel_scope.cancel()
        self.link = None

    def _is_home(self, member: Member, epoch: int) -> bool:
        home = self.membership.home
        return (
            self.home is None
            and home is not None
            and self.membership.owned_epoch == epoch
            and (home.name, home.incarnation) == (member.name, member.incarnation)
        )


@asynccontextmanager
async def running_node(node: Node) -> AsyncIterator[Node]:
    """A node that serves within the context.

    Raises:
        CannotOpen: there is no home, and this node can't become the home.
    """
    kept = KeptFailure()
    async with anyio.create_task_group() as group:
        ended = anyio.Event()

        async def run() -> None:
            try:
                await node.run()
            finally:
                ended.set()

        group.start_soon(run)
        with kept:
            try:
                await node.wait_ready()
                yield node
            finally:
                node.end()
                with anyio.CancelScope(shield=True):
                    await ended.wait()
    kept.raise_again()
