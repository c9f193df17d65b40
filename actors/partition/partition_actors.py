"""The partitions of a table, or of a global index, that are at work or being split, by number.

Each begins when it gets its first message, so that an idle table costs next to nothing. One that
is being split has ended: what comes meanwhile waits, for its children or for itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Generic, NamedTuple, TypeVar

from dynactor.actors.partition.partition_map import PartitionMap, PartitionMoved
from dynactor.actors.partition.row_owner import MAILBOX_MESSAGES, RowOwner
from dynactor.actors.runtime.mailbox import Envelope, Mailbox
from dynactor.actors.runtime.supervisor import Supervisor
from dynactor.storage.catalog import PartitionHead, PartitionRange

PartitionT = TypeVar("PartitionT", bound=RowOwner[Any])


class Sealed(NamedTuple):
    """What stands in a partition's place while it is being split: the messages that wait.

    A sender finds a mailbox like any other, so that splitting costs nothing on its way.
    """

    mailbox: Mailbox


class PartitionActors(dict[int, PartitionT | Sealed], Generic[PartitionT]):
    """The partitions; one that is looked up by its number, and is not at work yet, is begun.

    Invariant: all of them are in ``map``, which tells who owns what; a split puts another in its
    place.
    """

    # The map is read with every request: sooner so than from a dict of the instance's own.
    __slots__ = ("_copy_messages", "_make", "_supervisor", "map")

    def __init__(
        self,
        ranges: tuple[PartitionRange, ...],
        make: Callable[[int], PartitionT],
        supervisor: Supervisor,
        *,
        copy_messages: bool,
    ) -> None:
        """``make`` gives the actor of a partition; it is started here."""
        super().__init__()
        self.map = PartitionMap(ranges)
        self._make = make
        self._supervisor = supervisor
        self._copy_messages = copy_messages

    def __missing__(self, number: int) -> PartitionT:
        """Begin a partition.

        Raises:
            PartitionMoved: it was split.
        """
        if number not in self.map:
            raise PartitionMoved
        return self._begin(number)

    def _begin(self, number: int) -> PartitionT:
        partition = self[number] = self._make(number)
        self._supervisor.start(partition)
        return partition

    def at_work(self, number: int) -> PartitionT | None:
        """A partition, if it has begun and is not being split."""
        partition = self.get(number)
        return None if isinstance(partition, Sealed) else partition

    def is_sealed(self, number: int) -> bool:
        """Whether a partition is being split."""
        return isinstance(self.get(number), Sealed)

    def head(self, number: int) -> PartitionHead | None:
        """What a partition knows of itself, if it is at work."""
        partition = self.at_work(number)
        return None if partition is None else partition.head

    @asynccontextmanager
    async def sealed(self, number: int) -> AsyncIterator[None]:
        """While a split is committed: all that the partition took is durable and answered.

        What comes from now on waits. Who has split it divides it next; where that failed, the
        partition goes on with what waits.
        """
        assert not self.is_sealed(number)
        partition = self.at_work(number)
        self[number] = Sealed(Mailbox(MAILBOX_MESSAGES, copy_messages=self._copy_messages))
        if partition is not None:
            await self._supervisor.stop(partition)
        try:
            yield
        except BaseException:
            for envelope in self.pop(number).mailbox.drain():
                self[number].mailbox.give(envelope)
            raise

    def divide(
        self, ranges: tuple[PartitionRange, ...], parent: int, children: tuple[int, int]
    ) -> list[Envelope]:
        """A sealed partition was split, durably; these are the ranges now.

        Returns:
            What waited for it.
        """
        self.map = PartitionMap(ranges)
        waiting = self.pop(parent).mailbox.drain()
        # At work, whether or not anything waits: who looks for large partitions finds them.
        for number in children:
            self._begin(number)
        return waiting

    async def stop(self) -> None:
        """Stop those that are at work, once all that they took is answered."""
        partitions = [each for each in self.values() if not isinstance(each, Sealed)]
        await asyncio.gather(*map(self._supervisor.stop, partitions))
