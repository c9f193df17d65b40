"""A store in which another owner can take over rows: a fake at the storage port.

Commits of the selected heads have a guard that requires that a claim row is absent. ``take_over``
writes the claim row, so later commits of these heads fail with ``Fenced``:

    store = ClaimedStore(inner)
    await store.take_over(lambda head_key: head_key == cursor)
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import structs

from dynactor.storage import key_layout
from dynactor.storage.store import Fenced, Group, Store
from tests.support.stores.faulty_store import FaultyStore

_CLAIM: Final = b"\xffclaim"
_PARTITIONS: Final = key_layout.partition_head(0)[:1]
_OTHER_HEAD: Final = b"\xffother owner"


class ClaimedStore(FaultyStore):
    """A ``Store`` that wraps another one. ``refused`` counts the commits that were fenced."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.refused = 0
        self._is_guarded: Callable[[bytes], bool] = lambda _: False

    async def take_over(self, is_guarded: Callable[[bytes], bool]) -> None:
        """Let another owner claim the rows of these heads.

        Commits that reach the store before the claim are accepted.
        """
        self.guard(is_guarded)
        await self.claim()

    def guard(self, is_guarded: Callable[[bytes], bool]) -> None:
        """Guard later commits of these heads."""
        self._is_guarded = is_guarded

    async def claim(self) -> None:
        """Write the claim row."""
        await (
            await self._inner.commit([Group(_OTHER_HEAD, None, b"1", puts=[(_CLAIM, b"theirs")])])
        )

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        try:
            return await super().commit([self._guarded(group) for group in groups])
        except Fenced:
            self.refused += 1
            raise

    def _guarded(self, group: Group) -> Group:
        # The maker of a table begins its partitions, before they have an owner.
        is_new = group.expected_head is None and group.head_key.startswith(_PARTITIONS)
        if is_new or not self._is_guarded(group.head_key):
            return group
        return structs.replace(group, guards=[(_CLAIM, None)])
