"""The units that messages of one partition have paid, until their outcome is known.

A write pays between its decision and its commit. A batch that is decided again, because its commit
met a conflict, pays once: the charges remember each payment or refusal. When the batch is accepted
its units count as consumed; when it is rejected they are given back. The units of a prepared
transaction outlive its batch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dynactor.actors.limits.throttle import PaidWrite, TableThrottle
from dynactor.actors.partition.item_locks import Release, message_actions
from dynactor.actors.partition.messages import WriteItem
from dynactor.actors.partition.transaction_parts import PartDecision
from dynactor.actors.runtime.mailbox import Envelope
from dynactor.model.errors import (
    ConditionalCheckFailedException,
    DynamoDBError,
    Throttled,
    TransactionConflictException,
)
from dynactor.model.writes.change import Change, refused_change


class Charges:
    """The units of the batch in progress, by payer: the reply of a write, or an action.

    The units of prepared transactions are kept by the transaction's id.
    """

    def __init__(self, partition_number: int, throttle: TableThrottle) -> None:
        self._partition_number = partition_number
        self._throttle = throttle
        self._in_progress: dict[object, PaidWrite | Throttled] = {}
        self._prepared: dict[bytes, list[PaidWrite]] = {}

    def charge(self, envelope: Envelope, decision: Any) -> Any:
        """Charge the units of a decision; return the decision, or the refusal in its place."""
        message: Any = envelope.message
        # Nearly every decision is the change of a single write.
        if isinstance(decision, Change):
            paid = self._in_progress.get(envelope.reply) or self._take(
                envelope.reply, message.position, decision
            )
            return paid if isinstance(paid, Throttled) else decision
        if isinstance(decision, PartDecision):
            reply, charged = envelope.reply, decision
            for place, action in enumerate(message.part.actions):
                outcome = decision.outcomes[place]
                after = self._charge_one((reply, action.ordinal), action.position, outcome)
                if after is not outcome:
                    charged = charged.replaced(place, after)
            return charged
        if isinstance(message, WriteItem):
            return self._charge_one(envelope.reply, message.position, decision)
        if isinstance(message, Release):
            self.settle(message.transaction_id, gives_back=message.gives_back)
        return decision

    def _charge_one(
        self, payer: object, position: bytes, outcome: Change | DynamoDBError
    ) -> Change | DynamoDBError:
        """Charge one write or action.

        A false condition costs as much as the write; any other error costs nothing.
        """
        if isinstance(outcome, Change):
            change = outcome
        elif isinstance(outcome, ConditionalCheckFailedException):
            change = refused_change(outcome.receipt)
        else:
            if isinstance(outcome, TransactionConflictException):
                self._throttle.count_conflict(position)
            return outcome
        paid = self._in_progress.get(payer) or self._take(payer, position, change)
        return paid if isinstance(paid, Throttled) else outcome

    def _take(self, payer: object, position: bytes, change: Change) -> PaidWrite | Throttled:
        """Take the units of a write that has not paid yet; remember the payment or the refusal."""
        paid = self._throttle.take_write(self._partition_number, position, change)
        self._in_progress[payer] = paid
        return paid

    def spend(self) -> None:
        """Count the batch's units as consumed; the batch is not decided again."""
        for paid in self._in_progress.values():
            if not isinstance(paid, Throttled):
                self._throttle.count_write(paid)
        self._in_progress.clear()

    def give_back(self, envelopes: Iterable[Envelope]) -> None:
        """Return the units of messages for which nothing was written."""
        for envelope in envelopes:
            actions = message_actions(envelope.message)
            for payer in (envelope.reply, *((envelope.reply, each.ordinal) for each in actions)):
                paid = self._in_progress.pop(payer, None)
                if isinstance(paid, PaidWrite):
                    self._throttle.give_back(self._partition_number, paid)

    def forget_batch(self) -> None:
        """Keep the units of a batch taken: the actor crashed, so the outcome is unknown."""
        self._in_progress.clear()

    def keep(self, transaction_id: bytes, envelope: Envelope) -> None:
        """Keep the units of a prepared transaction until its outcome is known."""
        reply, in_progress = envelope.reply, self._in_progress
        kept: list[PaidWrite] = []
        self._prepared[transaction_id] = kept
        for action in message_actions(envelope.message):
            paid = in_progress.pop((reply, action.ordinal), None)
            if isinstance(paid, PaidWrite):
                kept.append(paid)

    def settle(self, transaction_id: bytes, *, gives_back: bool) -> None:
        """End a prepared transaction: count its units as consumed, or give them back."""
        for paid in self._prepared.pop(transaction_id, ()):
            if gives_back:
                self._throttle.give_back(self._partition_number, paid)
            else:
                self._throttle.count_write(paid)

    def give_back_prepared(self) -> None:
        """Give back the units of all prepared transactions: none of them is committed."""
        for transaction_id in list(self._prepared):
            self.settle(transaction_id, gives_back=True)
