"""Spreads the tables over the nodes; only the leader does this.

The leader takes the tables of nodes that ended, gives tables to nodes that have fewer, and recalls
tables that one request needs at one home.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

import structlog

from dynactor.actors.catalog.homes import (
    CloseTables,
    GiveTables,
    GroupTables,
    HomeChange,
    RecallTables,
    TakeTables,
)
from dynactor.api.nodes.changes import Changes
from dynactor.api.nodes.membership import BEAT_SECONDS, Membership
from dynactor.api.nodes.runner import Runner, SharedTables
from dynactor.api.nodes.share_keeper import DRAIN_SECONDS, ShareStore
from dynactor.model.errors import DynamoDBError
from dynactor.model.members import Member
from dynactor.storage.store import StoreError

# Number of renewals without a new beat after which the leader asks PostgreSQL about a node, and
# after which another node may become the leader.
SUSPECT_BEATS: Final = 2
_AGAIN_SECONDS: Final = 0.1
# A table that a request needs at the leader stays there for that time.
_PINNED_SECONDS: Final = 10.0
# Each move closes a table for a moment.
_MOST_TABLES_AT_ONCE: Final = 50

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
        # Tables that waiting requests need at the leader, and tables that were used together.
        self._wanted: set[str] = set()
        self._together: set[frozenset[str]] = set()
        # Shares that were fenced. A member shows its new share only after its next beat.
        self._fenced: set[int] = set()
        # By name: until when a table stays at the leader, by the event loop's clock.
        self._pinned: dict[str, float] = {}

    def gather(self, names: Iterable[str]) -> None:
        """Recall tables, because a request needs them at the leader."""
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

    def begin(self, tables: SharedTables) -> None:
        """Use the database of the leader, which was just opened."""
        self._tables = tables

    async def run(self, store: LeaderStore) -> None:
        """Spread the tables until the task is canceled."""
        while True:
            is_urgent = False
            try:
                is_urgent = await self.step(store)
            except (StoreError, DynamoDBError) as error:
                _log.warning("spreading_delayed", reason=str(error))
            await self._changes.wait(_AGAIN_SECONDS if is_urgent else BEAT_SECONDS)

    async def step(self, store: LeaderStore) -> bool:
        """Move tables once; return whether to look again soon."""
        is_urgent = await self._take_ended(store)
        is_urgent |= await self._take_returned()
        is_urgent |= await self._recall_wanted()
        await self._group()
        if not store.is_in_doubt:
            await self._balance(store)
        return is_urgent

    # -- ended nodes, and those that are cut off ------------------------------------------------

    async def _take_ended(self, store: LeaderStore) -> bool:
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
            if await store.fence(epoch, only_ended=not is_out):
                self._fenced.add(epoch)
                await self._change(TakeTables(tuple(names), frozenset((epoch,))))
                await self._claims_changed()
                _log.info("share_ended", tables=len(names), share=epoch)
        return is_suspect

    def _is_suspect(self, member: Member) -> bool:
        membership = self._membership
        if member.name == membership.me.name:
            return member.share != membership.share
        return self._links.has_failed(member) or membership.still_beats(member) >= SUSPECT_BEATS

    async def _take_returned(self) -> bool:
        """Open the tables that other nodes have given back."""
        claims = self._membership.claims
        returned = [name for name in self._tables.tables_elsewhere if name not in claims]
        if returned:
            # The claims may be out of date, so the database reads them again.
            await self._change(TakeTables(tuple(returned)))
        return False

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
        of_these = {groups[name] for name in names if name in groups}
        return {*names, *(name for name, group in groups.items() if group in of_these)}

    # -- balance --------------------------------------------------------------------------------

    async def _balance(self, store: LeaderStore) -> None:
        """Give tables to the nodes with the fewest, and recall a group from the one with most."""
        by_share = self._by_share()
        # The leader runs all its tables in one database.
        await self._recall(by_share.get(self._membership.share, ())[:_MOST_TABLES_AT_ONCE])
        loads = {
            member.share: len(by_share.get(member.share, ()))
            for member in self._members()
            if self._may_take(member)
        }
        if not loads:
            return
        load = sum(map(self._tables.runs, self._tables.table_names()))
        given: dict[int, list[str]] = {}
        count = 0
        # Each second, usually nothing has to move.
        units = self._movable_units() if load - min(loads.values()) > 1 else ()
        for unit in units:
            fewest = min(loads, key=lambda share: (loads[share], share))
            if load - loads[fewest] <= len(unit) or count >= _MOST_TABLES_AT_ONCE:
                continue
            given.setdefault(fewest, []).extend(unit)
            count += len(unit)
            load -= len(unit)
            loads[fewest] += len(unit)
        for share, names in given.items():
            await self._give(store, names, share)
        if not given:
            await self._level(loads, load)

    async def _level(self, loads: Mapping[int, int], load: int) -> None:
        """Recall the smallest group of the node with most tables, if another node has too few."""
        most = max(loads, key=lambda share: (loads[share], share))
        fewest = min(load, *loads.values())
        if loads[most] - fewest <= 1:
            return
        claims = self._membership.claims
        if any(claim.is_recalled for claim in claims.values()):
            return
        groups = self._tables.table_groups
        units: dict[str, list[str]] = {}
        for name, claim in claims.items():
            if claim.epoch == most:
                units.setdefault(groups.get(name, name), []).append(name)
        if units:
            smallest = min(units.values(), key=lambda names: (len(names), names))
            if loads[most] - fewest > len(smallest):
                await self._recall(smallest)

    def _movable_units(self) -> Sequence[Sequence[str]]:
        """The groups of tables that may leave the leader now, the largest first."""
        now = asyncio.get_running_loop().time()
        self._pinned = {name: until for name, until in self._pinned.items() if until > now}
        groups = self._tables.table_groups
        movable = set(self._tables.movable_tables()) - self._pinned.keys()
        units: dict[str, list[str]] = {}
        for name in self._tables.table_names():
            units.setdefault(groups.get(name, name), []).append(name)
        whole = [names for names in units.values() if movable.issuperset(names)]
        return sorted(whole, key=lambda names: (-len(names), names))

    def _may_take(self, member: Member) -> bool:
        return (
            member.share > 0
            and member.share not in self._fenced
            and member.name != self._membership.me.name
            and not member.is_leaving
            and self._links.is_connected(member)
            and self._membership.still_beats(member) < SUSPECT_BEATS
        )

    async def _give(self, store: LeaderStore, names: Sequence[str], share: int) -> None:
        with self._runner.holding(names):
            if not await self._runner.drained(names, DRAIN_SECONDS):
                return
            try:
                await self._change(CloseTables(tuple(names)))
                # A late commit could follow those of the next home.
                if not store.is_in_doubt:
                    await self._change(GiveTables(tuple(names), share))
            except DynamoDBError as error:
                _log.warning("move_delayed", reason=str(error))
            # Open again what was not given.
            await self._change(TakeTables(tuple(names)))
        await self._claims_changed({share})

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
        await self._tables.change_homes(change)
        self._changes.notify()

    async def _claims_changed(self, shares: Collection[int] = ()) -> None:
        await self._membership.load_claims()
        self._links.tell_of_claims(shares)
