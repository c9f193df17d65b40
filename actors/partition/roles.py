"""The roles around the loop of a partition: the core that decides, and the effects of batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from dynactor.actors.partition.batch import Batch
from dynactor.actors.runtime.mailbox import Envelope, Message
from dynactor.storage.catalog import PartitionHead

BatchT = TypeVar("BatchT", bound=Batch)
BatchT_contra = TypeVar("BatchT_contra", bound=Batch, contravariant=True)
# A message, and its reply or the error that refuses it. A tuple, because a class would cost time
# with each write.
Outcome: TypeAlias = tuple[Envelope, Any]


class RowLoader(Protocol):
    """Loads the accepted values of rows."""

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of these keys in order; None for missing keys."""


class Core(Protocol[BatchT]):
    """Decides the effect of messages on a partition's rows. It awaits nothing and reads no clock.

    ``decide`` is pure: it changes neither the core nor the batch, and returns the same decision if
    called again. A decision is a value whose type depends on the message. ``apply`` adds the
    decision's rows to the batch.
    """

    def begin(self, head: PartitionHead) -> None:
        """Start with the stored head; called before the first batch, also after a crash."""

    def forget(self) -> None:
        """Forget all decisions on rows that the store may have lost."""

    def open(self, head: PartitionHead, messages: Sequence[Message[Any]]) -> BatchT:
        """Return an empty batch for these messages."""

    def row_keys(self, batch: BatchT) -> list[bytes]:
        """Return the keys of the rows that a batch needs for its decisions."""

    def fill(self, batch: BatchT, values: Sequence[bytes | None]) -> None:
        """Add the values of its ``row_keys`` to a batch; they have the same order."""

    def decide(self, batch: BatchT, message: Message[Any]) -> Any:
        """Decide one message on the batch's rows; return a decision, or the error of the reply."""

    def apply(self, batch: BatchT, message: Message[Any], decision: Any) -> Any:
        """Add a decision's rows to the batch; return the reply, or the error of the reply."""

    def accepted(self, batch: BatchT, head: PartitionHead) -> None:
        """Called when the store has accepted a batch; ``head`` is the partition's head now."""

    def rejected(self, batch: BatchT) -> None:
        """Called when the store has refused a batch."""


class Effects(Protocol[BatchT_contra]):
    """The actions of the loop besides writing rows."""

    def begin(self, head: PartitionHead) -> None:
        """Start with the stored head; called before the first batch, also after a crash."""

    def forget(self) -> None:
        """Undo the effects of decisions that are void because the store may have lost rows."""

    def loaded(self, batch: BatchT_contra) -> None:
        """Set the time of a batch, now that its rows are loaded."""

    def charge(self, envelope: Envelope, decision: Any) -> Any:
        """Charge the units of a decision; return the decision, or the refusal in its place."""

    def accepted(self, batch: BatchT_contra, outcomes: Sequence[Outcome]) -> None:
        """Called when the store has accepted a batch, or the batch has nothing to write."""

    def durable(self, batch: BatchT_contra) -> None:
        """Called when a batch is durable, before its replies are sent."""

    def rejected(self, envelopes: Sequence[Envelope]) -> None:
        """Called when nothing was written for these messages, before their replies are sent."""

    def done(self) -> None:
        """Called when a batch was accepted or rejected, before the next one is taken."""


class Definition(Protocol):
    """The definition of the table that the core decides by."""

    async def follow(self, version: int, rows: RowLoader) -> None:
        """Load the stored definition from these rows, unless the core decides by this version.

        Raises ``HeadGone`` if the table was deleted, or ``StoreError``.
        """


class NoEffects:
    """The effects of a partition without charges and followers."""

    def begin(self, head: PartitionHead) -> None:
        """Do nothing."""

    def forget(self) -> None:
        """Do nothing."""

    def loaded(self, batch: Batch) -> None:
        """Do nothing."""

    def charge(self, envelope: Envelope, decision: Any) -> Any:  # noqa: ARG002 - of the protocol
        """Return the decision unchanged: it costs nothing."""
        return decision

    def accepted(self, batch: Batch, outcomes: Sequence[Outcome]) -> None:
        """Do nothing."""

    def durable(self, batch: Batch) -> None:
        """Do nothing."""

    def rejected(self, envelopes: Sequence[Envelope]) -> None:
        """Do nothing."""

    def done(self) -> None:
        """Do nothing."""
