"""Keeps the share of this node: the tables whose claims name it.

The leader gives tables by claims, and recalls them. A node that leaves gives all its tables back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Final, NamedTuple, Protocol, TypeAlias

import anyio
import structlog

from dynactor.actors.catalog.homes import MoveTables, TakeTables
from dynactor.actors.database.databases import Databases
from dynactor.api.nodes.changes import Changes
from dynactor.api.nodes.membership import BEAT_SECONDS, Membership
from dynactor.api.nodes.runner import Runner
from dynactor.model.errors import DynamoDBError
from dynactor.model.pauses import MOVE_SECONDS
from dynactor.storage.store import StoreError, Unavailable
from dynactor.storage.store_figures import StoreFigures

# A node that leaves tries to give its tables back for that time. It waits for requests in flight,
# and for the end of doubts about commits.
_LEAVE_SECONDS: Final = 5.0
# Requests in flight keep a table at its home for that time; then the home tries again later.
_DRAIN_SECONDS: Final = 4.0
_LINGER_SECONDS: Final = 0.1

_log = structlog.get_logger("nodes")


class ShareStore(Protocol):
    """The store of a share, or of the leader."""

    @property
    def is_in_doubt(self) -> bool:
        """Whether a commit of unknown outcome may still be written, so no table may move."""
        ...

    def figures(self) -> StoreFigures:
        """The figures for the metrics."""
        ...


class OpenShare(NamedTuple):
    """The store and the database of a node's share."""

    store: ShareStore
    epoch: int
    databases: Databases


# Opens a share; the argument is called if the leader has taken the tables.
OpeningShare: TypeAlias = Callable[[Callable[[], None]], AbstractAsyncContextManager[OpenShare]]


class ShareKeeper:
    """Opens and closes the tables of this node's share, as the claims say."""

    def __init__(
        self,
        membership: Membership,
        changes: Changes,
        runner: Runner,
        opening: OpeningShare,
        gave: Callable[[], Awaitable[None]],
    ) -> None:
        """``gave`` tells the other nodes that tables were given back to the leader."""
        self.runner = runner
        self._gave = gave
        self._membership = membership
        self._changes = changes
        self._opening = opening
        self.share: OpenShare | None = None

    async def run(self) -> None:
        """Keep a share until this node leaves."""
        membership = self._membership
        while not membership.is_leaving:
            beat = membership.beat
            if beat is None or beat.leader is None or membership.has_wrong_clock:
                await self._changes.wait(BEAT_SECONDS)
                continue
            try:
                await self._keep()
            except (StoreError, DynamoDBError) as error:
                _log.warning("share_abandoned", reason=str(error))
                await anyio.sleep(BEAT_SECONDS)

    async def _keep(self) -> None:
        membership, runner = self._membership, self.runner
        is_lost = False

        def lose() -> None:
            nonlocal is_lost
            is_lost = True
            self._changes.notify()

        async with self._opening(lose) as share:
            tables = share.databases.main
            runner.protocol.use(share.databases)
            runner.tables = tables
            tables.guard_moves(self)
            self.share = share
            membership.share = share.epoch
            _log.info("share_opened", node=membership.me.name, epoch=share.epoch)
            try:
                while not is_lost and not membership.is_yielding:
                    await self._follow_claims(share)
                    await self._changes.wait(BEAT_SECONDS)
                    # A renewal shows this before the store does.
                    if membership.ended_share == share.epoch:
                        lose()
                if not is_lost:
                    await self._leave(share)
            finally:
                runner.tables = self.share = None
                membership.share = 0
                self._changes.notify()
        _log.info("share_closed", node=membership.me.name, is_lost=is_lost)

    async def _follow_claims(self, share: OpenShare) -> None:
        claims = self._membership.claims
        tables = share.databases.main
        own = [name for name, claim in claims.items() if claim.epoch == share.epoch]
        taken = [name for name in own if not claims[name].is_recalled and not tables.runs(name)]
        if taken:
            await tables.ask(TakeTables(tuple(taken)))
            self._changes.notify()
        recalled = [name for name in own if claims[name].is_recalled]
        if recalled:
            await self._give(share, recalled)

    async def _leave(self, share: OpenShare) -> None:
        with suppress(Unavailable):
            # The leader may have just given tables to this node.
            await self._membership.load_claims()
        claims = self._membership.claims
        own = {name for name, claim in claims.items() if claim.epoch == share.epoch}
        tables = share.databases.main
        own.update(name for name in tables.table_names() if tables.runs(name))
        if not own:
            return
        with anyio.move_on_after(_LEAVE_SECONDS):
            await self._give(share, sorted(own))
            while own := {name for name in own if tables.runs(name)}:
                await self._changes.wait(MOVE_SECONDS)
                await self._give(share, sorted(own))
        # Refuse the requests that other nodes sent before they had read the claims.
        await anyio.sleep(_LINGER_SECONDS)

    async def _give(self, share: OpenShare, names: Sequence[str]) -> None:
        """Give tables back to the leader, unless requests to them take too long."""
        # In one message, because one request may wait for all of them.
        await share.databases.main.ask(MoveTables(tuple(names)))
        await self._membership.load_claims()
        await self._gave()

    def may_give(self, epoch: int) -> bool:
        """Whether the leader may take tables; a late commit could follow those of the leader."""
        del epoch
        return self.share is not None and not self.share.store.is_in_doubt

    def holding(self, names: Collection[str]) -> AbstractAsyncContextManager[bool]:
        """Hold back the requests to these tables; False if earlier ones do not end soon."""
        return self.runner.holding(names, _DRAIN_SECONDS)

    def opened(self) -> None:
        """Let the requests go on that wait for a table that was just opened."""
        self._changes.notify()
