"""This server as a node of a cluster.

One node is the leader: it owns the database, and is the home of all tables that it gave to no other
node. When the leader leaves or fails, another node takes the ownership, which PostgreSQL gives to
one server at a time, and becomes the leader. PostgreSQL refuses later commits of the previous
leader, so correctness does not depend on the members. Each node may also have a share, the tables
that the leader gave it, and forwards the requests to other tables to their homes.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from http import HTTPStatus
from typing import Final, NamedTuple, TypeAlias

import anyio
import structlog
from msgspec import MsgspecError, json

from dynactor.actors.database.database import Database
from dynactor.actors.database.databases import Databases
from dynactor.api.admin_api.nodes_messages import NodesState
from dynactor.api.http.protocol import JSON_1_0, Answer, Protocol, Request
from dynactor.api.nodes.changes import Changes
from dynactor.api.nodes.forwarding import HOME_SECONDS, Forwarding
from dynactor.api.nodes.frames import AskInsights, AskRequestRates, ClaimsChanged, NodeMessage
from dynactor.api.nodes.member_links import MemberLinks
from dynactor.api.nodes.membership import BEAT_SECONDS, Membership
from dynactor.api.nodes.node_figures import NodeFigures, nodes_state
from dynactor.api.nodes.node_link import AnswerLost, NodeLink, NotSent
from dynactor.api.nodes.request_rates import RequestRates, faded
from dynactor.api.nodes.request_tables import RequestTables, find_tables
from dynactor.api.nodes.runner import Runner
from dynactor.api.nodes.share_keeper import OpeningShare, ShareKeeper
from dynactor.api.nodes.spreading import SUSPECT_BEATS, LeaderStore, Spreader
from dynactor.model.kept_failure import KeptFailure
from dynactor.model.latency_histogram import LatencyHistogram
from dynactor.model.pauses import MOVE_SECONDS
from dynactor.storage.store import CannotOpen, InUse, StoreError, Unavailable
from dynactor.storage.store_figures import EngineFigures, StoreFigures

_START_SECONDS: Final = 15.0
_RATES_SECONDS: Final = 2.0

_NO_STORE: Final = StoreFigures(
    EngineFigures(0, 0, 0, 0, None), LatencyHistogram(), "", waiting_commits=None
)

_log = structlog.get_logger("nodes")

# Returns the status and the body of the answer to a path of the admin port.
Insights: TypeAlias = Callable[[Database, str], Awaitable[tuple[int, bytes]]]


class OpenLeader(NamedTuple):
    """The store and the databases of the leader."""

    store: LeaderStore
    epoch: int
    databases: Databases


# Opens what a leader needs; the argument is called if another server takes the ownership.
OpeningLeader: TypeAlias = Callable[[Callable[[], None]], AbstractAsyncContextManager[OpenLeader]]


class Node:
    """The roles of this node: leader while ``leadership`` is set, and the home of a share."""

    def __init__(
        self,
        membership: Membership,
        changes: Changes,
        protocol: Protocol,
        opening: OpeningLeader,
        *,
        opening_share: OpeningShare | None = None,
        linking: Callable[[str], NodeLink],
        insights: Insights | None = None,
        drain_seconds: float,
    ) -> None:
        self.membership = membership
        self._changes = changes
        self._protocol = protocol
        self._opening = opening
        self._insights = insights
        self._drain_seconds = drain_seconds
        self.leadership: OpenLeader | None = None
        self._links = MemberLinks(membership, changes, linking)
        self._rates = RequestRates(asyncio.get_running_loop().time)
        self._leader = Runner(protocol.twin(), self._rates)
        self._share = Runner(protocol.twin(), self._rates)
        self._keeper = opening_share and ShareKeeper(
            membership, changes, self._share, opening_share, self._links.tell_all
        )
        self._spreader = Spreader(membership, changes, self._leader, self._links)
        self.forwarding = Forwarding(protocol, changes, self)
        # The reason why this node can't be the leader, until it is the leader or another node is.
        self._refusal: StoreError | None = None
        self._times_leader = 0
        self._is_opening = False
        # The last time at which requests could be answered, of the event loop's clock.
        self._ready_at = 0.0
        self._end = anyio.Event()
        protocol.detour(self.forwarding.answer)

    @property
    def link(self) -> NodeLink | None:
        """The connection to the leader, if another node is the leader."""
        leader = self.membership.leader
        return None if leader is None or self.leadership is not None else self._links.to(leader)

    @property
    def is_ready(self) -> bool:
        """Whether requests can be answered."""
        return self.leadership is not None or (self.link is not None and self.link.is_open)

    @property
    def readiness(self) -> str:
        """The reason why no requests can be answered, or an empty text.

        While requests wait for a leader, all nodes are ready. Otherwise a load balancer would
        refuse the requests. A node that is cut off from the leader is not ready, because others
        are.
        """
        if self.membership.is_leaving:
            return "the node is leaving the cluster"
        if self.is_ready:
            return ""
        is_recent = asyncio.get_running_loop().time() < self._ready_at + HOME_SECONDS
        leader = self.membership.leader
        if is_recent and (leader is None or not self._links.is_cut_off(leader)):
            return ""
        return "this node has no connection to a home of the tables"

    @property
    def store_figures(self) -> StoreFigures:
        """The figures of the store of the database with this node's tables."""
        if self.leadership is not None:
            return self.leadership.store.figures()
        share = self._keeper and self._keeper.share
        return share.store.figures() if share else _NO_STORE

    @property
    def database(self) -> Database | None:
        """The database with this node's tables, for the metrics."""
        if self.leadership is not None:
            return self.leadership.databases.main
        share = self._keeper and self._keeper.share
        return share.databases.main if share else None

    @property
    def figures(self) -> NodeFigures:
        """The state for the metrics."""
        beat = self.membership.beat
        return NodeFigures(
            self.leadership is not None,
            0 if beat is None else len(beat.members),
            self._times_leader,
            self.forwarding.figures,
            self.membership.ahead_seconds,
        )

    @property
    def state(self) -> NodesState:
        """The cluster, as this node saw it in its last renewal."""
        return nodes_state(self.membership)

    def answer_peer(self, message: Request | NodeMessage) -> Answer | Awaitable[Answer] | None:
        """The answer to another node; None if this node is not the home of a request's tables."""
        match message:
            case ClaimsChanged():
                return self._read_claims()
            case AskRequestRates():
                return Answer(HTTPStatus.OK.value, JSON_1_0, json.encode(self._rates.read()), "")
            case AskInsights():
                return self._answer_insights(message)
            case Request():
                return self._answer_forwarded(message)

    def _answer_forwarded(self, request: Request) -> Answer | Awaitable[Answer] | None:
        tables = find_tables(request)
        place = self.place(tables)
        if isinstance(place, Runner):
            return place.answer(request, tables)
        if self.leadership is not None:
            # The leader brings tables together, and knows the home of each.
            return self.forwarding.forward(request, tables)
        # The other node may know more than this one.
        self.membership.ask_for_claims()
        return None

    async def ask_for_insights(self, name: str, path: str) -> Answer | None:
        """The use of a table's keys, from the table's home.

        ``path`` is the one of the admin port, with its parameters. None: the table is here, or its
        home does not answer.
        """
        asked = AskInsights(name, path)
        with anyio.move_on_after(HOME_SECONDS):
            while (tables := self._leader.tables) and name in tables.tables_elsewhere:
                link = self._links.to_share(tables.tables_elsewhere[name])
                with suppress(NotSent, AnswerLost):
                    if link is not None and (answer := await link.ask(asked)).body:
                        return answer
                await self._changes.wait(MOVE_SECONDS)
        return None

    async def _answer_insights(self, asked: AskInsights) -> Answer:
        """The answer of the home; its body is empty if this node is not the home any more."""
        share = None if self._keeper is None else self._keeper.share
        status, body = HTTPStatus.SERVICE_UNAVAILABLE.value, b""
        if share and self._insights and share.databases.main.runs(asked.table_name):
            status, body = await self._insights(share.databases.main, asked.path)
        return Answer(status, JSON_1_0, body, "")

    async def _read_claims(self) -> Answer:
        with suppress(Unavailable):
            await self.membership.load_claims()
        return Answer(HTTPStatus.OK.value, JSON_1_0, b"{}", "")

    def place(self, tables: RequestTables) -> Runner | NodeLink | None:
        """The place where a request is executed; None if it waits for a change."""
        names, share, leader = tables.names, self._share, self._leader
        if (
            tables.is_at_home
            and names
            and share.tables is not None
            and all(map(share.tables.runs, names))
        ):
            return None if share.holds(names) else share
        if leader.tables is None:
            claims = self.membership.claims
            homes = {claims[name].epoch if name in claims else 0 for name in names}
            if tables.is_at_home and len(homes) == 1 and (epoch := homes.pop()):
                link = self._links.to_share(epoch)
                # The leader reaches nodes that this one is cut off from.
                return link if link is not None and link.is_open else self.link
            return self.link
        if leader.holds(names):
            return None
        elsewhere = leader.tables.tables_elsewhere
        homes = {elsewhere.get(name, 0) for name in names}
        if not any(homes):
            if len(names) > 1 and tables.is_at_home:
                self._spreader.note_together(names)
            return leader
        if tables.is_at_home and len(homes) == 1:
            return self._links.to_share(homes.pop())
        self._spreader.gather(names)
        return None

    async def recall(self, name: str) -> None:
        """Wait until this node, the leader, is the home of a table, or for some seconds.

        It remains the home for some seconds.
        """
        with anyio.move_on_after(HOME_SECONDS):
            while (tables := self._leader.tables) and name in tables.tables_elsewhere:
                self._spreader.gather((name,))
                await self._changes.wait(BEAT_SECONDS)

    def note_refused(self) -> None:
        """Note that another node is not the home of some tables any more."""
        self.membership.ask_for_claims()

    async def wait_ready(self) -> None:
        """Wait until requests can be answered.

        Raises:
            CannotOpen: there is no leader, and this node can't become the leader.
        """
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + _START_SECONDS
        # The next node to become the leader would not open the tables sooner.
        while not self.is_ready and (self._is_opening or loop.time() < give_up_at):
            await self._changes.wait(MOVE_SECONDS)
        if self.is_ready:
            return
        leader = self.membership.leader
        if leader is not None:
            failure = "" if self.link is None else self.link.failure
            raise CannotOpen(
                f"Node {leader.name} is the home of all tables and can't be reached at "
                f"{leader.address}{f' ({failure})' if failure else ''}: correct its --peer-listen, "
                "the secret, or the network"
            )
        if self._refusal is not None:
            raise self._refusal
        raise CannotOpen("No node became the home of the tables")

    async def run(self) -> None:
        """Renew the membership, keep the link, and be the leader if there is no other."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.membership.run)
            group.start_soon(self.membership.keep_claims)
            group.start_soon(self._links.keep, group)
            group.start_soon(self._note_readiness)
            async with anyio.create_task_group() as roles:
                if self._keeper is not None:
                    roles.start_soon(self._keeper.run)
                roles.start_soon(self._take_turns_as_leader)
            # Requests of this node's clients are forwarded until the server has answered them all.
            await self._end.wait()
            group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await self.membership.leave()

    def hand_over(self) -> None:
        """Let another node be the leader, if there is another one, before this node ends."""
        if self.membership.has_successor:
            self.membership.is_leaving = True
            self._changes.notify()

    def end(self) -> None:
        """End ``run``, after the requests in flight."""
        self.membership.is_leaving = True
        self._changes.notify()
        self._end.set()

    # -- the leader -------------------------------------------------------------------------

    async def _take_turns_as_leader(self) -> None:
        while not self.membership.is_leaving:
            if not await self._may_become_leader():
                await self._changes.wait(MOVE_SECONDS if self._lacks_leader() else BEAT_SECONDS)
                continue
            try:
                await self._be_leader()
            except InUse as error:
                self._refusal = error
            except StoreError as error:
                self._refusal = error
                self._changes.notify()
                _log.error("home_not_opened", reason=str(error))
                await anyio.sleep(BEAT_SECONDS)

    def _lacks_leader(self) -> bool:
        """Whether no other node is the leader, as far as this one knows."""
        if self.membership.beat is None:
            return False
        leader = self.membership.leader
        # A leader whose clock is as wrong as this one's remains the leader.
        if leader is None or (leader.is_leaving and not self.membership.has_wrong_clock):
            return True
        if self.membership.still_beats(leader) >= SUSPECT_BEATS:
            return True
        link = self.link
        if link is None or link.address != leader.address:
            return False
        return bool(link.failure) or link.is_refused

    async def _may_become_leader(self) -> bool:
        if not self._lacks_leader():
            return False
        # A wrong clock is better than no leader.
        if self.membership.has_wrong_clock and self.membership.has_successor:
            return False
        try:
            is_owned = await self.membership.is_owned()
            if is_owned:
                # Another node may have just become the leader.
                await self.membership.renew()
                self._refusal = self._refusal or InUse(
                    "The database is in use by a server without --peer-listen: stop that server"
                )
        except Unavailable:
            return False
        return not is_owned

    async def _be_leader(self) -> None:
        """Be the leader until this node leaves, or another server has taken over.

        Raises:
            InUse: another node was faster.
            StoreError: the data can't be opened.
        """
        is_lost = False

        def lose() -> None:
            nonlocal is_lost
            is_lost = True
            self._changes.notify()

        async with AsyncExitStack() as stack:
            self._is_opening = True
            try:
                leader = await stack.enter_async_context(self._opening(lose))
            finally:
                self._is_opening = False
            if self.membership.is_leaving:
                return
            async with anyio.create_task_group() as group:
                self._begin_as_leader(leader)
                group.start_soon(self._spreader.run)
                group.start_soon(self._watch_rates)
                try:
                    await self._stay_leader(leader, lose, lambda: is_lost)
                finally:
                    group.cancel_scope.cancel()
                    self.leadership = None
                    self._leader.tables = None
                    self.membership.epoch = 0
            await self._leader.protocol.wait_idle(0 if is_lost else self._drain_seconds)
        _log.info("ownership_released", node=self.membership.me.name, is_lost=is_lost)

    def _begin_as_leader(self, leader: OpenLeader) -> None:
        self.membership.epoch = leader.epoch
        self.leadership = leader
        self._times_leader += 1
        self._refusal = None
        # The admin port shows this database.
        self._protocol.use(leader.databases)
        self._leader.protocol.use(leader.databases)
        self._leader.tables = leader.databases.main
        self._spreader.begin(leader.databases.main, leader.store)
        self._changes.notify()
        _log.info("ownership_acquired", node=self.membership.me.name, epoch=leader.epoch)

    async def _stay_leader(
        self, leader: OpenLeader, lose: Callable[[], None], is_lost: Callable[[], bool]
    ) -> None:
        membership = self.membership
        with suppress(Unavailable):
            await membership.renew()
        # If all clocks are wrong, the leader remains, because there is no better one.
        while not (is_lost() or (membership.is_yielding and self._may_yield())):
            await self._changes.wait(BEAT_SECONDS)
            # A renewal shows this before the store does.
            if membership.owned_epoch > leader.epoch:
                lose()
        if membership.is_yielding:
            with suppress(Unavailable):
                await membership.renew()

    def _may_yield(self) -> bool:
        return self.membership.is_leaving or self.membership.has_successor

    async def _watch_rates(self) -> None:
        """Ask all nodes for the requests per second of their tables."""
        reports: dict[str, dict[str, float]] = {}
        while True:
            # A node that does not answer executes ever fewer requests, as far as the leader knows.
            reports = {address: faded(rates, _RATES_SECONDS) for address, rates in reports.items()}
            with anyio.move_on_after(BEAT_SECONDS):
                async with anyio.create_task_group() as group:
                    for link in self._links.all:
                        group.start_soon(_ask_rates, link, reports)
            total: defaultdict[str, float] = defaultdict(float)
            for rates in (self._rates.read(), *reports.values()):
                for name, rate in rates.items():
                    total[name] += rate
            self._spreader.rates = total
            await anyio.sleep(_RATES_SECONDS)

    async def _note_readiness(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if self.is_ready:
                self._ready_at = loop.time()
            await self._changes.wait(BEAT_SECONDS)


async def _ask_rates(link: NodeLink, reports: dict[str, dict[str, float]]) -> None:
    with suppress(NotSent, AnswerLost, MsgspecError):
        answer = await link.ask(AskRequestRates())
        reports[link.address] = json.decode(answer.body, type=dict[str, float])


@asynccontextmanager
async def running_node(node: Node) -> AsyncIterator[Node]:
    """A node that serves within the context.

    Raises:
        CannotOpen: there is no leader, and this node can't become the leader.
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
