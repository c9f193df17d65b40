"""Spreads the tables over the nodes; only the leader does this.

The leader takes the tables of nodes that ended, gives tables to nodes that have fewer, and recalls
tables that one request needs at one home.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final, Protocol

import anyio
import structlog
from anyio.abc import TaskGroup

from dynactor.actors.catalog.homes import (
    GroupTables,
    HomeChange,
    MoveTables,
    RecallTables,
    TakeTables,
)
from dynactor.api.nodes.balance import (
    Move,
    Unevenness,
    Unit,
    given,
    next_move,
    total_rate,
    unevenness,
)
from dynactor.api.nodes.changes import Changes
from dynactor.api.nodes.membership import BEAT_SECONDS, Membership
from dynactor.api.nodes.runner import Runner, SharedTables
from dynactor.api.nodes.share_keeper import ShareStore
from dynactor.model.errors import DynamoDBError
from dynactor.model.members import Member
from dynactor.model.pauses import MOVE_SECONDS
from dynactor.storage.store import StoreError

# Number of renewals without a new beat after which the leader asks PostgreSQL about a node, and
# after which another node may become the leader.
SUSPECT_BEATS: Final = 2
# Requests in flight keep a table at the leader for that time; then it tries again later. Changes of
# tables wait meanwhile, and so may a request to the table itself.
_DRAIN_SECONDS: Final = 0.5
# A table that a request needs at the leader stays there for that time.
_PINNED_SECONDS: Final = 10.0
# Each move closes a table for a moment.
_MOST_TABLES_AT_ONCE: Final = 50
# Loads differ for that time before tables move because of a slight difference.
_SLIGHT_SECONDS: Final = 10.0
# The pause between two moves from one node to another.
_LEVEL_SECONDS: Final = 5.0
# The leader among the shares.
_LEADER: Final = 0

_log = structlog.get_logger("nodes")


class LeaderStore(ShareStore, Protocol):
    """The store of the leader."""

    async def fence(self, share: int, *, only_ended: bool) -> bool:
        """Refuse all later commits and reads of a share; return whether they are refused."""
        ...


class NodeLinks(Protocol):
    """The connections to the other nodes."""

    def is_connected(self, member: Member) -> bool:
        """Whether a member can be reached."""
        ...

    def has_failed(self, member: Member) -> bool:
        """Whether the connection to a member has ended."""
        ...

    def is_cut_off(self, member: Member) -> bool:
        """Whether a member renews its beat, but can't be reached for some time."""
        ...

    def tell_of_claims(self, shares: Collection[int]) -> None:
        """Tell the nodes with these shares that claims have changed."""
        ...


class Spreader:
    """Decides on the homes of all tables while this node is the leader."""

    def __init__(
        self, membership: Membership, changes: Changes, runner: Runner, links: NodeLinks
    ) -> None:
        self._membership = membership
        self._changes = changes
        self._runner = runner
        self._links = links
        self._tables: SharedTables
        self._store: LeaderStore
        # Tables that waiting requests need at the leader, and tables that were used together.
        self._wanted: set[str] = set()
        self._together: set[frozenset[str]] = set()
        # Shares that were fenced. A member shows its new share only after its next beat.
        self._fenced: set[int] = set()
        # The shares whose tables are being taken, and whether their nodes are out for sure.
        self._taking: set[tuple[int, bool]] = set()
        # By name: until when a table stays at the leader, by the event loop's clock.
        self._pinned: dict[str, float] = {}
        # The requests per second of tables, at all nodes.
        self.rates: Mapping[str, float] = {}
        # The shares that tables were recalled for.
        self._destined: dict[str, int] = {}
        # Since when the nodes have different loads, and when to look for moves between other nodes
        # again, by the event loop's clock.
        self._uneven_since: float | None = None
        self._level_again_at = 0.0

    def gather(self, names: Collection[str]) -> None:
        """Recall tables, because a request needs them all at the leader."""
        until = asyncio.get_running_loop().time() + _PINNED_SECONDS
        self._pinned.update(dict.fromkeys(names, until))
        elsewhere = self._tables.tables_elsewhere
        wanted = {name for name in names if name in elsewhere} - self._wanted
        # A request asks again each time that it is woken.
        if wanted:
            self._wanted |= wanted
            self._changes.notify()

    def note_together(self, names: Collection[str]) -> None:
        """Note that one request uses these tables, so they get one home if they exist."""
        groups = self._tables.table_groups
        first, *others = (groups.get(name) for name in names)
        is_new = first is None or any(other != first for other in others)
        if is_new and all(map(self._tables.runs, names)):
            self._together.add(frozenset(names))

    def begin(self, tables: SharedTables, store: LeaderStore) -> None:
        """Use the database of the leader, which was just opened."""
        self._tables, self._store = tables, store
        self._destined = {}
        tables.guard_moves(self)

    async def run(self) -> None:
        """Spread the tables until the task is canceled.

        Tables without a home do not wait for moves of other tables. Tables that were given back do
        not wait for answers about nodes that may have ended.
        """
        async with anyio.create_task_group() as group:
            group.start_soon(self._repeat, partial(self._take_ended, group))
            group.start_soon(self._repeat, self._gather_step)
            group.start_soon(self._repeat, self._balance_step)

    async def _repeat(self, step: Callable[[], Awaitable[bool]]) -> None:
        while True:
            is_urgent = False
            try:
                is_urgent = await step()
            except (StoreError, DynamoDBError) as error:
                _log.warning("spreading_delayed", reason=str(error))
            await self._changes.wait(MOVE_SECONDS if is_urgent else BEAT_SECONDS)

    async def _gather_step(self) -> bool:
        """Take what was given back and recall tables once; return whether to look again soon."""
        await self._take_returned()
        return await self._recall_wanted()

    async def _balance_step(self) -> bool:
        """Give tables away once."""
        await self._group()
        if not self._store.is_in_doubt:
            await self._balance()
        return False

    # -- ended nodes, and those that are cut off ------------------------------------------------

    async def _take_ended(self, tasks: TaskGroup) -> bool:
        """Take the tables of nodes that have ended or are cut off from this one.

        Return whether another node may have ended.
        """
        is_suspect = False
        for epoch, names in self._by_share().items():
            member = self._member(epoch)
            # A member that joined again has another share.
            is_out = member is None
            if member is not None:
                if not self._is_suspect(member):
                    continue
                is_suspect = True
                is_out = self._links.is_cut_off(member)
            if (epoch, is_out) not in self._taking:
                self._taking.add((epoch, is_out))
                tasks.start_soon(self._take_share, epoch, names, is_out)
        return is_suspect

    async def _take_share(self, epoch: int, names: Sequence[str], is_out: bool) -> None:
        """Take the tables of a share if it has ended, or if its node is out."""
        try:
            if await self._store.fence(epoch, only_ended=not is_out):
                self._fenced.add(epoch)
                await self._change(TakeTables(tuple(names), frozenset((epoch,))))
                await self._claims_changed()
                _log.info("share_ended", tables=len(names), share=epoch)
        except (StoreError, DynamoDBError) as error:
            _log.warning("spreading_delayed", reason=str(error))
        finally:
            self._taking.discard((epoch, is_out))

    def _is_suspect(self, member: Member) -> bool:
        membership = self._membership
        if member.name == membership.me.name:
            return member.share != membership.share
        return self._links.has_failed(member) or membership.still_beats(member) >= SUSPECT_BEATS

    async def _take_returned(self) -> None:
        """Open the tables that other nodes have given back."""
        claims = self._membership.claims
        returned = [
            name
            for name in self._tables.tables_elsewhere
            # A held table is about to move from here.
            if name not in claims and not self._runner.holds((name,))
        ]
        if returned:
            # The claims may be out of date, so the database reads them again.
            await self._change(TakeTables(tuple(returned)))

    # -- requests that need several tables ------------------------------------------------------

    async def _recall_wanted(self) -> bool:
        """Recall the tables that requests wait for; return whether any are not back yet."""
        # Keep the others, so that a request that is woken does not ask again.
        self._wanted.intersection_update(self._tables.tables_elsewhere)
        if not self._wanted:
            return False
        wanted = self._with_groups(self._wanted)
        until = asyncio.get_running_loop().time() + _PINNED_SECONDS
        self._pinned.update(dict.fromkeys(wanted, until))
        await self._recall(sorted(wanted))
        return not wanted.isdisjoint(self._tables.tables_elsewhere)

    async def _recall(self, names: Iterable[str]) -> None:
        claims = self._membership.claims
        recalled = [name for name in names if name in claims and not claims[name].is_recalled]
        if recalled:
            shares = {claims[name].epoch for name in recalled}
            await self._change(RecallTables(tuple(recalled)))
            await self._claims_changed(shares)

    async def _group(self) -> None:
        together, self._together = self._together, set()
        for names in sorted(map(sorted, together)):
            await self._change(GroupTables(tuple(names)))

    def _with_groups(self, names: Iterable[str]) -> set[str]:
        groups = self._tables.table_groups
        present_groups = {groups[name] for name in names if name in groups}
        return {*names, *(name for name, group in groups.items() if group in present_groups)}

    # -- balance --------------------------------------------------------------------------------

    async def _balance(self) -> None:
        """Give tables to the nodes with the least load, or recall some from a busier one."""
        by_share = self._by_share()
        # The leader runs all its tables in one database.
        await self._recall(by_share.get(self._membership.share, ())[:_MOST_TABLES_AT_ONCE])
        shares = [member.share for member in self._members() if self._may_take(member)]
        if not shares:
            return
        at_leader = filter(self._tables.runs, self._tables.table_names())
        weights = {share: total_rate(by_share.get(share, ()), self.rates) for share in shares}
        weights[_LEADER] = total_rate(at_leader, self.rates)
        moves = self._returned_moves(shares)
        if not moves and self._is_due(weights):
            moves = given(self._movable_units(), _LEADER, weights, _MOST_TABLES_AT_ONCE)
            if not moves:
                await self._level({share: by_share.get(share, ()) for share in shares}, weights)
        if moves:
            self._uneven_since = None
        give_until = asyncio.get_running_loop().time() + BEAT_SECONDS
        for move in moves:
            # Look again soon for nodes that have ended, and for tables that requests need.
            if asyncio.get_running_loop().time() < give_until and self._pinned.keys().isdisjoint(
                move.names
            ):
                await self._give(move.names, move.target)

    def _is_due(self, weights: Mapping[int, float]) -> bool:
        """Whether to look for tables to move: each second, usually nothing has to move."""
        found, now = unevenness(weights.values()), asyncio.get_running_loop().time()
        if found is Unevenness.NONE:
            self._uneven_since = None
            return False
        if self._uneven_since is None:
            self._uneven_since = now
        is_lasting = now >= self._uneven_since + _SLIGHT_SECONDS
        return (found is Unevenness.GREAT or is_lasting) and now >= self._level_again_at

    def _returned_moves(self, shares: Collection[int]) -> list[Move]:
        """The moves to other nodes of tables that were recalled for them, and are here now."""
        elsewhere = self._tables.tables_elsewhere
        self._destined = {
            name: share
            for name, share in self._destined.items()
            if share in shares and (name in elsewhere or self._tables.runs(name))
        }
        back = self._destined.keys() - elsewhere
        moves = []
        for unit in self._movable_units() if back else ():
            targets = {self._destined.get(name) for name in unit.names}
            if len(targets) == 1 and (target := targets.pop()) is not None:
                moves.append(Move(unit.names, _LEADER, target))
        for name in back:
            del self._destined[name]
        return moves

    async def _level(
        self, by_share: Mapping[int, Sequence[str]], weights: Mapping[int, float]
    ) -> None:
        """Recall tables from a node with more load than another one."""
        self._level_again_at = asyncio.get_running_loop().time() + _LEVEL_SECONDS
        if any(claim.is_recalled for claim in self._membership.claims.values()):
            return
        units = {share: self._units(names) for share, names in by_share.items()}
        move = next_move(units, weights, _MOST_TABLES_AT_ONCE)
        if move is None:
            return
        if move.target != _LEADER:
            self._destined.update(dict.fromkeys(move.names, move.target))
        await self._recall(move.names)

    def _movable_units(self) -> Sequence[Unit]:
        """The groups of tables that may leave the leader now."""
        now = asyncio.get_running_loop().time()
        self._pinned = {name: until for name, until in self._pinned.items() if until > now}
        movable = set(self._tables.movable_tables()) - self._pinned.keys()
        units = self._units(self._tables.table_names())
        return [unit for unit in units if movable.issuperset(unit.names)]

    def _units(self, names: Iterable[str]) -> Sequence[Unit]:
        """These tables by their groups."""
        groups = self._tables.table_groups
        units: dict[str, list[str]] = {}
        for name in names:
            units.setdefault(groups.get(name, name), []).append(name)
        return [Unit(tuple(each), total_rate(each, self.rates)) for each in units.values()]

    def _may_take(self, member: Member) -> bool:
        return (
            member.share > 0
            and member.share not in self._fenced
            and member.name != self._membership.me.name
            and not member.is_leaving
            and self._links.is_connected(member)
            and self._membership.still_beats(member) < SUSPECT_BEATS
        )

    async def _give(self, names: tuple[str, ...], share: int) -> None:
        try:
            await self._change(MoveTables(names, share))
        except DynamoDBError as error:
            _log.warning("move_delayed", reason=str(error))
            # Open again what was not given.
            await self._change(TakeTables(names))
        await self._claims_changed({share})

    def may_give(self, epoch: int) -> bool:
        """Whether a node can take tables now; a late commit could follow those of the node."""
        member = self._member(epoch)
        return member is not None and self._may_take(member) and not self._store.is_in_doubt

    def holding(self, names: Collection[str]) -> AbstractAsyncContextManager[bool]:
        """Hold back the requests to these tables; False if earlier ones do not end soon."""
        return self._runner.holding(names, _DRAIN_SECONDS)

    def opened(self) -> None:
        """Let the requests go on that wait for a table that was just opened."""
        self._changes.notify()

    # -- parts ----------------------------------------------------------------------------------

    def _members(self) -> Sequence[Member]:
        beat = self._membership.beat
        return () if beat is None else beat.members

    def _member(self, share: int) -> Member | None:
        return next((each for each in self._members() if each.share == share), None)

    def _by_share(self) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for name, claim in sorted(self._membership.claims.items()):
            found.setdefault(claim.epoch, []).append(name)
        return found

    async def _change(self, change: HomeChange) -> None:
        await self._tables.ask(change)
        self._changes.notify()

    async def _claims_changed(self, shares: Collection[int] = ()) -> None:
        await self._membership.load_claims()
        self._links.tell_of_claims(shares)
