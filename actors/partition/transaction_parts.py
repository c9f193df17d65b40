"""A partition's parts of transactions: decides their actions, and carries them out.

``item_locks`` describes the steps of a transaction. Deciding changes nothing. An accepted part
either locks its items until a round commits it, or is carried out in the batch at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from msgspec import structs

from dynactor.actors.partition.batch import TableBatch
from dynactor.actors.partition.item_locks import (
    Accepted,
    ActionDone,
    ItemLocks,
    LockedPart,
    PartRejected,
    TransactionPart,
)
from dynactor.model.capacity import Receipt
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import (
    CancellationReason,
    ConditionalCheckFailedException,
    DynamoDBError,
    TransactionConflictException,
)
from dynactor.model.writes.change import Change, give_version
from dynactor.model.writes.transaction import (
    CANCELLING,
    NO_REASON,
    Action,
    Check,
    cancellation_reason,
    decide_action,
    failed_action,
)
from dynactor.streams.change_record import Origin, TransactionPlace


class PartDecision(NamedTuple):
    """The outcome of each action of a part, and the growth of item collections by all of them."""

    outcomes: list[Change | DynamoDBError]
    grown_bytes: dict[bytes, int]

    def replaced(self, place: int, outcome: Change | DynamoDBError) -> PartDecision:
        """Return a copy with another outcome of one action."""
        outcomes = list(self.outcomes)
        outcomes[place] = outcome
        return PartDecision(outcomes, self.grown_bytes)


class TransactionRows(Protocol):
    """The rows of a table's partition, as transactions see and change them."""

    @property
    def definition(self) -> TableDefinition:
        """The table's current definition."""

    @property
    def has_local_indexes(self) -> bool:
        """Whether the sizes of item collections are limited."""

    @property
    def records_changes(self) -> bool:
        """Whether a change record is written for each change."""

    @property
    def locks(self) -> ItemLocks:
        """The items that transactions have locked."""

    def check_collection(
        self, batch: TableBatch, partition_key: bytes, change: Change, grown_before_bytes: int
    ) -> int:
        """Return the growth of an item collection by a change. Refuse the change at the limit."""

    def has_effect(self, change: Change) -> bool:
        """Whether a change must be written."""

    def next_version(self, batch: TableBatch) -> int:
        """Return the version that the next change of a batch gives its item."""

    def put(
        self,
        batch: TableBatch,
        message: Action,
        change: Change,
        origin: Origin,
        transaction: TransactionPlace | None,
    ) -> None:
        """Write a change into a batch."""


class TransactionParts:
    """Decides parts of transactions on the rows of one partition, and carries them out."""

    def __init__(self, rows: TransactionRows) -> None:
        self._rows = rows

    def decide(self, batch: TableBatch, part: TransactionPart) -> PartDecision:
        """Decide each action of a part on the present item."""
        grown_bytes: dict[bytes, int] = {}
        outcomes: list[Change | DynamoDBError] = []
        for action in part.actions:
            outcomes.append(self._decide(batch, action, grown_bytes))  # noqa: PERF401 - a comprehension needs a frame
        return PartDecision(outcomes, grown_bytes)

    def _decide(
        self, batch: TableBatch, action: Action, grown_bytes: dict[bytes, int]
    ) -> Change | DynamoDBError:
        """The outcome of an action: a change, or an error with the units that it consumes anyway.

        An action pays when it is decided, and gets nothing back if other actions cancel the
        transaction. It gets its units back if the store refuses the transaction (``Release``).

        A false condition costs as it does in a single write (Developer Guide, "Working with items
        and attributes", conditional writes). Each item of a transaction is written twice, to
        prepare and to commit ("Amazon DynamoDB transactions: how it works", capacity management).
        The guide mentions no refund for a transaction that is canceled in between. An action that
        meets another transaction, or a limit, consumes nothing.
        """
        rows = self._rows
        position = action.position
        if position in rows.locks.positions:
            return TransactionConflictException()
        old = batch.items[position]
        try:
            change = decide_action(rows.definition, old, action.write)
            if rows.has_local_indexes:
                partition_key = action.partition_key
                before_bytes = grown_bytes.get(partition_key, 0)
                grown_bytes[partition_key] = before_bytes + rows.check_collection(
                    batch, partition_key, change, before_bytes
                )
        except ConditionalCheckFailedException as error:
            error.receipt = failed_action(old, action.write).receipt
            return error
        except CANCELLING as error:
            return error
        return change

    def prepare(
        self, batch: TableBatch, part: TransactionPart, decision: PartDecision
    ) -> Accepted | PartRejected:
        """Lock the items of a part if all its actions may be done."""
        accepted = self._accept(batch, part, decision)
        if accepted is None:
            return _rejected(decision)
        changes, reply = accepted
        rows = self._rows
        rows.locks.add(LockedPart(part, changes, rows.definition))
        batch.prepared.append(part.transaction_id)
        return reply

    def transact(
        self,
        batch: TableBatch,
        part: TransactionPart,
        other_rows: Sequence[tuple[bytes, bytes]],
        decision: PartDecision,
    ) -> Accepted | PartRejected:
        """Carry out a part with other rows of its transaction if all its actions may be done."""
        accepted = self._accept(batch, part, decision)
        if accepted is None:
            return _rejected(decision)
        changes, reply = accepted
        self._carry_out(batch, part, changes)
        batch.rows.update(other_rows)
        return reply

    def _accept(
        self, batch: TableBatch, part: TransactionPart, decision: PartDecision
    ) -> tuple[tuple[Change, ...], Accepted] | None:
        """The changes of a part and the reply if all its actions may be done; otherwise None."""
        has_local_indexes = self._rows.has_local_indexes
        changes: list[Change] = []
        outcomes: list[ActionDone] = []
        for action, change in zip(part.actions, decision.outcomes, strict=True):
            if not isinstance(change, Change):
                return None
            size_bytes = None
            if has_local_indexes:
                partition_key = action.partition_key
                size_bytes = batch.collections[partition_key] + decision.grown_bytes[partition_key]
            changes.append(change)
            outcomes.append(ActionDone(change.attributes, change.receipt, size_bytes))
        return tuple(changes), Accepted(tuple(outcomes))

    def carry_out_locked(self, batch: TableBatch, locked: LockedPart) -> None:
        """Carry out a part that was prepared, in a batch that a round commits."""
        changes = locked.changes
        if locked.table is not self._rows.definition:
            # Indexes may have been added since the part was prepared, so the followers compute all
            # entry changes.
            changes = tuple(structs.replace(change, global_changes=None) for change in changes)
        self._carry_out(batch, locked.part, changes)

    def _carry_out(
        self, batch: TableBatch, part: TransactionPart, changes: tuple[Change, ...]
    ) -> None:
        """Write the changes of a part; their sequence numbers are assigned only now."""
        rows = self._rows
        place = None
        is_recorded = rows.records_changes
        for action, change in zip(part.actions, changes, strict=True):
            if isinstance(action.write, Check) or not rows.has_effect(change):
                continue
            give_version(change, rows.next_version(batch))
            if is_recorded:
                place = TransactionPlace(part.transaction_id, action.ordinal, part.total)
            rows.put(batch, action, change, Origin.TRANSACTION, place)


def _rejected(decision: PartDecision) -> PartRejected:
    reasons: list[CancellationReason] = []
    receipts: list[Receipt] = []
    for outcome in decision.outcomes:
        reasons.append(NO_REASON if isinstance(outcome, Change) else cancellation_reason(outcome))
        receipts.append(outcome.receipt)
    return PartRejected(tuple(reasons), tuple(receipts))
