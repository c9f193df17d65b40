"""The connections of this node to the other members of the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Final

import anyio
from anyio.abc import TaskGroup

from dynactor.api.nodes.changes import Changes
from dynactor.api.nodes.frames import ClaimsChanged
from dynactor.api.nodes.membership import BEAT_SECONDS, Membership
from dynactor.api.nodes.node_link import AnswerLost, NodeLink, NotSent
from dynactor.api.nodes.spreading import SUSPECT_BEATS
from dynactor.model.members import Member
from dynactor.model.pauses import MOVE_SECONDS

# A node that renews its beat, but can't be reached for that time, is cut off.
CUT_OFF_SECONDS: Final = 3.0


class MemberLinks:
    """A connection to each other member, by its address."""

    def __init__(
        self, membership: Membership, changes: Changes, linking: Callable[[str], NodeLink]
    ) -> None:
        self._membership = membership
        self._changes = changes
        self._linking = linking
        self._links: dict[str, NodeLink] = {}
        # By address: since when a connection has failed, by the event loop's clock.
        self._failed_at: dict[str, float] = {}
        self._tasks: TaskGroup | None = None

    @property
    def all(self) -> Collection[NodeLink]:
        """All connections."""
        return self._links.values()

    def to(self, member: Member) -> NodeLink | None:
        """The connection to a member, if there is one."""
        return self._links.get(member.address)

    async def keep(self, group: TaskGroup) -> None:
        """Keep a connection to each other member."""
        self._tasks = group
        scopes: dict[str, anyio.CancelScope] = {}
        epoch = 0
        while True:
            membership = self._membership
            members = () if membership.beat is None else membership.beat.members
            addresses = {each.address for each in members if each.name != membership.me.name}
            for address in sorted(addresses - scopes.keys()):
                self._links[address] = self._linking(address)
                scopes[address] = anyio.CancelScope()
                group.start_soon(_run_link, self._links[address], scopes[address])
            for address in sorted(scopes.keys() - addresses):
                scopes.pop(address).cancel()
                del self._links[address]
            if membership.owned_epoch != epoch:
                epoch = membership.owned_epoch
                for link in self._links.values():
                    link.is_refused = False
            has_failed = self._note_failures()
            if has_failed and membership.claims:
                # Another node may have taken the tables of that node.
                membership.ask_for_claims()
            await self._changes.wait(MOVE_SECONDS if has_failed else BEAT_SECONDS)

    def _note_failures(self) -> bool:
        """Note since when connections have failed; return whether one has failed."""
        now = asyncio.get_running_loop().time()
        failed = [address for address, link in self._links.items() if link.failure]
        self._failed_at = {address: self._failed_at.get(address, now) for address in failed}
        return bool(failed)

    def to_share(self, epoch: int) -> NodeLink | None:
        """The connection to the node with a share; None if requests to its tables wait."""
        beat = self._membership.beat
        members = () if beat is None else beat.members
        member = next((each for each in members if each.share == epoch), None)
        return None if member is None else self.to(member)

    def is_connected(self, member: Member) -> bool:
        """Whether a member can be reached."""
        link = self.to(member)
        return link is not None and link.is_open

    def has_failed(self, member: Member) -> bool:
        """Whether the connection to a member has ended."""
        link = self.to(member)
        return link is not None and bool(link.failure)

    def is_cut_off(self, member: Member) -> bool:
        """Whether a member renews its beat, but can't be reached for some time."""
        failed_at = self._failed_at.get(member.address)
        return (
            failed_at is not None
            and asyncio.get_running_loop().time() >= failed_at + CUT_OFF_SECONDS
            and self._membership.still_beats(member) < SUSPECT_BEATS
        )

    def tell_of_claims(self, shares: Collection[int]) -> None:
        """Tell the nodes with these shares that claims have changed."""
        beat = self._membership.beat
        for member in () if beat is None else beat.members:
            link = self.to(member)
            if member.share in shares and link is not None:
                self._tell(link)
        self._changes.notify()

    def _tell(self, link: NodeLink) -> None:
        if self._tasks is not None:
            self._tasks.start_soon(_tell, link)

    async def tell_all(self) -> None:
        """Wait until all nodes that answer have read the claims."""
        with anyio.move_on_after(BEAT_SECONDS):
            async with anyio.create_task_group() as group:
                for link in self._links.values():
                    group.start_soon(_tell, link)


async def _run_link(link: NodeLink, scope: anyio.CancelScope) -> None:
    with scope:
        await link.run()


async def _tell(link: NodeLink) -> None:
    # Without the message, the other node reads the claims after its next beat.
    with suppress(NotSent, AnswerLost):
        await link.ask(ClaimsChanged())
