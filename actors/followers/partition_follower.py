"""The actor that follows one partition's log from a checkpoint and feeds a sink.

It reads at its own pace, and no write waits for it. It reads a run of records, applies them, and
then moves its checkpoint. After a crash the run after the checkpoint is applied again.

The log of a partition that was split ends. The follower applies the whole log and stores the end as
its checkpoint. Then the followers of the children's logs start, so the changes of an item stay in
order.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from dynactor.actors.feeds.change_feed import ChangeFeed
from dynactor.actors.followers.checkpoint import Checkpoint
from dynactor.actors.followers.log_progress import LogProgress
from dynactor.actors.followers.sink import Delivery, Gap, MessageSink, RowSink, row_changes
from dynactor.actors.followers.stored_checkpoint import CommitOutcome
from dynactor.actors.runtime.cancellation import outcomes
from dynactor.actors.runtime.mailbox import Envelope, Mailbox
from dynactor.model.errors import InternalServerError
from dynactor.streams.change_record import ChangeRecord

_RUN_RECORDS: Final = 512
_RUN_BYTES: Final = 2 * 1024 * 1024
# Maximum number of records that the follower of a message sink applies again after a crash.
_CHECKPOINT_RECORDS: Final = 4_096
# A follower that finds fewer records has caught up, and waits for the next coalesced wakeup.
_KEEPING_UP_RECORDS: Final = 64


class PartitionFollower:
    """The actor that follows one log.

    Invariant: the effect of every record up to ``position`` is durable, and the stored checkpoint
    is at or below ``position``. ``ended`` completes when the log has ended and its end is stored.
    """

    def __init__(
        self,
        name: str,
        subscriber_id: bytes,
        feed: ChangeFeed,
        sink: RowSink[Any] | MessageSink,
        *,
        after: asyncio.Future[None] | None = None,
    ) -> None:
        """``after``: the parent's ``ended``, None if the sink follows no parent."""
        contract = sink.contract
        assert contract.trim_delay_bytes is None or contract.gap is Gap.MISSING, (
            "only a sink that may miss changes has a limit for trimming"
        )
        is_with_checkpoint = contract.delivery is Delivery.WITH_CHECKPOINT
        assert is_with_checkpoint == isinstance(sink, RowSink), (
            "only row sinks commit their checkpoint"
        )
        self.name = f"{name} of partition {feed.partition_number}"
        self.mailbox = Mailbox(1)
        self.in_progress: list[Envelope] = []
        self.feed = feed
        counts_bytes = contract.trim_delay_bytes is not None
        self.log = LogProgress(feed, subscriber_id, self.name, counts_bytes=counts_bytes)
        self._sink = sink
        self._unstored_records = 0
        self._after = after
        self._closed = self.mailbox.when_closed()
        # The counter that each waiter waits for.
        self._awaited: dict[asyncio.Future[None], int] = {}
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def position(self) -> int:
        """The counter of the last change that is applied."""
        return self.log.position.counter

    def when_passed(self, counter: int) -> asyncio.Future[None]:
        """A future that completes when the changes up to a counter are applied.

        The future never completes if the follower ends first. Cancel the future to remove it.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.position >= counter:
            future.set_result(None)
        else:
            self._awaited[future] = counter
            future.add_done_callback(self._awaited.pop)
        return future

    async def wait_passed(self, counter: int) -> bool:
        """Wait until the changes up to a counter are applied; False if the follower ends first."""
        passed = self.when_passed(counter)
        try:
            await asyncio.wait([passed, self._closed], return_when=asyncio.FIRST_COMPLETED)
            return passed.done()
        finally:
            passed.cancel()

    async def run(self) -> None:
        """Follow the log until it ends or the mailbox is closed; then store the checkpoint."""
        self._move(await self.log.load())
        if self._after is not None:
            await asyncio.wait([self._after, self._closed], return_when=asyncio.FIRST_COMPLETED)
        try:
            await self._follow()
        except InternalServerError:
            # Expected if the follower is being stopped while the store refuses writes.
            if not self.mailbox.closed:
                raise

    async def _follow(self) -> None:
        closed = self._closed
        while not closed.done():
            run = await self.log.read(
                self.log.position, max_records=_RUN_RECORDS, max_bytes=_RUN_BYTES
            )
            if run.records:
                position = self.log.position_after(self.log.position, run)
                if not await self._apply(run.records, position):
                    return
                if self._unstored_records >= _CHECKPOINT_RECORDS:
                    await self._try_store()
                if len(run.records) < _KEEPING_UP_RECORDS:
                    await self.feed.wait_wakeup()
            elif run.end is not None:
                await self._end(run.end)
                return
            elif run.tail.counter > self.position:
                # Changes that the sink may miss were trimmed.
                self._move(run.tail)
            else:
                # A read at the tail doesn't await, so no change was added since the read began.
                await asyncio.wait(
                    [self.feed.wait_addition(), closed], return_when=asyncio.FIRST_COMPLETED
                )
        await self._try_store()

    async def _apply(self, records: list[ChangeRecord], position: Checkpoint) -> bool:
        """Apply the run up to a position durably; False if the follower was stopped meanwhile."""
        if isinstance(self._sink, RowSink):
            return await self._commit_rows(self._sink, records, position)
        delay_seconds = self._sink.delay_seconds(
            records[-1].sequence_number.counter, self.feed.tail
        )
        if delay_seconds:
            await asyncio.wait([self._closed], timeout=delay_seconds)
            if self._closed.done():
                await self._try_store()
                return False
        sent = self._sink.send(records)
        for at, carried_out in enumerate(sent, 1):
            try:
                await carried_out
            except InternalServerError:
                # Retrieve the other results, so that asyncio logs no warning.
                await outcomes(sent[at:])
                raise
        self._unstored_records += len(records)
        self._move(position)
        return True

    async def _commit_rows(
        self, sink: RowSink[Any], records: list[ChangeRecord], position: Checkpoint
    ) -> bool:
        changes = row_changes(sink, records)
        if not any(changes):
            self._unstored_records += len(records)
            self._move(position)
            return True
        outcome = await self.log.checkpoint.commit(
            self.log.encode(position),
            self._closed,
            [(row, b"") for row in changes.puts],
            changes.deletes,
        )
        if outcome is CommitOutcome.STORED:
            self._unstored_records = 0
            if changes.puts:
                sink.committed(changes.puts)
            self._move(position)
        elif outcome is CommitOutcome.CHANGED:
            # Rows of earlier runs may be lost with their checkpoint: apply those runs again.
            self._unstored_records = 0
            self.log.position = self.log.stored
        return outcome is not CommitOutcome.STOPPED

    async def _end(self, end: Checkpoint) -> None:
        """Store that the log was followed to its end, however long the store refuses writes."""
        self._move(end)
        if await self.log.store_end(self._closed) and not self.ended.done():
            self.ended.set_result(None)

    def _move(self, position: Checkpoint) -> None:
        self.log.position = position
        for future, counter in list(self._awaited.items()):
            if counter <= position.counter and not future.done():
                future.set_result(None)

    async def _try_store(self) -> None:
        """Store the position; if the store refuses, the next checkpoint covers it."""
        if self._unstored_records and await self.log.try_store():
            self._unstored_records = 0
