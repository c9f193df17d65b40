"""The partitions of a table, or of a global index, that are at work or being split, by number.

Each begins when it gets its first message, so that an idle table costs next to nothing. One that
is being split has ended: what comes meanwhile waits, for its children or for itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Generic

from dynactor.actors.partition.partition import MAILBOX_MESSAGES, BatchT, Partition
from dynactor.actors.partition.partition_map import PartitionMap, PartitionMoved
from dynactor.actors.runtime.mailbox import Envelope, Mailbox
from dynactor.actors.runtime.ref import Ref
from dynactor.actors.runtime.supervisor import Supervisor
from dynactor.model.errors import InternalServerError
from dynactor.storage.catalog import PartitionHead, PartitionRange
from dynactor.storage.store import Unknown


class PartitionActors(dict[int, Ref], Generic[BatchT]):
    """References to the partitions; one that is looked up and is not at work yet is started.

    A partition that is being split has a reference to a mailbox from which nobody takes. A sender
    does not see the difference, so splitting costs nothing on its way.

    Invariant: all of them are in ``map``, which tells who owns what; a split puts another in its
    place.
    """

    # The map is read with every request, and a slot is faster than a dict of the instance's own.
    __slots__ = (
        "_actors",
        "_awaiting_splits",
        "_copy_messages",
        "_make",
        "_sealed",
        "_supervisor",
        "map",
    )

    def __init__(
        self,
        ranges: tuple[PartitionRange, ...],
        make: Callable[[int], Partition[BatchT]],
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
        self._actors: dict[int, Partition[BatchT]] = {}
        self._sealed: dict[int, Mailbox] = {}
        self._awaiting_splits: list[asyncio.Future[None]] = []

    def __missing__(self, number: int) -> Ref:
        """Start a partition.

        Raises:
            PartitionMoved: it was split.
        """
        if number not in self.map:
            raise PartitionMoved
        return self._start(number)

    def _start(self, number: int) -> Ref:
        partition = self._actors[number] = self._make(number)
        self[number] = partition.ref
        self._supervisor.start(partition)
        return partition.ref

    def at_work(self, number: int) -> Partition[BatchT] | None:
        """A partition, if it has started and is not being split."""
        return self._actors.get(number)

    def decisions(self, number: int) -> Ref:
        """Where a partition that has joined a round is told its outcome."""
        return self._actors[number].decisions

    def is_sealed(self, number: int) -> bool:
        """Whether a partition is being split."""
        return number in self._sealed

    def when_split(self, number: int) -> asyncio.Future[None] | None:
        """A future that completes when a partition is split, or is not split after all.

        None if nobody is splitting it.
        """
        if number not in self._sealed:
            return None
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaiting_splits.append(future)
        return future

    def mailbox_lengths(self) -> list[int]:
        """How many messages wait in each mailbox: of partitions at work or being split."""
        mailboxes = [partition.mailbox for partition in self._actors.values()]
        return list(map(len, [*mailboxes, *self._sealed.values()]))

    def head(self, number: int) -> PartitionHead | None:
        """The head of a partition that is at work, as of its last accepted commit."""
        partition = self._actors.get(number)
        return None if partition is None else partition.head

    @asynccontextmanager
    async def sealed(self, number: int) -> AsyncIterator[None]:
        """While a split is committed: all that the partition took is durable and answered.

        Messages that arrive meanwhile wait. The caller divides the partition next. If the commit
        fails, the partition continues with the waiting messages. If its outcome is unknown, the
        partition stays stopped, because its head may be gone, and messages are refused.
        """
        assert not self.is_sealed(number)
        partition = self._actors.pop(number, None)
        self._sealed[number] = Mailbox(MAILBOX_MESSAGES, copy_messages=self._copy_messages)
        self[number] = Ref(self._sealed[number])
        if partition is not None:
            await self._supervisor.stop(partition)
        try:
            yield
        except Unknown as error:
            for envelope in self._unseal(number):
                envelope.refuse(InternalServerError(f"Nothing was written: {error}"))
            stopped = Mailbox(0)
            stopped.close()
            self[number] = Ref(stopped)
            raise
        except BaseException:
            for envelope in self._unseal(number):
                self[number].forward(envelope)
            raise

    def _unseal(self, number: int) -> list[Envelope]:
        """Take a sealed partition away; returns the messages that waited for it."""
        del self[number]
        for future in self._awaiting_splits:
            if not future.done():
                future.set_result(None)
        self._awaiting_splits.clear()
        return self._sealed.pop(number).drain()

    def divide(
        self, ranges: tuple[PartitionRange, ...], parent: int, children: tuple[int, int]
    ) -> list[Envelope]:
        """A sealed partition was split, durably; these are the ranges now.

        Returns:
            What waited for it.
        """
        self.map = PartitionMap(ranges)
        waiting = self._unseal(parent)
        # At work, whether or not anything waits: who looks for large partitions finds them.
        for number in children:
            self._start(number)
        return waiting

    async def stop(self) -> None:
        """Stop those that are at work, once all that they took is answered."""
        await asyncio.gather(*map(self._supervisor.stop, self._actors.values()))

    def clear(self) -> None:
        """Forget the partitions, which have stopped; each starts again with its next message."""
        super().clear()
        self._actors.clear()
        self._sealed.clear()
