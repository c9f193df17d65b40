"""A partition's part in transactions: its messages, and the keys that it keeps locked.

A transaction on several partitions takes three steps. *Prepare* decides each action on the item
that is there; if all may be done their keys are held: nobody else writes these items. *Join*
makes the rows of all the transactions of a round (``dynactor.actors.transactions.rounds``), numbers
and records among them; from then on the partition does nothing else until *Resolve* tells it
whether they were committed, and lets their keys go if so. *Release* lets the keys of a transaction
go that is not to be, and gives back its units where it is the server that could not do it.
Locks are kept in memory only, so a partition that restarts has none.

A transaction on one partition is one message, *Transact*, and part of its batch.

What many transactions have in hand at a time is kept from the garbage collector, which would walk
it again and again; nothing of it refers back.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from dynactor.actors.runtime.mailbox import Message
from dynactor.model.capacity.capacity import Receipt
from dynactor.model.errors import CancellationReason
from dynactor.model.tables.table import TableDefinition
from dynactor.model.values.item import Item
from dynactor.model.writes.change import Change
from dynactor.model.writes.transaction import Action
from dynactor.storage.store import Group


class Done(Struct, frozen=True, gc=False):
    """What an action gives; the size is None on a table without local indexes."""

    attributes: Item | None
    receipt: Receipt
    collection_size_bytes: int | None = None


class PartRejected(Struct, frozen=True, gc=False):
    """Why a transaction is cancelled, for each of its actions in this partition.

    ``receipts`` are what each action has taken all the same; none where nothing was decided.
    """

    reasons: tuple[CancellationReason, ...]
    receipts: tuple[Receipt, ...] = ()


class Accepted(Struct, frozen=True, gc=False):
    """All actions in this partition may be done, or are: what each of them gives."""

    outcomes: tuple[Done, ...]


class Joined(Struct, frozen=True, gc=False):
    """What is to be committed."""

    group: Group


class TransactionPart(Struct, frozen=True, gc=False):
    """What a transaction does in one partition; ``total`` is the number of all its actions."""

    transaction_id: bytes
    total: int
    actions: tuple[Action, ...]


class Prepare(Message[Accepted | PartRejected], frozen=True, gc=False):
    """Decide these actions, and hold their keys if all may be done."""

    part: TransactionPart


class Transact(Message[Accepted | PartRejected], frozen=True, gc=False):
    """Do all of these actions or none, with other rows that belong to the transaction."""

    part: TransactionPart
    rows: tuple[tuple[bytes, bytes], ...] = ()


def actions_of(message: Message[Any]) -> tuple[Action, ...]:
    """Return the actions that a message decides; none if it is not part of a transaction."""
    # A tuple of classes: a union of them would be made with each call.
    return message.part.actions if isinstance(message, (Prepare, Transact)) else ()


class Join(Message[Joined | None], frozen=True):
    """Make one group of prepared transactions; None if nothing is known of one of them.

    ``rows`` are other rows that belong to them.
    """

    round_id: bytes
    transaction_ids: tuple[bytes, ...]
    rows: tuple[tuple[bytes, bytes], ...] = ()


class Release(Message[None], frozen=True):
    """Let the keys of a transaction go, and perhaps give back what it has paid."""

    transaction_id: bytes
    gives_back: bool = False


class Resolve(Message[None], frozen=True):
    """Whether the group of a round that was joined is committed."""

    round_id: bytes
    committed: bool


class LockedPart(Struct, frozen=True, gc=False):
    """A prepared transaction: its part, what was decided, action by action, and for which table."""

    part: TransactionPart
    changes: tuple[Change, ...]
    table: TableDefinition


class ItemLocks:
    """The keys that transactions hold in one partition.

    Invariant: each position is that of exactly one of the prepared transactions.
    """

    def __init__(self) -> None:
        # Whose each of them is.
        self.positions: dict[bytes, bytes] = {}
        self._prepared: dict[bytes, LockedPart] = {}

    def get(self, transaction_id: bytes) -> LockedPart | None:
        """A prepared transaction."""
        return self._prepared.get(transaction_id)

    def add(self, held: LockedPart) -> None:
        """Hold the keys of a transaction."""
        transaction_id = held.part.transaction_id
        self._prepared[transaction_id] = held
        for action in held.part.actions:
            assert action.position not in self.positions
            self.positions[action.position] = transaction_id

    def drop(self, transaction_id: bytes) -> None:
        """Let the keys of a transaction go, if there are any."""
        held = self._prepared.pop(transaction_id, None)
        if held is not None:
            for action in held.part.actions:
                del self.positions[action.position]

    def clear(self) -> None:
        """Let everything go."""
        self.positions.clear()
        self._prepared.clear()
