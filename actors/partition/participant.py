"""A partition as a participant of transactions over several partitions.

``item_locks`` describes the steps. The loop commits nothing between a join and its outcome: the
round commits the groups of all its partitions together.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from dynactor.actors.partition.batch import TableBatch
from dynactor.actors.partition.charges import Charges
from dynactor.actors.partition.item_locks import Join, Joined, LockedPart, Resolve
from dynactor.actors.partition.partition import HeadGone, Partition
from dynactor.actors.partition.table_core import TableCore
from dynactor.actors.runtime.mailbox import Envelope, Mailbox
from dynactor.actors.runtime.ref import Ref
from dynactor.actors.runtime.replies import PartitionMoved
from dynactor.model.errors import InternalServerError
from dynactor.storage.catalog import PartitionHead
from dynactor.storage.store import Group, StoreError

_DECISIONS: Final = 1_000


class _JoinedRound(NamedTuple):
    """A round of transactions that was joined and is not resolved yet."""

    round_id: bytes
    transaction_ids: tuple[bytes, ...]
    batch: TableBatch
    head: PartitionHead
    group: Group


class Participant:
    """Takes part in rounds. The outcomes arrive through ``decisions``, not the mailbox."""

    def __init__(self, core: TableCore, charges: Charges, *, copy_messages: bool) -> None:
        self._outcomes = Mailbox(_DECISIONS, copy_messages=copy_messages)
        self.decisions = Ref(self._outcomes)
        self._core = core
        self._charges = charges
        self._joining: _JoinedRound | None = None

    async def resume(self, partition: Partition[TableBatch]) -> None:
        """Resolve a round that was joined before a crash."""
        if self._joining is not None:
            await self._resolve(partition, self._joining)

    async def join(self, partition: Partition[TableBatch], envelope: Envelope) -> None:
        """Reply with the group of prepared transactions, and wait for the outcome of the round."""
        message = envelope.message
        assert isinstance(message, Join)
        try:
            joined = await self._open(partition, message)
        except StoreError as error:
            if isinstance(error, HeadGone) and partition.split is not None:
                envelope.refuse(PartitionMoved())
            else:
                envelope.refuse(InternalServerError(f"Nothing was written: {error}"))
            return
        if joined is None:
            envelope.answer(None)
            return
        batch, locked = joined
        if envelope.reply.done():
            # The round was canceled, and sends no outcome.
            return
        for each in locked:
            self._core.carry_out_locked(batch, each)
        batch.rows.update(message.rows)
        head = batch.head()
        group = partition.group(batch, head)
        joining = _JoinedRound(message.round_id, message.transaction_ids, batch, head, group)
        self._joining = joining
        envelope.answer(Joined(group))
        await self._resolve(partition, joining)

    async def _open(
        self, partition: Partition[TableBatch], message: Join
    ) -> tuple[TableBatch, list[LockedPart]] | None:
        """A loaded batch for prepared transactions, if all are known; raises ``StoreError``."""
        while True:
            locked = [
                prepared
                for each in message.transaction_ids
                if (prepared := self._core.locks.get(each)) is not None
            ]
            if len(locked) < len(message.transaction_ids):
                return None
            batch = self._core.open_round(partition.head, locked)
            if await partition.load(batch):
                return batch, locked
            # The head has changed. Locks stay, unless the store has lost commits.

    async def _resolve(self, partition: Partition[TableBatch], joining: _JoinedRound) -> None:
        (envelope,) = await self._outcomes.take(1, 1)
        decision = envelope.message
        assert isinstance(decision, Resolve)
        assert decision.round_id == joining.round_id, "only partitions that joined get a decision"
        # The outcome is sent once, so after a crash from here on, don't wait for it again.
        self._joining = None
        if decision.committed:
            await partition.was_committed(joining.batch, joining.head, joining.group)
            for transaction_id in joining.transaction_ids:
                self._core.locks.drop(transaction_id)
                self._charges.settle(transaction_id, gives_back=False)
        else:
            await partition.was_not_committed()
