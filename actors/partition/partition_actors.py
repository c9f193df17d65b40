"""The partitions of a table or of a global index that are running or being split, by number.

Each starts with its first message, so an idle table costs almost nothing. The actor of a partition
that is being split has stopped: new messages wait for the children, or for its restart if the split
fails.
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
    """References to the partitions; the first lookup of a partition starts its actor.

    While a partition is being split, its reference leads to a mailbox that no actor reads. Senders
    need not check for a split, so splits add no cost to a write.

    Invariant: every partition is in ``map``, which assigns ranges to partitions; a split replaces
    the map.
    """

    # Slots, because the map is read with every request, and a slot is faster than an instance's
    # dict.
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
        """``make`` returns a new actor of a partition; it is started here."""
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
            PartitionMoved: the partition was split.
        """
        if number not in self.map:
            raise PartitionMoved
        return self._start(number)

    def _start(self, number: int) -> Ref:
        partition = self._actors[number] = self._make(number)
        self[number] = partition.ref
        self._supervisor.start(partition)
        return partition.ref

    def running(self, number: int) -> Partition[BatchT] | None:
        """A partition, if it is running and is not being split."""
        return self._actors.get(number)

    def decisions(self, number: int) -> Ref:
        """A reference to the mailbox for the outcomes of rounds that a partition has joined."""
        return self._actors[number].decisions

    def is_sealed(self, number: int) -> bool:
        """Whether a partition is being split."""
        return number in self._sealed

    def when_split(self, number: int) -> asyncio.Future[None] | None:
        """A future that completes when a partition is split, or when its split fails.

        None if the partition is not being split.
        """
        if number not in self._sealed:
            return None
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaiting_splits.append(future)
        return future

    def mailbox_lengths(self) -> list[int]:
        """Number of messages that wait in each mailbox, also of partitions that are being split."""
        mailboxes = [partition.mailbox for partition in self._actors.values()]
        return list(map(len, [*mailboxes, *self._sealed.values()]))

    def head(self, number: int) -> PartitionHead | None:
        """The head of a running partition, as of its last accepted commit."""
        partition = self._actors.get(number)
        return None if partition is None else partition.head

    def heads_changed(self) -> None:
        """Have running partitions read their heads again, before their next decisions."""
        for partition in self._actors.values():
            partition.is_stale = True

    @asynccontextmanager
    async def sealed(self, number: int) -> AsyncIterator[None]:
        """Stop a partition, once its messages are answered, while its split is committed.

        Messages that arrive meanwhile wait. The caller divides the partition next. If the commit
        fails, the partition continues with the waiting messages. If the commit's outcome is
        unknown, the partition stays stopped, because its head may be gone, and messages are
        refused.
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
        """Remove a sealed partition; returns the messages that waited for it."""
        del self[number]
        for future in self._awaiting_splits:
            if not future.done():
                future.set_result(None)
        self._awaiting_splits.clear()
        return self._sealed.pop(number).drain()

    def divide(
        self, ranges: tuple[PartitionRange, ...], parent: int, children: tuple[int, int]
    ) -> list[Envelope]:
        """Replace a sealed partition by its children, after a durable split.

        Returns:
            The messages that waited for the sealed partition.
        """
        self.map = PartitionMap(ranges)
        waiting = self._unseal(parent)
        # Children start even without messages, because the split watch looks at running partitions.
        for number in children:
            self._start(number)
        return waiting

    async def stop(self) -> None:
        """Stop the running partitions once all their messages are answered."""
        await asyncio.gather(*map(self._supervisor.stop, self._actors.values()))

    def clear(self) -> None:
        """Forget the stopped partitions; each starts again with its next message."""
        super().clear()
        self._actors.clear()
        self._sealed.clear()
