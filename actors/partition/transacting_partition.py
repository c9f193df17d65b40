"""A partition that takes part in transactions, as ``actors/partition/item_locks.py`` describes."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec import structs

from dynactor.actors.partition.change_feed import ChangeFeed
from dynactor.actors.partition.item_locks import (
    Accepted,
    Done,
    Join,
    Joined,
    LockedPart,
    PartRejected,
    Prepare,
    Release,
    Resolve,
    Transact,
    TransactionPart,
)
from dynactor.actors.partition.partition import Partition, PartitionSettings, WriteBatch
from dynactor.actors.runtime.clock import Clock
from dynactor.actors.runtime.mailbox import Envelope, Mailbox, Message
from dynactor.actors.table.throttle import Paid, TableThrottle
from dynactor.model.capacity.capacity import Receipt
from dynactor.model.errors import (
    CancellationReason,
    ConditionalCheckFailedException,
    InternalServerError,
    TransactionConflictException,
)
from dynactor.model.tables.table import TableDefinition
from dynactor.model.writes.change import Change, give_version
from dynactor.model.writes.transaction import (
    CANCELLING,
    NO_REASON,
    Action,
    Check,
    decide_action,
    failed_action,
    reason_of,
)
from dynactor.storage.store import Group, Store, StoreError
from dynactor.streams.change_record import Origin, TransactionPlace
from dynactor.streams.sequence_number import SequenceNumber

_DECISIONS: Final = 1_000


class _Joining(NamedTuple):
    """A round of transactions that was joined and is not resolved."""

    round_id: bytes
    transaction_ids: tuple[bytes, ...]
    batch: WriteBatch
    group: Group


class TransactingPartition(Partition):
    """The actor.

    Invariant: what is in ``_preparing`` is held, and its coordinator does not know yet.
    """

    def __init__(
        self,
        feed: ChangeFeed,
        table: TableDefinition,
        store: Store,
        clock: Clock,
        settings: PartitionSettings,
        *,
        throttle: TableThrottle,
    ) -> None:
        super().__init__(feed, table, store, clock, settings, throttle=throttle)
        # Where a round that was joined is resolved: the other mailbox waits meanwhile.
        self.decisions = Mailbox(_DECISIONS, copy_messages=settings.copy_messages)
        # What holds keys since the batch in hand, and is told so once the batch is accepted.
        self._preparing: list[tuple[Envelope, Accepted]] = []
        # What each of those has paid whose coordinators know, until it is known what becomes of it.
        self._held_paid: dict[bytes, list[Paid]] = {}
        self._joining: _Joining | None = None

    async def run(self) -> None:
        """As every partition; a round that was joined before a crash is resolved first."""
        if self._joining is not None:
            await self._resolve(self._joining)
        await super().run()

    def actions_of(self, message: Message[Any]) -> tuple[Action, ...]:
        """The actions whose items a message is decided on."""
        match message:
            case Prepare(part=part) | Transact(part=part):
                return part.actions
        return ()

    async def load(self, envelopes: list[Envelope]) -> WriteBatch:
        """As every partition."""
        self._forget_preparing()
        return await super().load(envelopes)

    def decide_other(self, batch: WriteBatch, envelope: Envelope) -> Any:
        """As every partition."""
        match envelope.message:
            case Prepare(part=part):
                return self._prepare(batch, envelope, part)
            case Transact(part=part, rows=rows):
                return self._transact(batch, envelope, part, rows)
            case Release(transaction_id=transaction_id, gives_back=gives_back):
                self._let_go(transaction_id, gives_back=gives_back)
                return None
        return super().decide_other(batch, envelope)

    async def _load_head(self) -> None:
        # What was decided for those who hold keys saw rows that may be gone: nothing comes of it.
        self._item_locks.clear()
        for transaction_id in list(self._held_paid):
            self._let_go(transaction_id, gives_back=True)
        await super()._load_head()

    async def _work(self, envelopes: list[Envelope]) -> None:
        """Join what is to be joined, which comes first in a batch; then all else."""
        joins = 0
        while joins < len(envelopes) and isinstance(envelopes[joins].message, Join):
            await self._join(envelopes[joins])
            joins += 1
        if joins:
            envelopes = envelopes[joins:]
        if not envelopes:
            return
        await super()._work(envelopes)
        if self._preparing:
            # All that the batch left is accepted: the transaction's commit comes behind it, and
            # need not wait for it. Whoever was refused with the batch, or is gone, holds nothing.
            self._preparing, preparing = [], self._preparing
            for envelope, accepted in preparing:
                assert isinstance(envelope.message, Prepare)
                part = envelope.message.part
                if envelope.reply.done():
                    self._item_locks.drop(part.transaction_id)
                elif self._item_locks.get(part.transaction_id) is not None:
                    # Whoever is let go within the batch has spent its units with it.
                    self._keep_paid(envelope, part)
                    envelope.answer(accepted)

    def _forget_preparing(self) -> None:
        """Let go of what a batch held that is decided once more."""
        for envelope, _ in self._preparing:
            assert isinstance(envelope.message, Prepare)
            self._item_locks.drop(envelope.message.part.transaction_id)
        self._preparing.clear()

    def _keep_paid(self, envelope: Envelope, part: TransactionPart) -> None:
        """What a transaction has paid outlives its batch."""
        paid = (self._paid.pop((envelope.reply, action.ordinal), None) for action in part.actions)
        self._held_paid[part.transaction_id] = [one for one in paid if isinstance(one, Paid)]

    def _let_go(self, transaction_id: bytes, *, gives_back: bool) -> None:
        """Hold nothing for a transaction any more: what it has paid is spent, or given back."""
        self._item_locks.drop(transaction_id)
        for paid in self._held_paid.pop(transaction_id, ()):
            if gives_back:
                self._throttle.give_back(self.partition_number, paid)
            else:
                self._throttle.count_write(paid)

    def _prepare(
        self, batch: WriteBatch, envelope: Envelope, part: TransactionPart
    ) -> Accepted | PartRejected:
        decided = self._decide_part(batch, envelope, part)
        if isinstance(decided, PartRejected):
            return decided
        changes, accepted = decided
        self._item_locks.add(LockedPart(part, changes, self._table))
        self._preparing.append((envelope, accepted))
        return accepted

    def _transact(
        self,
        batch: WriteBatch,
        envelope: Envelope,
        part: TransactionPart,
        rows: tuple[tuple[bytes, bytes], ...],
    ) -> Accepted | PartRejected:
        decided = self._decide_part(batch, envelope, part)
        if isinstance(decided, PartRejected):
            return decided
        changes, accepted = decided
        self._carry_out(batch, part, changes)
        batch.rows.update(rows)
        return accepted

    def _decide_part(
        self, batch: WriteBatch, envelope: Envelope, part: TransactionPart
    ) -> tuple[tuple[Change, ...], Accepted] | PartRejected:
        changes: list[Change] = []
        reasons: list[CancellationReason] = []
        receipts: list[Receipt] = []
        # Of each item collection, by all actions together.
        grown_bytes: dict[bytes, int] = {}
        for action in part.actions:
            try:
                change = self._decide_action(batch, envelope, action, grown_bytes)
            except CANCELLING as error:
                reasons.append(reason_of(error))
                receipts.append(error.receipt)
            else:
                changes.append(change)
                reasons.append(NO_REASON)
                receipts.append(change.receipt)
        if len(changes) < len(reasons):
            return PartRejected(tuple(reasons), tuple(receipts))
        outcomes: list[Done] = []
        for action, change in zip(part.actions, changes, strict=True):
            size_bytes = None
            if self._has_local_indexes:
                partition_key = action.partition_key
                size_bytes = batch.collections[partition_key] + grown_bytes[partition_key]
            outcomes.append(Done(change.attributes, change.receipt, size_bytes))
        return tuple(changes), Accepted(tuple(outcomes))

    def _decide_action(
        self,
        batch: WriteBatch,
        envelope: Envelope,
        action: Action,
        grown_bytes: dict[bytes, int],
    ) -> Change:
        """What an action comes to; it pays here, and gets nothing back if others cancel it.

        It does if the store refuses the transaction (``Release``).

        A false condition costs as it does in a single write (Developer Guide, "Working with items
        and attributes", conditional writes). Of a transaction each item is written twice, to
        prepare and to commit ("Amazon DynamoDB transactions: how it works", capacity management);
        the guide names nothing that is given back to one that is cancelled in between. What meets
        another transaction, or a limit, has taken nothing.
        """
        position = action.position
        if position in self._item_locks.positions:
            self._throttle.count_conflict(position)
            raise TransactionConflictException
        old = batch.items[position]
        payer = (envelope.reply, action.ordinal)
        grown_before_bytes = grown_bytes.get(action.partition_key, 0)
        try:
            change = decide_action(self._table, old, action.write)
            grown_bytes[action.partition_key] = grown_before_bytes + self._check_collection(
                batch, action.partition_key, change, grown_before_bytes
            )
        except ConditionalCheckFailedException as error:
            failed = failed_action(old, action.write)
            refused = self._pay(payer, position, failed)
            if refused is not None:
                raise refused from None
            error.receipt = failed.receipt
            raise
        refused = self._pay(payer, position, change)
        if refused is not None:
            raise refused
        return change

    def _carry_out(
        self, batch: WriteBatch, part: TransactionPart, changes: tuple[Change, ...]
    ) -> None:
        """Do what was decided: its versions and records get their numbers only now."""
        place = None
        is_recorded = self._records_changes
        for action, change in zip(part.actions, changes, strict=True):
            if isinstance(action.write, Check) or not self._has_effect(change):
                continue
            number = SequenceNumber(self.partition_number, batch.counter + 1)
            give_version(change, number.packed())
            if is_recorded:
                place = TransactionPlace(part.transaction_id, action.ordinal, part.total)
            self._apply(batch, action, change, Origin.TRANSACTION, place)

    async def _join(self, envelope: Envelope) -> None:
        """Hand over the group of prepared transactions, and wait until they are resolved."""
        message = envelope.message
        assert isinstance(message, Join)
        prepared = [self._item_locks.get(each) for each in message.transaction_ids]
        held = [each for each in prepared if each is not None]
        if len(held) < len(prepared):
            envelope.answer(None)
            return
        try:
            batch = await self._joining_batch(held)
            if self._is_store_in_doubt() and await self._is_taken_back():
                envelope.answer(None)
                return
        except StoreError as error:
            envelope.refuse(InternalServerError(f"Nothing was written: {error}"))
            return
        if envelope.reply.done():
            # Whoever asked has gone, and will not tell what became of it.
            return
        for each in held:
            changes = each.changes
            if each.table is not self._table:
                # Of indexes that came meanwhile nothing is worked out: their followers do that.
                changes = tuple(structs.replace(change, global_changes=None) for change in changes)
            self._carry_out(batch, each.part, changes)
        batch.rows.update(message.rows)
        group = self._group(batch)
        self._joining = _Joining(message.round_id, message.transaction_ids, batch, group)
        envelope.answer(Joined(group))
        await self._resolve(self._joining)

    async def _joining_batch(self, held: list[LockedPart]) -> WriteBatch:
        """Nobody has written the items since; the sizes of their collections, perhaps."""
        batch = WriteBatch(self.head)
        if self._table.local_indexes:
            partition_keys = dict.fromkeys(
                action.partition_key for each in held for action in each.part.actions
            )
            await self.load_collections(batch, partition_keys)
        return batch

    async def _resolve(self, joining: _Joining) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        (envelope,) = await self.decisions.take(1, 1)
        self._waited_seconds += loop.time() - began
        decision = envelope.message
        assert isinstance(decision, Resolve)
        assert decision.round_id == joining.round_id, "who has joined is told, and nobody else"
        # It comes once: after a crash from here on nobody waits for it again.
        self._joining = None
        if decision.committed:
            self.head, self._head_bytes = joining.batch.head(), joining.group.head
            try:
                self._last_commit = await self._store.commit([])
            except StoreError:
                # The next commit tells what became of it.
                self._last_commit = None
            else:
                self._last_commit.add_done_callback(partial(self._settle, joining.batch, []))
            for transaction_id in joining.transaction_ids:
                self._let_go(transaction_id, gives_back=False)
