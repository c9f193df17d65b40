"""The membership of this node: it renews its row each second, and removes members that failed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final, Protocol

import anyio
import structlog

from dynactor.api.nodes.changes import Changes
from dynactor.model.members import (
    STILL_BEATS,
    WRONG_CLOCK_SECONDS,
    Beat,
    Claim,
    Claims,
    Member,
    Observer,
)
from dynactor.storage.store import CannotOpen, Unavailable

BEAT_SECONDS: Final = 1.0
# A wrong clock is right again at this difference.
_RIGHT_CLOCK_SECONDS: Final = 0.9
# The pause after each reading of the claims that was asked for.
_CLAIMS_SECONDS: Final = 0.02
# A member with the same name at another address may have just been killed.
_JOIN_BEATS: Final = STILL_BEATS + 3

_log = structlog.get_logger("nodes")


class MemberTable(Protocol):
    """The port to the members. All methods but ``leave`` raise ``Unavailable``."""

    @property
    def me(self) -> Member:
        """This node, as it joined last."""
        ...

    async def join(self) -> bool:
        """Write this node's row; return whether there is no other node with its name."""
        ...

    async def beat(self, epoch: int, share: int, *, is_leaving: bool) -> Beat:
        """Renew this node's row, and return all members."""
        ...

    async def claims(self) -> Claims:
        """All claims, and their version."""
        ...

    async def remove(self, member: Member) -> bool:
        """Remove a member, unless it has renewed its row; return whether it was removed.

        If it was the leader, it no longer owns the data.
        """
        ...

    async def is_owned(self) -> bool:
        """Whether any server holds the lock of the owner."""
        ...

    async def leave(self) -> None:
        """Delete this node's row."""
        ...


class Membership:
    """The members, as of the last renewal; ``beat`` is None before the first one.

    ``epoch`` is the one with which this node became the leader, and 0 if it is not the leader.
    ``share`` is the epoch of this node's share, and 0 if it takes no tables. ``claims`` may be out
    of date.
    """

    def __init__(self, table: MemberTable, changes: Changes) -> None:
        self._table = table
        self._changes = changes
        self._observer = Observer()
        self.beat: Beat | None = None
        self.epoch = 0
        self.share = 0
        # The share that ended last, as far as renewals have shown.
        self.ended_share = 0
        self.claims: Mapping[str, Claim] = {}
        self._claims_version = 0
        self._asked_for_claims = anyio.Event()
        self.is_leaving = False
        # The difference of this node's clock from PostgreSQL's, and whether it is too large.
        self.ahead_seconds = 0.0
        self.has_wrong_clock = False
        self._has_joined = False

    @property
    def me(self) -> Member:
        """This node."""
        return self._table.me

    @property
    def leader(self) -> Member | None:
        """The leader, if another member is the leader."""
        leader = None if self.beat is None else self.beat.leader
        return None if leader is None or leader.name == self.me.name else leader

    @property
    def owned_epoch(self) -> int:
        """The number of the present ownership of the database."""
        return 0 if self.beat is None else self.beat.owned_epoch

    @property
    def is_yielding(self) -> bool:
        """Whether this node gives its tables away: it leaves, or its clock is wrong."""
        return self.is_leaving or self.has_wrong_clock

    @property
    def has_successor(self) -> bool:
        """Whether another member could become the leader now."""
        members = () if self.beat is None else self.beat.members
        return any(
            member.name != self.me.name and not member.is_leaving and not self.still_beats(member)
            for member in members
        )

    def still_beats(self, member: Member) -> int:
        """Number of renewals for which a member's beat has stood still."""
        return self._observer.still_beats(member)

    async def is_owned(self) -> bool:
        """Whether any server owns the data.

        Raises:
            Unavailable: PostgreSQL can't be reached.
        """
        return await self._table.is_owned()

    async def join(self) -> None:
        """Become a member.

        Raises:
            CannotOpen: another node has this name.
            Unavailable: PostgreSQL can't be reached.
        """
        for _ in range(_JOIN_BEATS):
            if await self._table.join():
                self._has_joined = True
                await self.renew()
                return
            # The owner of the name has failed if its beat stands still.
            await self.renew(is_regular=True)
            await anyio.sleep(BEAT_SECONDS)
        raise CannotOpen(
            f"Another node has the name {self.me.name}: start this one with another --node-name"
        )

    async def run(self) -> None:
        """Renew each second until the task is canceled."""
        while True:
            try:
                await self.renew(is_regular=True)
            except Unavailable as error:
                _log.debug("beat_failed", error=str(error))
            await anyio.sleep(BEAT_SECONDS)

    async def renew(self, *, is_regular: bool = False) -> None:
        """Renew this node's row, and remove the members that have failed.

        A renewal between the regular ones shows changes sooner.

        Raises:
            Unavailable: PostgreSQL can't be reached.
        """
        share = self.share
        beat = await self._table.beat(self.epoch, share, is_leaving=self.is_yielding)
        self._note_clock(beat.ahead_seconds)
        if share and beat.share_epoch > share:
            self.ended_share = share
        if beat.claims_version != self._claims_version:
            await self.load_claims()
        self._observer.observe(beat.members, is_regular=is_regular)
        is_rejoining = self._has_joined and not beat.is_member and not self.is_leaving
        self.beat = beat
        if is_rejoining:
            _log.warning("node_rejoined", reason="other nodes had removed this one")
            await self._table.join()
        for member in beat.members:
            if self._observer.has_failed(member) and member.incarnation != self.me.incarnation:
                await self._remove(member)
        self._changes.notify()

    def _note_clock(self, ahead_seconds: float | None) -> None:
        if ahead_seconds is None:
            return
        self.ahead_seconds = ahead_seconds
        # A clock near the limit must not let tables move each second.
        most_seconds = _RIGHT_CLOCK_SECONDS if self.has_wrong_clock else WRONG_CLOCK_SECONDS
        is_wrong = abs(ahead_seconds) > most_seconds
        if is_wrong != self.has_wrong_clock:
            self.has_wrong_clock = is_wrong
            shown = round(ahead_seconds, 3)
            if is_wrong:
                _log.warning(
                    "clock_deviation_noticed",
                    ahead_seconds=shown,
                    advice="synchronize it with NTP",
                )
            else:
                _log.info("clock_deviation_ended", ahead_seconds=shown)

    async def load_claims(self) -> None:
        """Read the claims.

        Raises:
            Unavailable: PostgreSQL can't be reached.
        """
        claims = await self._table.claims()
        if claims.version > self._claims_version:
            self._claims_version, self.claims = claims.version, claims.by_table
            self._changes.notify()

    def ask_for_claims(self) -> None:
        """Read the claims soon, because they are out of date."""
        self._asked_for_claims.set()

    async def keep_claims(self) -> None:
        """Read the claims when they are asked for, until the task is canceled."""
        while True:
            await self._asked_for_claims.wait()
            self._asked_for_claims = anyio.Event()
            with suppress(Unavailable):
                await self.load_claims()
            await anyio.sleep(_CLAIMS_SECONDS)

    async def leave(self) -> None:
        """End the membership."""
        await self._table.leave()

    async def _remove(self, member: Member) -> None:
        if await self._table.remove(member):
            _log.warning(
                "node_removed", node=member.name, reason=f"no sign of life in {STILL_BEATS} beats"
            )
