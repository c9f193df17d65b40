"""The homes of tables, if several nodes share a database.

Each node that is the home of some tables runs a database of these tables. The leader's database
runs all tables without a claim. It gives a table to another node by a claim, which names the epoch
of that node's share. The other node gives the table back by deleting the claim.

A table is given only after it was closed, so the giving node's commits have ended. The tables of a
node that does not answer are taken only after PostgreSQL refuses all commits of its share.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

from dynactor.actors.catalog.catalog_owner import CatalogOwner
from dynactor.actors.catalog.share import Share
from dynactor.actors.catalog.tables import Tables
from dynactor.actors.table.messages import UrgentMessage
from dynactor.model.members import Claim
from dynactor.storage import catalog, key_layout
from dynactor.storage.store import Conflict, Group, Store

_MOST_CONFLICTS: Final = 3
# In place of the epoch of a table's share while the table moves.
MOVING: Final = -1


class HomeChange(UrgentMessage, frozen=True):
    """A change of the homes of tables. It comes first, because requests to these tables wait.

    Raises:
        InternalServerError: the store refused a commit; the caller tries again later.
    """

    names: tuple[str, ...]


class MoveTables(HomeChange, frozen=True):
    """Close tables, and let the share with this epoch run them; 0 is the leader's share.

    Tables that can't move now stay here. If this fails, ``TakeTables`` opens them again.
    """

    epoch: int = 0


class TakeTables(HomeChange, frozen=True):
    """Open the tables that this database has become the home of.

    The leader passes the epochs of ``ended`` shares, whose commits PostgreSQL refuses.
    """

    ended: frozenset[int] = frozenset()


class RecallTables(HomeChange, frozen=True):
    """Ask the homes of these tables to give them back to the leader."""


class GroupTables(HomeChange, frozen=True):
    """Give these tables and their groups one home from now on."""


class MoveGuard(Protocol):
    """The node, as the database's actor needs it to move tables."""

    def may_give(self, epoch: int) -> bool:
        """Whether the share with this epoch can run tables, and no late commit can follow."""

    def holding(self, names: Collection[str]) -> AbstractAsyncContextManager[bool]:
        """Hold back the requests to these tables; False if earlier ones do not end soon."""

    def opened(self) -> None:
        """Let the requests go on that wait for a table that was just opened."""


class Homes:
    """Reads and changes the claims. ``tables.elsewhere`` has the claims of other homes' tables."""

    def __init__(
        self, owner: CatalogOwner, store: Store, share: Share | None, tables: Tables
    ) -> None:
        """Without a ``share`` this database runs all tables."""
        self._owner = owner
        self._store = store
        self._share = share
        self._tables = tables
        self._claims: dict[str, Claim] = {}

    async def load(self) -> None:
        """Load the claims and groups of all tables: at start, or after a conflict."""
        self._claims = await catalog.load_claims(self._store.latest)
        groups = await catalog.load_groups(self._store.latest)
        self._tables.groups.clear()
        self._tables.groups.update(groups)

    def note_all(self, names: Collection[str]) -> None:
        """Note which of all tables other databases run, and which are about to be opened here."""
        if self._share is None:
            return
        self._tables.elsewhere.clear()
        for name in names:
            self.note(name)
            if self.is_here(name) and name not in self._tables:
                # Until it is open, requests to it have to wait.
                self.closed(name)

    async def reload(self, names: Collection[str]) -> None:
        """Load the claims of these tables again."""
        keys = list(map(key_layout.claim, names))
        values = await self._store.latest.load(keys)
        for name, value in zip(names, values, strict=True):
            if value is None:
                self._claims.pop(name, None)
            else:
                self._claims[name] = catalog.decode_claim(value)

    def claim(self, name: str) -> Claim | None:
        """The claim of a table, as it was loaded last."""
        return self._claims.get(name)

    def is_here(self, name: str) -> bool:
        """Whether this database is the home of a table, by the claim that was loaded last."""
        if self._share is None:
            return True
        claim = self._claims.get(name)
        return (0 if claim is None else claim.epoch) == self._share.epoch

    async def give(self, names: Sequence[str], epoch: int) -> None:
        """Store that another share has these tables, which are closed.

        Raises:
            Conflict: a claim is not this database's.
            StoreError: nothing was changed, or the outcome is ``Unknown``.
        """

        def given(name: str) -> Claim | None:
            if not self.is_here(name):
                raise Conflict(f"another node is the home of table {name}")
            return Claim(epoch) if epoch else None

        await self._change(names, given)
        for name in names:
            self.note(name)

    async def recall(self, names: Sequence[str]) -> None:
        """Store that the leader asks for these tables."""

        def recalled(name: str) -> Claim | None:
            claim = self._claims.get(name)
            return None if claim is None else Claim(claim.epoch, is_recalled=True)

        await self._change(names, recalled)

    async def end(self, names: Sequence[str]) -> None:
        """Delete the claims of these tables, whose shares have ended."""
        await self._change(names, lambda _: None)

    def closed(self, name: str) -> None:
        """Note that no database runs a table at the moment."""
        self._tables.elsewhere[name] = MOVING

    def opened(self, name: str) -> None:
        """Note that this database runs a table."""
        self._tables.elsewhere.pop(name, None)

    async def group(self, names: Collection[str]) -> None:
        """Store that these tables and their groups have one home."""
        groups = self._tables.groups
        merged = {groups.get(name, name) for name in names}
        group = min(merged)
        wanted = {*names, *(name for name, current in groups.items() if current in merged), group}
        changes = [
            Group(
                key_layout.table_group(name),
                groups[name].encode() if name in groups else None,
                group.encode(),
            )
            for name in sorted(wanted)
            if groups.get(name) != group
        ]
        if changes:
            await self._owner.change(heads=changes, raises_version=False)
            groups.update(dict.fromkeys(wanted, group))

    async def _change(self, names: Sequence[str], wanted: Callable[[str], Claim | None]) -> None:
        for conflicts in range(_MOST_CONFLICTS + 1):
            if conflicts:
                await self.reload(names)
            changed = {name: wanted(name) for name in names}
            groups = _groups({name: self._claims.get(name) for name in names}, changed)
            if not groups:
                return
            try:
                await self._owner.change(heads=groups, raises_version=False)
            except Conflict:
                # The home of a table has given it back meanwhile.
                if conflicts == _MOST_CONFLICTS:
                    raise
            else:
                for name, claim in changed.items():
                    if claim is None:
                        self._claims.pop(name, None)
                    else:
                        self._claims[name] = claim
                return

    def note(self, name: str) -> None:
        """Note whether another database runs a table."""
        if self.is_here(name):
            self._tables.elsewhere.pop(name, None)
        else:
            claim = self._claims.get(name)
            self._tables.elsewhere[name] = 0 if claim is None else claim.epoch


def _groups(before: Mapping[str, Claim | None], after: Mapping[str, Claim | None]) -> list[Group]:
    """The groups of a commit that changes these claims, and raises their version."""
    return [
        Group(
            key_layout.claim(name),
            None if (old := before[name]) is None else catalog.encode_claim(old),
            None if claim is None else catalog.encode_claim(claim),
            raises=[key_layout.CLAIMS_VERSION],
        )
        for name, claim in after.items()
        if claim != before[name]
    ]
