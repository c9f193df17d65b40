"""A store that can lose its latest commits: a fake at the storage port.

The real store does so when it is reopened after a full disk. Commits that were accepted and never
became durable are lost, and the heads of their groups are the old ones.

    store = LosingStore(inner)
    store.remember()      # later commits can be lost
    await store.lose()
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Sequence

from dynactor.storage.store import Group, Store
from tests.support.stores.stepped_store import SteppedStore

_OWN_HEAD = b"\xff"


class LosingStore(SteppedStore):
    """A ``Store`` that wraps another one. Commits with range deletes are not supported."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        # The values that the commits replaced, by key; None while not recording.
        self._replaced: dict[bytes, bytes | None] | None = None

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        if self._replaced is not None:
            keys = [key for group in groups for key in _keys(group) if key not in self._replaced]
            self._replaced.update(zip(keys, await self._inner.latest.load(keys), strict=True))
        return await super().commit(groups)

    def remember(self) -> None:
        """Record commits from now on, so they can be lost."""
        self._replaced = {}

    async def lose(self) -> None:
        """Undo all commits since ``remember``, and stop recording."""
        replaced, self._replaced = self._replaced, None
        assert replaced, "there is something to lose"
        (own,) = await self._inner.latest.load([_OWN_HEAD])
        group = Group(
            _OWN_HEAD,
            own,
            (own or b"") + b"1",
            puts=[(key, value) for key, value in replaced.items() if value is not None],
            deletes=[key for key, value in replaced.items() if value is None],
        )
        await (await self._inner.commit([group]))


def _keys(group: Group) -> list[bytes]:
    assert not group.ranges
    return [group.head_key, *(key for key, _ in group.puts), *group.deletes, *group.raises]
