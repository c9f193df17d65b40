"""The partitions of a table or of a global index that are running, by number.

Each starts with its first message, so an idle table costs almost nothing. A partition works on
while its split is committed. The commit of the split deletes the partition's head, so every later
commit of the partition is refused. Then its actor ends, and the children get its messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Generic

from dynactor.actors.partition.partition import Partition
from dynactor.actors.partition.roles import BatchT
from dynactor.actors.runtime.mailbox import Envelope
from dynactor.actors.runtime.ref import Ref
from dynactor.actors.runtime.replies import PartitionMoved
from dynactor.actors.runtime.supervisor import Supervisor
from dynactor.model.errors import InternalServerError
from dynactor.storage.catalog import PartitionHead, PartitionRange
from dynactor.storage.partition_map import PartitionMap


class PartitionActors(dict[int, Ref], Generic[BatchT]):
    """References to the partitions; the first lookup of a partition starts its actor.

    Invariants: every partition is in ``map``, which assigns ranges to partitions; a split replaces
    the map. A child starts after its parent's actor has ended, so a position has one writer.
    """

    # Slots, because every request reads the map, and a slot is faster than an instance's dict.
    __slots__ = ("_actors", "_awaiting_splits", "_make", "_splitting", "_supervisor", "map")

    def __init__(
        self,
        ranges: tuple[PartitionRange, ...],
        make: Callable[[int], Partition[BatchT]],
        supervisor: Supervisor,
    ) -> None:
        """``make`` returns a new actor of a partition; it is started here."""
        super().__init__()
        self.map = PartitionMap(ranges)
        self._make = make
        self._supervisor = supervisor
        self._actors: dict[int, Partition[BatchT]] = {}
        self._splitting: set[int] = set()
        self._awaiting_splits: list[asyncio.Future[None]] = []

    def __missing__(self, number: int) -> Ref:
        """Start a partition; raises ``PartitionMoved`` if the partition was split."""
        if number not in self.map:
            raise PartitionMoved
        return self._start(number)

    def _start(self, number: int) -> Ref:
        partition = self._actors[number] = self._make(number)
        self[number] = partition.ref
        self._supervisor.start(partition)
        return partition.ref

    def decisions(self, number: int) -> Ref:
        """A reference to the mailbox for the outcomes of rounds that a partition has joined."""
        return self._actors[number].decisions

    def when_split(self, number: int) -> asyncio.Future[None] | None:
        """A future for the end of a partition's split, successful or not; None without a split."""
        if number not in self._splitting:
            return None
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaiting_splits.append(future)
        return future

    def mailbox_lengths(self) -> list[int]:
        """Number of messages that wait in each mailbox."""
        return [len(partition.mailbox) for partition in self._actors.values()]

    def head(self, number: int) -> PartitionHead | None:
        """The head of a running partition, as of its last accepted commit."""
        partition = self._actors.get(number)
        return None if partition is None else partition.head

    def heads_changed(self) -> None:
        """Have running partitions read their heads again, before their next decisions."""
        for partition in self._actors.values():
            partition.is_stale = True

    @asynccontextmanager
    async def splitting(self, number: int) -> AsyncIterator[None]:
        """Commit the split of a partition in this context.

        Once the partition finds its head gone, it waits for the end of the context. After a commit,
        the actor has ended when the context ends, and messages wait; the caller divides the
        partition next. If the commit fails or its outcome is unknown, the partition reads its head
        again.
        """
        # The children start with the split. So the parent's actor may start, too.
        _ = self[number]
        partition = self._actors[number]
        split = partition.split = asyncio.get_running_loop().create_future()
        self._splitting.add(number)
        try:
            yield
        except BaseException:
            partition.split = None
            split.set_result(None)
            self._end_split(number)
            raise
        partition.mailbox.hold()
        split.set_result(None)
        await self._supervisor.wait_ended(partition)

    def divide(
        self, ranges: tuple[PartitionRange, ...], parent: int, children: tuple[int, int]
    ) -> list[Envelope]:
        """Replace a partition by its children after a split; returns its pending messages."""
        self.map = PartitionMap(ranges)
        del self[parent]
        left = _left(self._actors.pop(parent))
        # Children start even without messages, because the split watch looks at running partitions.
        for number in children:
            self._start(number)
        self._end_split(parent)
        return left

    def _end_split(self, number: int) -> None:
        self._splitting.discard(number)
        for future in self._awaiting_splits:
            if not future.done():
                future.set_result(None)
        self._awaiting_splits.clear()

    async def stop(self) -> None:
        """Stop the running partitions once all their messages are answered."""
        partitions = list(self._actors.values())
        await asyncio.gather(*map(self._supervisor.stop, partitions))
        for partition in partitions:
            # Nothing is left, unless a crash came between a split's commit and ``divide``.
            for envelope in _left(partition):
                envelope.refuse(InternalServerError("Nothing was written: the partition was split"))

    def clear(self) -> None:
        """Forget the stopped partitions; each starts again with its next message."""
        super().clear()
        self._actors.clear()


def _left(partition: Partition[BatchT]) -> list[Envelope]:
    left = partition.in_progress + partition.mailbox.drain()
    partition.in_progress = []
    partition.mailbox.close()
    return left
