"""What every partition is: an actor that alone writes a range of rows, batch by batch.

All that waits in the mailbox is taken as one batch, decided in order, each message on what the
earlier ones of its batch leave, and committed as one group under the partition's head. Replies
go out when the group is durable; a reply without a write, when everything it saw is.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from functools import partial
from typing import Any, Final, Generic, TypeAlias, TypeVar

from dynactor.actors.runtime.commit_retry import commit_past_stalls
from dynactor.actors.runtime.mailbox import Envelope, Mailbox
from dynactor.model.errors import DynamoDBError, InternalServerError
from dynactor.model.values.stored_item import StoredItem
from dynactor.storage import catalog, key_layout
from dynactor.storage.catalog import PartitionHead
from dynactor.storage.store import Conflict, Damaged, Fenced, Full, Group, Store, StoreError

MAILBOX_MESSAGES: Final = 10_000
BATCH_MESSAGES: Final = 256
BATCH_BYTES: Final = 1024 * 1024
# What a batch may take of the loop; the next one is smaller where one took more. Updates of
# large items are dear, and their messages do not tell.
BATCH_SECONDS: Final = 0.005

UNKNOWN: Final = "Whether this was written is unknown"


class Batch:
    """The rows that one batch leaves, None for a deleted one, and the partition's counts."""

    def __init__(self, head: PartitionHead) -> None:
        self.rows: dict[bytes, bytes | None] = {}
        self.counter = head.counter
        self.item_counts = dict(head.item_counts)
        self.sizes_bytes = dict(head.sizes_bytes)
        self.applied = dict(head.applied)
        self.logged_bytes = head.logged_bytes

    def head(self) -> PartitionHead:
        """The head that goes with these rows."""
        return PartitionHead(
            self.counter, self.item_counts, self.sizes_bytes, self.applied, self.logged_bytes
        )

    def count(
        self, index_id: int, old: StoredItem | None, new: StoredItem | None, overhead_bytes: int = 0
    ) -> int:
        """Count an item or entry in and out; returns by how many bytes the storage grew."""
        # What nearly every write is: in place of an item, by one of another size or not.
        if new is not None and old is not None:
            grown_bytes = new.size_bytes - old.size_bytes
            if grown_bytes:
                self._grow(index_id, 0, grown_bytes)
            return grown_bytes
        grown_items = grown_bytes = 0
        if new is not None:
            grown_items, grown_bytes = 1, new.size_bytes + overhead_bytes
        elif old is not None:
            grown_items, grown_bytes = -1, -(old.size_bytes + overhead_bytes)
        self._grow(index_id, grown_items, grown_bytes)
        return grown_bytes

    def count_sizes(
        self, index_id: int, old_bytes: int | None, new_bytes: int | None, overhead_bytes: int = 0
    ) -> int:
        """As ``count``, by the sizes alone; None for an item that is not there."""
        grown_items = (new_bytes is not None) - (old_bytes is not None)
        grown_bytes = (new_bytes or 0) - (old_bytes or 0) + grown_items * overhead_bytes
        self._grow(index_id, grown_items, grown_bytes)
        return grown_bytes

    def _grow(self, index_id: int, items: int, size_bytes: int) -> None:
        if index_id in self.item_counts:
            self.item_counts[index_id] += items
            self.sizes_bytes[index_id] += size_bytes
        else:
            self.item_counts[index_id] = items
            self.sizes_bytes[index_id] = size_bytes


BatchT = TypeVar("BatchT", bound=Batch)


# A message and its reply, or the error that it is refused with. No class: each write has one.
_Outcome: TypeAlias = tuple[Envelope, Any]


class RowOwner(ABC, Generic[BatchT]):
    """The actor. Invariant: ``head`` is the head of the last accepted group."""

    def __init__(
        self, name: str, partition_number: int, store: Store, *, copy_messages: bool
    ) -> None:
        self.name = name
        self.mailbox = Mailbox(MAILBOX_MESSAGES, copy_messages=copy_messages)
        self.in_hand: list[Envelope] = []
        self.partition_number = partition_number
        self.head = PartitionHead()
        self._store = store
        self._head_key = key_layout.partition_head(partition_number)
        self._head_bytes: bytes | None = None
        self._last_commit: asyncio.Future[None] | None = None
        # For how long the batch in hand has kept nobody else from the loop.
        self._waited_seconds = 0.0

    def started(self) -> None:
        """The head has been loaded; called before the first batch."""

    @abstractmethod
    async def load(self, envelopes: list[Envelope]) -> BatchT:
        """Load what the messages will change."""

    @abstractmethod
    def decide(self, batch: BatchT, envelope: Envelope) -> Any:
        """What one message does to the batch; its reply, or the error it is refused with."""

    def was_accepted(self, batch: BatchT) -> None:
        """The store has taken a batch, and ``head`` is its head."""

    def became_durable(self, batch: BatchT) -> None:
        """A batch is durable; called before its replies go out."""

    def on_batch_rejected(self, envelopes: list[Envelope]) -> None:
        """The store refused a batch, nothing of it was written; called before its replies."""

    def on_batch_done(self) -> None:
        """All of a batch was accepted or refused; called before the next one is taken."""

    async def run(self) -> None:
        """Load the head, then work through the mailbox until it is closed and drained."""
        while not await self._is_head_loaded():
            self.in_hand = await self.mailbox.take(BATCH_MESSAGES, BATCH_BYTES)
            if not self.in_hand:
                return
        self.started()
        max_messages = BATCH_MESSAGES
        loop = asyncio.get_running_loop()
        while batch := self.in_hand or await self.mailbox.take(max_messages, BATCH_BYTES):
            self.in_hand = batch
            began = loop.time()
            self._waited_seconds = 0.0
            await self._work(batch)
            self.on_batch_done()
            self.in_hand = []
            if loop.time() - began - self._waited_seconds > BATCH_SECONDS:
                max_messages = max(1, len(batch) // 2)
            else:
                max_messages = min(BATCH_MESSAGES, max_messages * 2)
            if len(self.mailbox):
                # A mailbox that is never empty must not keep the loop to itself.
                await asyncio.sleep(0)
        if self._last_commit is not None and not self._last_commit.done():
            await asyncio.wait([self._last_commit])

    async def _is_head_loaded(self) -> bool:
        """Load the head. If it can't be read, what is asked for meanwhile is refused.

        Each batch tries again: a partition is not given up for its disk.
        """
        try:
            await self._load_head()
        except StoreError as error:
            self._refuse(self.in_hand, InternalServerError(f"Nothing was written: {error}"))
            self.in_hand = []
            return False
        return True

    async def _load_head(self) -> None:
        (self._head_bytes,) = await self._store.latest.load([self._head_key])
        self.head = catalog.decode_partition_head(self._head_bytes)

    async def _work(self, envelopes: list[Envelope]) -> None:
        try:
            batch, outcomes = await self._decide_and_commit(envelopes)
        except _BatchRejected as refusal:
            self._refuse(envelopes, refusal.error)
        except Fenced as error:
            refused = InternalServerError("Nothing was written: the data have another owner now")
            refused.__cause__ = error
            self._refuse(envelopes, refused)
            raise
        except StoreError as error:
            if len(envelopes) == 1 or not isinstance(error, Damaged):
                self._refuse(envelopes, InternalServerError(f"Nothing was written: {error}"))
            else:
                # One damaged item must not refuse the others of its batch.
                for envelope in envelopes:
                    await self._work([envelope])
        else:
            commit = self._last_commit
            if commit is None:
                self._settle(batch, outcomes, None)
            else:
                # Of a commit that is done, too: those before this one may not have been told yet.
                commit.add_done_callback(partial(self._settle, batch, outcomes))

    def _refuse(self, envelopes: list[Envelope], error: DynamoDBError) -> None:
        self.on_batch_rejected(envelopes)
        for envelope in envelopes:
            envelope.refuse(error)

    async def _decide_and_commit(self, envelopes: list[Envelope]) -> tuple[BatchT, list[_Outcome]]:
        while True:
            batch = await self.load(envelopes)
            if self._is_store_in_doubt() and await self._is_taken_back():
                continue
            outcomes = [(envelope, self.decide(batch, envelope)) for envelope in envelopes]
            # What is decided after a commit that failed has seen what may never be durable.
            # Only another commit tells whether the store goes on, so there is one in any case.
            if batch.rows or self._is_store_in_doubt():
                try:
                    await self._commit(batch)
                except Fenced:
                    raise
                except Conflict:
                    # The store was opened again, without the commit that had failed.
                    await self._load_head()
                    continue
            return batch, outcomes

    async def _is_taken_back(self) -> bool:
        """Whether the store has rolled back a commit of this partition; the head is then reloaded.

        After a failed commit the store may go back to what is durable at any moment. What is
        loaded from then on does not go with what the partition keeps in memory.
        """
        (head_bytes,) = await self._store.latest.load([self._head_key])
        if head_bytes == self._head_bytes:
            return False
        await self._load_head()
        return True

    def _is_store_in_doubt(self) -> bool:
        """Whether this partition's last commit failed, or it has made none to know better."""
        commit = self._last_commit
        return commit is None or (commit.done() and commit.exception() is not None)

    async def _commit(self, batch: BatchT) -> None:
        """Commit a batch.

        Raises:
            _Refused: the store takes no writes; nothing was written.
            Fenced: a guard failed; nothing was written.
            Conflict: the head is not the stored one; nothing was written.
        """
        group = self._group(batch)
        try:
            self._last_commit = await commit_past_stalls(self._store, [group])
        except Conflict:
            raise
        except Full as error:
            raise _BatchRejected(
                f"Nothing was written, the disk is full: {error}", error
            ) from error
        except StoreError as error:
            raise _BatchRejected(f"Nothing was written: {error}", error) from error
        self.head, self._head_bytes = batch.head(), group.head
        self.was_accepted(batch)

    def _group(self, batch: BatchT) -> Group:
        """A batch as the store takes it."""
        return Group(
            head_key=self._head_key,
            expected_head=self._head_bytes,
            head=catalog.encode_partition_head(batch.head()),
            puts=[(key, value) for key, value in batch.rows.items() if value is not None],
            deletes=[key for key, value in batch.rows.items() if value is None],
        )

    def _settle(
        self, batch: BatchT, outcomes: list[_Outcome], commit: asyncio.Future[None] | None
    ) -> None:
        """Send the replies of a batch, once everything it wrote and saw is durable."""
        failure = None if commit is None else commit.exception()
        if failure is None:
            self.became_durable(batch)
        for envelope, result in outcomes:
            is_refused = isinstance(result, DynamoDBError)
            if failure is not None:
                known = "Nothing was written" if is_refused else UNKNOWN
                envelope.refuse(InternalServerError(f"{known}: {failure}"))
            elif is_refused:
                envelope.refuse(result)
            else:
                envelope.answer(result)


class _BatchRejected(Exception):
    """The store refused a batch as a whole."""

    def __init__(self, message: str, cause: StoreError) -> None:
        super().__init__(message)
        self.error = InternalServerError(message)
        # For who waits until the store takes writes, and tells this apart from what is damaged.
        self.error.__cause__ = cause
