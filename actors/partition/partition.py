"""A partition: the only actor that writes a range of rows, batch by batch.

The loop takes the waiting messages as one batch and loads the rows that they concern. The core
decides each message on the results of the earlier ones. The loop commits the rows as one group
under the partition's head, and sends the replies when the group is durable. A reply to a message
that writes nothing is sent when everything that its decision read is durable.

The sender's turn of the event loop carries out a single write if the partition is idle and the rows
are in memory. Waking the loop would cost as much as the write.

A core decides and does no I/O. Tables have one core (``table_core``), global indexes another one
(``index_partition``). Only the loop awaits, and only the loop carries out effects: units of
throughput, counters of the metrics, the tail of the change feed (``table_partition``).

Transactions over several partitions are committed by a round, instead of the loop
(``participant``).

A split deletes the head in a commit of its own, while the loop works on. The next commit of the
loop is refused. Then the loop ends, and its messages go to the children (``partition_actors``).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Any, Final, Generic, Protocol, TypeAlias

from dynactor.actors.partition.at_once import decide_nowait
from dynactor.actors.partition.item_locks import Join
from dynactor.actors.partition.roles import BatchT, Core, Definition, Effects, Outcome, RowLoader
from dynactor.actors.runtime.commit_retry import commit_past_stalls
from dynactor.actors.runtime.mailbox import Envelope, Mailbox, Message
from dynactor.actors.runtime.ref import Ref
from dynactor.model.errors import DynamoDBError, InternalServerError
from dynactor.storage import catalog, key_layout
from dynactor.storage.catalog import PartitionHead
from dynactor.storage.store import (
    Conflict,
    Damaged,
    Fenced,
    Full,
    Group,
    Locked,
    Store,
    StoreError,
)

MAILBOX_MESSAGES: Final = 10_000
BATCH_MESSAGES: Final = 256
BATCH_BYTES: Final = 1024 * 1024
# Maximum time of the event loop for a batch; after a longer one the next batch is smaller. Updates
# of large items are expensive although their messages are small.
BATCH_SECONDS: Final = 0.005
# After this many conflicts in a row, a partition locks its head against other writers.
CONFLICTS_BEFORE_LOCK: Final = 3

UNKNOWN: Final = "Whether this was written is unknown"

Commit: TypeAlias = asyncio.Future[None]


class HeadGone(StoreError):
    """The partition has no head any more: it was split, or its table or index was deleted."""


class Partition(Generic[BatchT]):
    """The actor of a partition. Invariant: ``head`` is the head of the last accepted group."""

    def __init__(  # noqa: PLR0917 - its parts, made and named in two places
        self,
        name: str,
        number: int,
        store: Store,
        core: Core[BatchT],
        effects: Effects[BatchT],
        committer: Committer[BatchT] | None = None,
        *,
        definition: Definition | None = None,
        copy_messages: bool,
        mailbox: Mailbox | None = None,
        single: type[Message[Any]] | None = None,
    ) -> None:
        """``single``: the kind of message that the sender's turn may carry out."""
        self.name = name
        if mailbox is None:
            mailbox = Mailbox(MAILBOX_MESSAGES, copy_messages=copy_messages)
        self.mailbox = mailbox
        self.ref = Ref(self.mailbox)
        self.in_progress: list[Envelope] = []
        self.head = PartitionHead()
        self._store = store
        self._core = core
        self._effects = effects
        self._committer = committer
        self._definition = definition
        self._head_key = key_layout.partition_head(number)
        self._head_bytes: bytes | None = None
        self._last_commit: Commit | None = None
        # The number of batches whose replies wait for their commit.
        self._unsettled_count = 0
        # The locked head; None while the head is not locked.
        self._locked: Locked | None = None
        # Whether another commit may have changed the head.
        self.is_stale = False
        # Completes when the outcome of a split in progress is known. If the partition was split,
        # the mailbox is held then.
        self.split: asyncio.Future[None] | None = None
        # The time that the decisions of the present batch took. Loads and commits are not counted,
        # because other tasks run while a remote store works.
        self._busy_seconds = 0.0
        self._single = single
        # Whether the last batch had several messages. Then the next one likely has several, too.
        self._is_shared = False

    @property
    def decisions(self) -> Ref:
        """The mailbox for the outcomes of rounds that the partition has joined."""
        assert self._committer is not None, "only a table's partition joins rounds"
        return self._committer.decisions

    async def run(self) -> None:
        """Load the head, then work through the mailbox until it is closed and drained.

        After a split, return at once; ``in_progress`` and the mailbox have the messages that were
        not carried out.
        """
        if self._committer is not None:
            await self._committer.resume(self)
        while not await self._try_load_head():
            if not self.in_progress:
                self.in_progress = await self.mailbox.take(BATCH_MESSAGES, BATCH_BYTES)
            if self.mailbox.is_held or not self.in_progress:
                return
        self._core.begin(self.head)
        self._effects.begin(self.head)
        if self._single is not None:
            self.mailbox.at_once = self._carry_out_at_once
        max_messages = BATCH_MESSAGES
        while batch := self.in_progress or await self.mailbox.take(max_messages, BATCH_BYTES):
            self.in_progress = batch
            self._is_shared = len(batch) > 1
            self._busy_seconds = 0.0
            if isinstance(batch[0].message, Join):
                batch = await self._join(batch)
            left = await self._work(batch) if batch else []
            self._effects.done()
            if self._busy_seconds > BATCH_SECONDS:
                max_messages = max(1, len(self.in_progress) // 2)
            else:
                max_messages = min(BATCH_MESSAGES, max_messages * 2)
            self.in_progress = left
            if self.mailbox.is_held:
                break
            if len(self.mailbox):
                # A mailbox that is never empty must not block the event loop.
                await asyncio.sleep(0)
        if self._last_commit is not None and not self._last_commit.done():
            await asyncio.wait([self._last_commit])
        if self.mailbox.is_held:
            # Prepared transactions are prepared again at the children.
            self._forget()

    # -- load -------------------------------------------------------------------------------

    async def _try_load_head(self) -> bool:
        """Load the head; return False, after refusing the batch in progress, if that fails.

        The next batch tries again, so a disk error doesn't end the partition. A batch that meets a
        split is not refused.
        """
        self._forget()
        try:
            await self._load_head()
        except StoreError as error:
            if isinstance(error, HeadGone) and await self._wait_split():
                return False
            self._refuse(self.in_progress, InternalServerError(f"Nothing was written: {error}"))
            self.in_progress = []
            return False
        return True

    @property
    def _rows(self) -> RowLoader:
        """Loads rows through the lock while the head is locked, and otherwise from the store."""
        return self._locked or self._store.latest

    async def _load_head(self) -> None:
        (head_bytes,) = await self._rows.load([self._head_key])
        if head_bytes is None:
            raise HeadGone("the partition has ended")
        head = catalog.decode_partition_head(head_bytes)
        if not self.head.has_same_counts(head):
            # The store has lost commits.
            self._forget()
        # First the definition: with the new head, a commit by the old definition would succeed.
        if self._definition is not None:
            await self._definition.follow(head.definition_version, self._rows)
        self.head, self._head_bytes = head, head_bytes
        self.is_stale = False

    def _forget(self) -> None:
        """Forget all decisions on rows that the store may have lost."""
        self._core.forget()
        self._effects.forget()

    async def load(self, batch: BatchT) -> bool:
        """Load the rows of a batch, and the time; raises ``StoreError``.

        False if another commit has changed the head, or the store has rolled back commits; then the
        head is reloaded, and the batch is void.
        """
        row_keys = self._core.row_keys(batch)
        if row_keys:
            self._core.fill(batch, await self._rows.load(row_keys))
        if (self.is_stale or self._is_store_in_doubt()) and await self._has_head_changed():
            return False
        self._effects.loaded(batch)
        return True

    def _is_store_in_doubt(self) -> bool:
        """Whether this partition's last commit failed, or the partition has made no commit yet."""
        commit = self._last_commit
        return commit is None or (commit.done() and commit.exception() is not None)

    async def _has_head_changed(self) -> bool:
        """Whether the stored head differs from the one in memory; if so, reload the head.

        After a failed commit the store may return to its durable state at any moment. Rows that are
        loaded after that don't match the partition's memory. A round of unknown outcome may have
        been written.
        """
        # Stale until it is read: the load may fail.
        self.is_stale = True
        (head_bytes,) = await self._rows.load([self._head_key])
        if head_bytes == self._head_bytes:
            self.is_stale = False
            return False
        await self._load_head()
        return True

    # -- decide and commit ------------------------------------------------------------------

    async def _wait_split(self) -> bool:
        """Wait until the outcome of a split in progress is known; False if there is none.

        Until then the head may come back, because a store that is reopened loses commits.
        """
        if self.split is None:
            return False
        await asyncio.wait([self.split])
        return True

    async def _work(self, envelopes: list[Envelope]) -> list[Envelope]:
        """Carry out a batch of messages; return those for the children if it was split meanwhile.

        A guarded commit belongs to work with one owner, so ``Fenced`` ends the actor.
        """
        try:
            batch, outcomes = await self._decide_and_commit(envelopes)
        except _BatchRejected as refusal:
            self._refuse(envelopes, refusal.error)
        except HeadGone as error:
            if not await self._wait_split():
                self._refuse(envelopes, InternalServerError(f"Nothing was written: {error}"))
            elif self.mailbox.is_held:
                # The children take the units again.
                self._effects.rejected(envelopes)
                return envelopes
            else:
                return await self._work(envelopes)
        except Fenced as error:
            refused = InternalServerError("Nothing was written: the data have another owner now")
            refused.__cause__ = error
            self._refuse(envelopes, refused)
            raise
        except StoreError as error:
            if len(envelopes) == 1 or not isinstance(error, Damaged):
                self._refuse(envelopes, InternalServerError(f"Nothing was written: {error}"))
            else:
                # One damaged item must not cause refusals of the other messages of its batch.
                for place, envelope in enumerate(envelopes):
                    if await self._work([envelope]):
                        return envelopes[place:]
        else:
            # First the replies that need not wait for the commit.
            self._effects.accepted(batch, outcomes)
            self._settle_later(batch, outcomes)
        return []

    async def _decide_and_commit(self, envelopes: list[Envelope]) -> tuple[BatchT, list[Outcome]]:
        conflicts = 0
        while True:
            try:
                if conflicts < CONFLICTS_BEFORE_LOCK:
                    decided = await self._decide_once(envelopes)
                else:
                    decided = await self._decide_locked(envelopes)
            except Fenced:
                raise
            except Conflict:
                # Another writer or a change of the table changed the head, or the store was
                # reopened without the last commit. Until the head is loaded, it is stale.
                conflicts += 1
                self.is_stale = True
            else:
                if decided is not None:
                    return decided
                continue
            await self._load_head()

    async def _decide_locked(
        self, envelopes: list[Envelope]
    ) -> tuple[BatchT, list[Outcome]] | None:
        """Decide while the head is locked, so that no other writer changes the head first."""
        async with self._store.locked([self._head_key]) as locked:
            self._locked = locked
            try:
                await self._load_head()
                return await self._decide_once(envelopes)
            finally:
                self._locked = None

    async def _decide_once(self, envelopes: list[Envelope]) -> tuple[BatchT, list[Outcome]] | None:
        """Decide and commit a batch; None if it is void, see ``load``. Raises ``Conflict``."""
        core, charge = self._core, self._effects.charge
        messages = [envelope.message for envelope in envelopes]
        batch = core.open(self.head, messages)
        if not await self.load(batch):
            return None
        outcomes: list[Outcome] = []
        began = perf_counter()
        for envelope, message in zip(envelopes, messages, strict=True):
            decision = charge(envelope, core.decide(batch, message))
            outcomes.append((envelope, core.apply(batch, message, decision)))
        self._busy_seconds += perf_counter() - began
        # Decisions after a failed commit have read rows that may never be durable. Only another
        # commit shows whether the store has these rows, so even an empty batch is committed.
        if batch.rows or self._is_store_in_doubt():
            try:
                await self._commit(batch)
            except Conflict:
                core.rejected(batch)
                raise
        return batch, outcomes

    async def _commit(self, batch: BatchT) -> None:
        """Commit a batch.

        Writes nothing and raises ``_BatchRejected`` if the store takes no writes, ``Fenced`` if a
        guard failed, or ``Conflict`` if the head is not the stored one.
        """
        head = batch.head()
        group = self.group(batch, head)
        try:
            self._last_commit = await commit_past_stalls(self._locked or self._store, [group])
        except Conflict:
            raise
        except StoreError as error:
            self._core.rejected(batch)
            reason = ", the disk is full" if isinstance(error, Full) else ""
            raise _BatchRejected(f"Nothing was written{reason}: {error}", error) from error
        self.head, self._head_bytes = head, group.head
        self._core.accepted(batch, head)

    def group(self, batch: BatchT, head: PartitionHead) -> Group:
        """The group of a batch, for the store."""
        return Group(
            head_key=self._head_key,
            expected_head=self._head_bytes,
            head=catalog.encode_partition_head(head),
            puts=[(key, value) for key, value in batch.rows.items() if value is not None],
            deletes=[key for key, value in batch.rows.items() if value is None],
        )

    def _carry_out_at_once(self, envelope: Envelope) -> bool:
        """Carry out a single write; False, and nothing is changed, if the loop must do it."""
        is_single = self._single is not None and isinstance(envelope.message, self._single)
        is_changing = self.is_stale or self.split is not None or self._is_store_in_doubt()
        commit = self._last_commit
        if not is_single or self._is_shared or is_changing or commit is None or not commit.done():
            return False
        core, effects = self._core, self._effects
        decided = decide_nowait(core, effects, self._store.latest, self.head, envelope)
        if decided is None:
            return False
        batch, outcome = decided
        if batch.rows:
            head = batch.head()
            group = self.group(batch, head)
            try:
                commit = self._store.commit_nowait([group])
            except StoreError:
                # Nothing was written. The loop decides the message again.
                return False
            if commit is None:
                return False
            self._last_commit, self.head, self._head_bytes = commit, head, group.head
            core.accepted(batch, head)
        effects.accepted(batch, [outcome])
        self._settle_later(batch, [outcome])
        effects.done()
        return True

    # -- settle -----------------------------------------------------------------------------

    def _settle_later(self, batch: BatchT, outcomes: list[Outcome]) -> None:
        commit = self._last_commit
        # Batches are settled in their order. So this one waits for its turn even if its commit is
        # done.
        if commit is None or (commit.done() and not self._unsettled_count):
            self._settle(batch, outcomes, commit)
        else:
            self._unsettled_count += 1
            commit.add_done_callback(partial(self._settle_in_turn, batch, outcomes))

    def _settle_in_turn(self, batch: BatchT, outcomes: list[Outcome], commit: Commit) -> None:
        self._unsettled_count -= 1
        self._settle(batch, outcomes, commit)

    def _settle(self, batch: BatchT, outcomes: list[Outcome], commit: Commit | None) -> None:
        """Send the replies of a batch, once everything that it read and wrote is durable."""
        failure = None if commit is None else commit.exception()
        if failure is None:
            self._effects.durable(batch)
        for envelope, result in outcomes:
            is_refused = isinstance(result, DynamoDBError)
            if failure is not None:
                known = "Nothing was written" if is_refused else UNKNOWN
                envelope.refuse(InternalServerError(f"{known}: {failure}"))
            elif is_refused:
                envelope.refuse(result)
            else:
                envelope.answer(result)

    def _refuse(self, envelopes: list[Envelope], error: DynamoDBError) -> None:
        self._effects.rejected(envelopes)
        for envelope in envelopes:
            envelope.refuse(error)

    # -- commits by others ------------------------------------------------------------------

    async def _join(self, envelopes: list[Envelope]) -> list[Envelope]:
        """Join the rounds at the beginning of a batch; return the remaining messages."""
        assert self._committer is not None, "only a table's partition is asked to join"
        joins = 0
        while joins < len(envelopes) and isinstance(envelopes[joins].message, Join):
            await self._committer.join(self, envelopes[joins])
            joins += 1
        return envelopes[joins:]

    async def was_committed(self, batch: BatchT, head: PartitionHead, group: Group) -> None:
        """Continue from a group that a round has committed for this partition."""
        self.head, self._head_bytes = head, group.head
        self._effects.accepted(batch, [])
        try:
            self._last_commit = await self._store.commit([])
        except StoreError:
            # The next commit shows the outcome.
            self._last_commit = None
        else:
            self._settle_later(batch, [])

    async def was_not_committed(self) -> None:
        """Continue after a round that has failed, or whose outcome is unknown."""
        # If the head can't be read now, the next round fails, and the head is read after that.
        with suppress(StoreError):
            await self._has_head_changed()


class Committer(Protocol[BatchT]):
    """Commits a partition's groups for transactions, instead of the loop."""

    decisions: Ref

    async def resume(self, partition: Partition[BatchT]) -> None:
        """Finish a round that was in progress when the actor crashed."""

    async def join(self, partition: Partition[BatchT], envelope: Envelope) -> None:
        """Take part in a round; return when its outcome is known."""


class _BatchRejected(Exception):
    """The store refused a whole batch."""

    def __init__(self, message: str, cause: StoreError) -> None:
        super().__init__(message)
        self.error = InternalServerError(message)
        # Callers that wait for the store read the cause: waiting does not help against damage.
        self.error.__cause__ = cause
