"""The nodes of a cluster as a node sees them, and the decision which of them have failed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

# A member has failed when its beat stays the same for this number of the observer's renewals.
STILL_BEATS: Final = 5
# A node with another time would give changes a wrong time, and expire items early or late.
WRONG_CLOCK_SECONDS: Final = 1.0


class Member(Struct, frozen=True):
    """A node. ``incarnation`` is a new text each time that it joins.

    ``beat`` rises each second. ``address`` is that of its listener for other nodes. ``is_leader``:
    the node is the leader, which is the home of all tables without a claim. ``is_leaving``: it
    gives its tables away, because it stops or its clock is wrong. ``share`` is the epoch that
    claims of the node name; 0 if it takes no tables.
    """

    name: str
    incarnation: str
    beat: int
    address: str
    version: str
    is_leader: bool = False
    is_leaving: bool = False
    share: int = 0


class Claim(Struct, frozen=True, array_like=True):
    """The home of a table that is not at the leader: the epoch of a node's share.

    ``is_recalled``: the leader asks for the table back. After PostgreSQL has given the share a
    higher epoch, the claim has no effect any more.
    """

    epoch: int
    is_recalled: bool = False


class Claims(Struct, frozen=True):
    """All claims by the names of their tables, and their version, which rises with each change."""

    version: int
    by_table: dict[str, Claim]


class Beat(Struct, frozen=True):
    """The answer to a renewal. ``is_member``: the own row was there, so it was renewed.

    ``owned_epoch`` rises each time that another node becomes the leader. ``claims_version`` rises
    with each change of a claim. ``share_epoch`` is the present epoch of the node's share. It is
    higher after the leader has taken the tables, and 0 if the node has no share. ``ahead_seconds``
    is the difference of the node's clock from PostgreSQL's; None if the answer took too long to
    say it.
    """

    members: tuple[Member, ...]
    is_member: bool
    owned_epoch: int
    claims_version: int = 0
    share_epoch: int = 0
    ahead_seconds: float | None = None

    @property
    def leader(self) -> Member | None:
        """The leader, if it is a member."""
        return next((member for member in self.members if member.is_leader), None)


def clock_ahead(before: float, theirs: float, after: float) -> float:
    """The least difference of a clock, read before and after another one, from the other one."""
    return before - theirs if before > theirs else min(0.0, after - theirs)


class Observer:
    """Finds members that have failed.

    It counts its own renewals and compares no clocks. So an observer that was paused counts none of
    the time of its pause.
    """

    def __init__(self) -> None:
        # By name and incarnation: the last beat, and the number of renewals since it was new.
        self._seen: dict[tuple[str, str], tuple[int, int]] = {}

    def observe(self, members: Iterable[Member], *, is_regular: bool = True) -> None:
        """Note the members of a renewal; only regular renewals count, which are a second apart."""
        seen = {}
        for member in members:
            key = (member.name, member.incarnation)
            beat, still = self._seen.get(key, (None, 0))
            seen[key] = (member.beat, still + is_regular if beat == member.beat else 0)
        self._seen = seen

    def still_beats(self, member: Member) -> int:
        """Number of renewals for which a member's beat has stood still."""
        return self._seen.get((member.name, member.incarnation), (0, 0))[1]

    def has_failed(self, member: Member) -> bool:
        """Whether a member has to be removed."""
        return self.still_beats(member) >= STILL_BEATS
