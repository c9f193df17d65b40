"""A store that reports the outcome of a commit as unknown, as if its connection was lost.

store = DoubtfulStore(inner)
store.lose_next(key_layout.CATALOG_WRITER)                  # written
store.lose_next(key_layout.CATALOG_WRITER, Fate.DROPPED)    # not written
store.lose_next(key_layout.CATALOG_WRITER, Fate.LATE)       # ``write_late`` writes it
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum, auto

from dynactor.storage.store import Group, Unknown
from tests.support.stores.faulty_store import FaultyStore


class Fate(Enum):
    """The outcome of a commit whose reply is lost."""

    WRITTEN = auto()
    DROPPED = auto()
    LATE = auto()


class DoubtfulStore(FaultyStore):
    """A ``Store`` that wraps another one."""

    _head_key = b""
    _fate = Fate.WRITTEN
    _late: Sequence[Group] = ()
    # Called when a reply is lost.
    on_lost: Callable[[], None] = staticmethod(lambda: None)
    # Awaited by the next commit after a lost reply.
    before_next: Callable[[], Awaitable[object]] | None = None
    # Number of commits whose reply was lost.
    lost = 0

    def lose_next(self, head_key: bytes, fate: Fate = Fate.WRITTEN) -> None:
        """Lose the reply to the next commit under this head."""
        self._head_key, self._fate = head_key, fate

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        if all(group.head_key != self._head_key for group in groups):
            if self.lost and self.before_next is not None:
                before_next, self.before_next = self.before_next, None
                await before_next()
            return await super().commit(groups)
        self._head_key = b""
        self.lost += 1
        self.on_lost()
        if self._fate is Fate.WRITTEN:
            await (await super().commit(groups))
        elif self._fate is Fate.LATE:
            self._late = groups
        reply: Future[None] = asyncio.get_running_loop().create_future()
        reply.set_exception(Unknown("the connection was lost: played by a test"))
        return reply

    async def write_late(self) -> None:
        """Write the late commit now.

        Raises:
            Conflict: a later commit under the same head was written before.
        """
        await (await super().commit(self._late))
