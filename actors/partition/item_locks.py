"""A partition's part in transactions: its messages, and the items that it keeps locked.

A transaction on several partitions takes three steps. *Prepare* decides each action on the present
item. If all actions may be done, their items are locked: no other write may change them. *Join*
makes the rows, sequence numbers and records of all transactions of a round
(``dynactor.actors.transactions.rounds``). From then on the partition waits for *Resolve*, which
says whether they were committed, and releases the locks if so. *Release* ends a transaction without
a commit: it releases the locks, and gives back the units if the server failed. Locks are kept in
memory only, so a restarted partition has no locks.

A transaction on one partition is one message, *Transact*, in a batch of the partition.

The structs have ``gc=False``, because the garbage collector would walk those of transactions in
flight repeatedly. They are part of no reference cycle.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from dynactor.actors.runtime.mailbox import Message
from dynactor.model.capacity import Receipt
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import CancellationReason
from dynactor.model.values.item import Item
from dynactor.model.writes.change import Change
from dynactor.model.writes.transaction import Action
from dynactor.storage.store import Group


class ActionDone(Struct, frozen=True, gc=False):
    """The result of an action; the size is None on a table without local indexes."""

    attributes: Item | None
    receipt: Receipt
    collection_size_bytes: int | None = None


class PartRejected(Struct, frozen=True, gc=False):
    """The reasons why a transaction is canceled, one for each of its actions in this partition.

    ``receipts`` are the units that each action has consumed anyway; empty if nothing was decided.
    """

    reasons: tuple[CancellationReason, ...]
    receipts: tuple[Receipt, ...] = ()


class Accepted(Struct, frozen=True, gc=False):
    """The reply if all actions in this partition may be done, or were done: their results."""

    outcomes: tuple[ActionDone, ...]


class Joined(Struct, frozen=True, gc=False):
    """A partition's group of a round, to be committed with the other groups."""

    group: Group


class TransactionPart(Struct, frozen=True, gc=False):
    """The actions of a transaction in one partition; ``total`` is the number of all its actions."""

    transaction_id: bytes
    total: int
    actions: tuple[Action, ...]


class Prepare(Message[Accepted | PartRejected], frozen=True, gc=False):
    """Decide these actions, and lock their items if all may be done."""

    part: TransactionPart


class Transact(Message[Accepted | PartRejected], frozen=True, gc=False):
    """Do all of these actions or none, with other rows that belong to the transaction."""

    part: TransactionPart
    rows: tuple[tuple[bytes, bytes], ...] = ()


def message_actions(message: Message[Any]) -> tuple[Action, ...]:
    """Return the actions that a message decides; empty if it is not part of a transaction."""
    # A tuple of classes, because a union would be created with each call.
    return message.part.actions if isinstance(message, (Prepare, Transact)) else ()


class Join(Message[Joined | None], frozen=True):
    """Make one group of prepared transactions; the reply is None if one is not prepared.

    ``rows`` are other rows of these transactions.
    """

    round_id: bytes
    transaction_ids: tuple[bytes, ...]
    rows: tuple[tuple[bytes, bytes], ...] = ()


class Release(Message[None], frozen=True):
    """Release the locks of a transaction, and give back its units if ``gives_back``."""

    transaction_id: bytes
    gives_back: bool = False


class Resolve(Message[None], frozen=True):
    """Tells a partition whether the group of a round that it joined was committed."""

    round_id: bytes
    committed: bool


class LockedPart(Struct, frozen=True, gc=False):
    """A prepared transaction: its part, the decision of each action, and the table's definition."""

    part: TransactionPart
    changes: tuple[Change, ...]
    table: TableDefinition


class ItemLocks:
    """The items that transactions have locked in one partition.

    Invariant: each locked position belongs to exactly one of the prepared transactions.
    """

    def __init__(self) -> None:
        # The transaction that holds each lock.
        self.positions: dict[bytes, bytes] = {}
        self._prepared: dict[bytes, LockedPart] = {}

    def get(self, transaction_id: bytes) -> LockedPart | None:
        """The part of a prepared transaction; None if it is not prepared here."""
        return self._prepared.get(transaction_id)

    def add(self, held: LockedPart) -> None:
        """Lock the items of a transaction."""
        transaction_id = held.part.transaction_id
        self._prepared[transaction_id] = held
        for action in held.part.actions:
            assert action.position not in self.positions
            self.positions[action.position] = transaction_id

    def drop(self, transaction_id: bytes) -> None:
        """Release the locks of a transaction, if it has any."""
        held = self._prepared.pop(transaction_id, None)
        if held is not None:
            for action in held.part.actions:
                del self.positions[action.position]

    def clear(self) -> None:
        """Release all locks."""
        self.positions.clear()
        self._prepared.clear()
