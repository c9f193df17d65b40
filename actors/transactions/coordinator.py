"""The coordinators of transactions over tables.

A write asks every partition concerned to prepare. If all of them accept, it is committed in a round
with other writes (``dynactor.actors.transactions.rounds``).
``dynactor.actors.partition.item_locks`` describes the partitions' part. If the coordinator fails,
every partition that was asked still gets a message to release its locks. A canceled request sends
these messages before it ends, without an await.

A read is one durable view, which is serializable by itself. An item that a transaction is writing
refuses the read anyway, as DynamoDB does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from random import Random
from typing import Any, Final, NamedTuple

import anyio

from dynactor.actors.feeds.index_lag import NO_LAG, IndexLag
from dynactor.actors.partition.item_locks import (
    Accepted,
    ActionDone,
    PartRejected,
    Prepare,
    Release,
    Transact,
    TransactionPart,
)
from dynactor.actors.runtime.caller import CALLER
from dynactor.actors.runtime.clock import Clock
from dynactor.actors.runtime.replies import PartitionMoved, ignore_result, results, wait_done
from dynactor.actors.table.table import ItemRead, Table
from dynactor.actors.transactions.client_tokens import ClientTokens, TokenClaim
from dynactor.actors.transactions.rounds import Candidate, Ending, Rounds
from dynactor.model.capacity import Receipt
from dynactor.model.errors import (
    CancellationReason,
    DynamoDBError,
    InternalServerError,
    Throttled,
    TransactionCanceledException,
    TransactionConflictException,
    ValidationException,
)
from dynactor.model.keys import key as keys
from dynactor.model.limits import TRANSACTION_BYTES
from dynactor.model.values.item import Item
from dynactor.model.writes.transaction import (
    NO_REASON,
    Action,
    ActionWrite,
    cancellation_reason,
    item_read_units,
)
from dynactor.model.writes.write import Put
from dynactor.storage import codec, key_layout
from dynactor.storage.store import Store, StoreError

# Length of each half of a transaction's id: a random number of the process, then a count.
_ID_BYTES: Final = 8


class TableAction(NamedTuple):
    """An action of a transaction, and its table."""

    table: Table
    action: Action


class TableKey(NamedTuple):
    """An item to read in a transaction."""

    table: Table
    position: bytes


def table_action(
    ordinal: int, table: Table, write: ActionWrite, parts: tuple[bytes, bytes] | None = None
) -> TableAction:
    """An action; its key was checked. ``parts`` are the encoded parts of the key, if known."""
    if parts is None:
        parts = keys.encoded_parts(table.definition.key_schema, write.identity)
    partition_key, sort_key = parts
    position = partition_key + sort_key
    action = Action(ordinal, partition_key, sort_key, position, write, CALLER.get())
    return TableAction(table, action)


def table_key(table: Table, key: Item) -> TableKey:
    """An item to read; its key was checked."""
    return TableKey(table, keys.encode(table.definition.key_schema, key))


class _PartitionActions:
    """A partition in a transaction, with its actions and its reply."""

    __slots__ = ("actions", "decided", "number", "position", "size_bytes", "table")

    def __init__(self, table: Table, number: int, position: bytes) -> None:
        self.table = table
        self.number = number
        self.position = position
        self.actions: list[Action] = []
        self.size_bytes = 0
        self.decided: asyncio.Future[Accepted | PartRejected] | None = None

    def add(self, action: Action) -> None:
        self.actions.append(action)
        if isinstance(action.write, Put):
            self.size_bytes += action.write.size_bytes

    def ask(self, message: Prepare | Transact) -> asyncio.Future[Accepted | PartRejected]:
        """Ask the partition to decide; an immediate refusal is its answer, too."""
        try:
            self.table.throttle.check_write(self.number, self.position)
            self.decided = self.table.send(self.position, message, self.size_bytes)
        except DynamoDBError as error:
            self.decided = asyncio.get_running_loop().create_future()
            if isinstance(error, Throttled):
                self.decided.set_result(
                    PartRejected((cancellation_reason(error),) * len(self.actions))
                )
            else:
                self.decided.set_exception(error)
        return self.decided

    def release(self, transaction_id: bytes, *, gives_back: bool) -> None:
        """Release the locks of a transaction that is not committed, if the partition has any."""
        decided = self.decided
        if decided is not None and (_is_open(decided) or _is_answer(decided, Accepted)):
            try:
                message = Release(transaction_id, gives_back)
                released = self.table.send(self.position, message, always=True)
            except DynamoDBError:
                # The partition's actor has stopped, and has no locks any more.
                return
            released.add_done_callback(ignore_result)


def _is_open(reply: asyncio.Future[Any]) -> bool:
    """Whether the answer is unknown, because it is pending or was canceled."""
    return reply.cancelled() or not reply.done()


def _is_answer(reply: asyncio.Future[Any], kind: type) -> bool:
    return not _is_open(reply) and reply.exception() is None and isinstance(reply.result(), kind)


class Transactions:
    """The shared state of all coordinators."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        account_id: str,
        randomness: Random,
        delay: IndexLag = NO_LAG,
    ) -> None:
        """``delay``: the pause of each transaction between its steps; for tests."""
        self.tokens = ClientTokens(store, clock, account_id)
        self._store = store
        self._id_prefix = randomness.randbytes(_ID_BYTES)
        self._ids = count()
        self._rounds = Rounds(store, self._next_id, self._wait, self._over)
        self._delay = delay
        self._waits = delay.waits()
        # The items that transactions are writing, with the ids of their tables.
        self._writing: set[tuple[int, bytes]] = set()
        # These items, and the items of transactions that are still being prepared. A later
        # transaction with one of these items locks nothing. If it locked its other items and
        # released them again, many transactions on hot items would block each other until none
        # succeeds.
        self._claimed: set[tuple[int, bytes]] = set()

    async def write(
        self, actions: Sequence[TableAction], claim: TokenClaim | None
    ) -> list[ActionDone]:
        """Do all of these actions or none; return when they are durable.

        A transaction that meets a split has written nothing, and is prepared again.

        No two actions concern the same item. The results are in the order of the actions. Raises
        ``TransactionCanceledException`` if one can't be done, ``ResourceNotFoundException`` if a
        table is being deleted, or ``InternalServerError``.
        """
        while True:
            with suppress(PartitionMoved):
                return await self._write_once(actions, claim)

    async def _write_once(
        self, actions: Sequence[TableAction], claim: TokenClaim | None
    ) -> list[ActionDone]:
        """Write as ``write``, but raise ``PartitionMoved`` before anything is written."""
        participants = _participants(actions)
        candidate = None
        ending: Ending = "cancelled"
        try:
            if len(participants) == 1:
                accepted = [await self._write_in_one(participants[0], claim)]
            else:
                items = self._claim(participants)
                candidate = Candidate(self._next_id(), participants, claim, items)
                accepted = await self._write_in_several(candidate, participants, len(actions))
        except (InternalServerError, PartitionMoved):
            ending = "refused"
            raise
        finally:
            if candidate is not None and not candidate.is_taken:
                self._over(candidate, ending)
        outcomes: dict[int, ActionDone] = {}
        for participant, accepted_part in zip(participants, accepted, strict=True):
            for action, outcome in zip(participant.actions, accepted_part.outcomes, strict=True):
                outcomes[action.ordinal] = outcome
        return [outcomes[ordinal] for ordinal in range(len(actions))]

    def _next_id(self) -> bytes:
        return self._id_prefix + next(self._ids).to_bytes(_ID_BYTES, "big")

    async def _write_in_one(
        self, participant: _PartitionActions, claim: TokenClaim | None
    ) -> Accepted:
        """Carry out a transaction on one partition, in a batch of that partition."""
        actions = tuple(participant.actions)
        part = TransactionPart(self._next_id(), len(actions), actions)
        reply = participant.ask(Transact(part, (claim.row,) if claim else ()))
        # If the task is canceled, nobody waits for the reply.
        reply.add_done_callback(ignore_result)
        if claim is not None:
            claim.pending = reply
        await _until_settled(reply)
        (accepted,) = _accepted([participant], [reply])
        return accepted

    async def _write_in_several(
        self, candidate: Candidate, participants: list[_PartitionActions], total: int
    ) -> list[Accepted]:
        transaction_id = candidate.transaction_id
        replies = [
            each.ask(Prepare(TransactionPart(transaction_id, total, tuple(each.actions))))
            for each in participants
        ]
        self._rounds.preparing += 1
        try:
            await wait_done(replies)
        finally:
            self._rounds.preparing -= 1
        accepted = _accepted(participants, replies)
        self._writing |= candidate.items
        await self._wait()
        await self._rounds.decide(candidate)
        return accepted

    def _over(self, candidate: Candidate, ending: Ending) -> None:
        """Release everything that a finished transaction holds."""
        self._writing -= candidate.items
        self._claimed -= candidate.items
        if ending != "committed":
            for each in candidate.prepared:
                each.release(candidate.transaction_id, gives_back=ending == "refused")

    def _claim(self, participants: list[_PartitionActions]) -> set[tuple[int, bytes]]:
        """Claim the items for one transaction; raises ``TransactionCanceledException``."""
        claimed = {
            (each.table.definition.table_id, action.position)
            for each in participants
            for action in each.actions
        }
        if not claimed.isdisjoint(self._claimed):
            raise TransactionCanceledException(self._conflicts(participants))
        self._claimed |= claimed
        return claimed

    def _conflicts(self, participants: list[_PartitionActions]) -> list[CancellationReason]:
        """The reasons for a transaction whose items another transaction has claimed."""
        reasons: dict[int, CancellationReason] = {}
        for each in participants:
            for action in each.actions:
                reasons[action.ordinal] = NO_REASON
                if (each.table.definition.table_id, action.position) in self._claimed:
                    each.table.throttle.count_conflict(action.position)
                    reasons[action.ordinal] = cancellation_reason(TransactionConflictException())
        return [reasons[ordinal] for ordinal in range(len(reasons))]

    async def _wait(self) -> None:
        if self._delay.is_delayed:
            # A delay that a tester has set.
            await anyio.sleep(self._delay.draw(self._waits))

    async def read(self, wanted: Sequence[TableKey]) -> list[ItemRead]:
        """Read these items as they are at one moment, in this order.

        Each item is charged after all were read. If limits refuse some of these charges, the other
        items are charged anyway: they were read, and the guide mentions no refund for a canceled
        transaction (``TransactionParts``). A transaction that is refused before the read reads
        nothing, and is not charged. Raises ``TransactionCanceledException`` if a transaction is
        writing one of them, or its partition has no read units left. Raises ``ValidationException``
        if the items are larger than 4 MB together; ``InternalServerError`` if the store failed.
        """
        reasons = [self._refused_read(*each) for each in wanted]
        if any(reason is not NO_REASON for reason in reasons):
            raise TransactionCanceledException(reasons)
        found = await self._load(wanted)
        size_bytes = sum(read.stored.size_bytes for read in found if read.stored is not None)
        if size_bytes > TRANSACTION_BYTES:
            raise ValidationException(f"Payload in response is too large.{size_bytes}")
        # Charge one after another, because each item may take the last units of its partition.
        reasons = [self._pay(*each, read) for each, read in zip(wanted, found, strict=True)]
        if any(reason is not NO_REASON for reason in reasons):
            receipts = [
                read.receipt(consistent=True) if reason is NO_REASON else Receipt()
                for read, reason in zip(found, reasons, strict=True)
            ]
            raise TransactionCanceledException(reasons, receipts)
        return found

    async def receipts_again(self, wanted: Sequence[TableKey]) -> list[Receipt]:
        """The cost of a repeated transaction, which only reads each of its items.

        Raises ``InternalServerError`` if the store failed.
        """
        found = await self._load(wanted)
        for each, read in zip(wanted, found, strict=True):
            self._pay(*each, read)
        return [read.receipt(consistent=True) for read in found]

    def _pay(self, table: Table, position: bytes, read: ItemRead) -> CancellationReason:
        refused = table.throttle.take_read(table.number_at(position), position, read.units)
        return NO_REASON if refused is None else cancellation_reason(refused.error())

    def _refused_read(self, table: Table, position: bytes) -> CancellationReason:
        if (table.definition.table_id, position) in self._writing:
            table.throttle.count_conflict(position)
            return cancellation_reason(TransactionConflictException())
        refused = table.throttle.refused_read(table.number_at(position), position)
        return NO_REASON if refused is None else cancellation_reason(refused.error())

    async def _load(self, wanted: Sequence[TableKey]) -> list[ItemRead]:
        row_keys = [
            key_layout.row_prefix(table.definition.table_id) + position
            for table, position in wanted
        ]
        try:
            values = await self._store.durable().load(row_keys)
            found = [None if value is None else codec.decode(value) for value in values]
        except StoreError as error:
            raise InternalServerError(f"The items can't be read: {error}") from error
        return [
            ItemRead(stored, item_read_units(stored.size_bytes if stored else 0))
            for stored in found
        ]


def _participants(actions: Sequence[TableAction]) -> list[_PartitionActions]:
    found: dict[int, _PartitionActions] = {}
    for table, action in actions:
        position = action.position
        number = table.number_at(position)
        participant = found.get(number)
        if participant is None:
            participant = found[number] = _PartitionActions(table, number, position)
        participant.add(action)
    return list(found.values())


def _accepted(
    participants: Sequence[_PartitionActions],
    replies: Sequence[asyncio.Future[Accepted | PartRejected]],
) -> list[Accepted]:
    """The accepted parts; raises if a part was rejected, or with the error of a reply."""
    answers = results(replies)
    accepted = [answer for answer in answers if isinstance(answer, Accepted)]
    if len(accepted) == len(answers):
        return accepted
    reasons: dict[int, CancellationReason] = {}
    receipts: dict[int, Receipt] = {}
    for participant, answer in zip(participants, answers, strict=True):
        if isinstance(answer, PartRejected):
            part_reasons, taken = answer.reasons, answer.receipts
        else:
            part_reasons, taken = (), tuple(outcome.receipt for outcome in answer.outcomes)
        for place, action in enumerate(participant.actions):
            reasons[action.ordinal] = part_reasons[place] if part_reasons else NO_REASON
            receipts[action.ordinal] = taken[place] if taken else Receipt()
    ordinals = range(len(reasons))
    raise TransactionCanceledException(
        [reasons[ordinal] for ordinal in ordinals], [receipts[ordinal] for ordinal in ordinals]
    )


async def _until_settled(pending: asyncio.Future[Any]) -> None:
    """Wait for a future without canceling it, because the client token needs its outcome."""
    settled = asyncio.get_running_loop().create_future()

    def settle(_: asyncio.Future[Any]) -> None:
        if not settled.done():
            settled.set_result(None)

    pending.add_done_callback(settle)
    await settled
