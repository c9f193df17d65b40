"""Copies a live table and follows its changes.

The mirror notes positions in the stream of the source, scans the source, and then applies every
record from these positions on. Records repeat changes that the scan has seen. The last record of an
item is its state, so the copy is equal to the source once all records are applied.

This module leaves out the preparation of the tables, see ``mirror_tables``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import IntEnum
from typing import Any, Final, Protocol

import anyio

from dynactor.api.clients.client import Endpoint, RequestFailed
from dynactor.api.commands.tables.batch_writer import BatchWriter, Write
from dynactor.api.commands.tables.concurrent_calls import concurrent_calls
from dynactor.api.commands.tables.mirror_state import MirrorState, Segment
from dynactor.api.commands.tables.shard_positions import (
    ListedShard,
    RecordsDeleted,
    ShardPosition,
    adopt,
    first_positions,
    readable,
)
from dynactor.api.commands.tables.table_reader import TableReader, canonical
from dynactor.api.commands.tables.transfer_failed import TransferFailed
from dynactor.model.values.item import Item

# AWS allows 5 reads of a shard per second.
_PAUSE_SECONDS: Final = 0.25
# AWS may answer without records before the end of a shard, so one empty round proves nothing.
_EMPTY_ROUNDS: Final = 3
# While the source gets writes, no round is empty. After these rounds the copy is seconds behind.
_SHORT_ROUNDS: Final = 20
_CONCURRENT_SHARDS: Final = 16
# A page with fewer records and bytes is near the end of its shard.
_FEW_RECORDS: Final = 100
_FEW_BYTES: Final = 500_000
_DELETED: Final = frozenset({"TrimmedDataAccessException", "ResourceNotFoundException"})


class Pages(IntEnum):
    """The records of a round: none, up to the end of each shard, or more may follow."""

    EMPTY = 0
    SHORT = 1
    FULL = 2


class Progress(Protocol):
    """Shows the progress of a mirror."""

    def say(self, text: str) -> None:
        """Show a line that stays."""

    def update(self, state: MirrorState, last_change_epoch_seconds: float | None) -> None:
        """Show the counts, and the time of the last change if the mirror reads changes."""


class Mirror:
    """One mirror with its state; ``save`` stores the state durably.

    Invariant: a stored position or key is never ahead of the acknowledged writes.
    """

    def __init__(
        self,
        source: Endpoint,
        reader: TableReader,
        copy: TableReader,
        writer: BatchWriter,
        *,
        state: MirrorState,
        save: Callable[[MirrorState], None],
        progress: Progress,
        pause: Callable[[float], Awaitable[None]],
    ) -> None:
        self._source = source
        self._reader = reader
        self._copy = copy
        self._writer = writer
        self.state = state
        self._save = save
        self._progress = progress
        self._pause = pause
        # Iterators by the id of their shard; a position can always make another one.
        self._iterators: dict[str, str] = {}
        self._slots = anyio.CapacityLimiter(_CONCURRENT_SHARDS)
        self._last_change_epoch_seconds: float | None = None
        # Whether all shards could be read since the copy was complete.
        self._has_followed = False

    async def run(self, *, until_caught_up: bool) -> None:
        """Continue from the state, until the copy has caught up or until the task is cancelled.

        Raises ``TransferFailed`` if the mirror can't continue, ``RequestFailed`` or ``CannotCall``.
        """
        has_restarted = False
        while True:
            try:
                await self._scan()
                await self._follow(until_caught_up=until_caught_up)
            except RecordsDeleted:
                if has_restarted and not self._has_followed:
                    raise TransferFailed(
                        "The stream deletes records before the scan has ended: use more --segments"
                    ) from None
                has_restarted, self._has_followed = True, False
                self._progress.say(
                    "The stream has deleted records that were not read yet: the copy starts again"
                )
                self.state = await started(self._source, self.state, clears=True)
                self._iterators.clear()
                self._save(self.state)
            else:
                return

    # -- copy ---------------------------------------------------------------------------------

    async def _scan(self) -> None:
        """Write all items of the source, then delete the items that the source does not have."""
        state = self.state
        if state.phase == "COPYING":
            async with concurrent_calls() as group:
                for number, segment in enumerate(state.segments):
                    if not segment.has_ended:
                        group.start_soon(self._scan_segment, number, segment)
            state.phase = "CLEARING" if state.clears else "FOLLOWING"
            self._save(state)
        if state.phase == "CLEARING":
            await self._clear()
            state.phase = "FOLLOWING"
            self._save(state)

    async def _scan_segment(self, number: int, segment: Segment) -> None:
        state = self.state
        pages = self._reader.pages(number, len(state.segments), after=segment.after)
        async for page in pages:
            await self._write([{"PutRequest": {"Item": item}} for item in page.items])
            segment.after, segment.has_ended = page.after, page.after is None
            state.items += len(page.items)
            self._save(state)
            self._progress.update(state, None)

    async def _clear(self) -> None:
        """Delete items that the source lacks. The stream has those that it gets meanwhile."""
        async for page in self._copy.pages(keys_only=True):
            existing = await self._reader.items(page.items, keys_only=True)
            surplus = [key for key in page.items if canonical(key) not in existing]
            await self._write([{"DeleteRequest": {"Key": key}} for key in surplus])

    async def _write(self, writes: list[Write]) -> None:
        for refused in await self._writer.write(writes):
            write = writes[refused.place]
            item = write["PutRequest"]["Item"] if "PutRequest" in write else {}
            raise TransferFailed(
                f"The copy refuses an item: {refused.error}; its key is "
                f"{self._copy.extract_key(item) if item else write['DeleteRequest']['Key']}"
            )

    # -- changes ------------------------------------------------------------------------------

    async def catch_up(self) -> None:
        """Apply all changes up to now; raises as ``run``."""
        await self._follow(until_caught_up=True)

    async def _follow(self, *, until_caught_up: bool) -> None:
        adopt(self.state.positions, await listed_shards(self._source, self.state.stream_arn))
        empty_rounds = short_rounds = 0
        while True:
            records = await self._round()
            self._has_followed = True
            if records is Pages.FULL:
                empty_rounds = short_rounds = 0
                continue
            short_rounds += 1
            empty_rounds = empty_rounds + 1 if records is Pages.EMPTY else 0
            if until_caught_up and (empty_rounds >= _EMPTY_ROUNDS or short_rounds >= _SHORT_ROUNDS):
                return
            await self._pause(_PAUSE_SECONDS)

    async def _round(self) -> Pages:
        """Read each readable shard once; returns the fullest of the pages."""
        state = self.state
        pages = [Pages.EMPTY]
        shards = readable(state.positions)
        async with concurrent_calls() as group:
            for position in shards:
                group.start_soon(self._read_shard, position, pages)
        if not shards or any(position.has_ended for position in shards):
            adopt(state.positions, await listed_shards(self._source, state.stream_arn))
        if max(pages) is not Pages.EMPTY:
            self._save(state)
        self._progress.update(state, self._last_change_epoch_seconds)
        return max(pages)

    async def _read_shard(self, position: ShardPosition, pages: list[Pages]) -> None:
        async with self._slots:
            answer = await read_records(
                self._source, self.state.stream_arn, position, self._iterators
            )
            records = [record["dynamodb"] for record in answer["Records"]]
            if records:
                await self._write(final_writes(records))
                position.advance(records[-1]["SequenceNumber"])
                self.state.changes += len(records)
                self._last_change_epoch_seconds = records[-1].get("ApproximateCreationDateTime")
                pages.append(Pages.FULL if _is_full(records) else Pages.SHORT)
            if "NextShardIterator" not in answer:
                position.has_ended = True
                # The shards that continue it are read at once.
                pages.append(Pages.FULL)


def _is_full(records: Sequence[dict[str, Any]]) -> bool:
    """Whether more records may follow at once."""
    size_bytes = sum(record.get("SizeBytes", 0) for record in records)
    return len(records) >= _FEW_RECORDS or size_bytes >= _FEW_BYTES


def final_writes(records: Iterable[dict[str, Any]]) -> list[Write]:
    """The writes that have the same result as these records, one for each key."""
    last: dict[bytes, tuple[Item, Item | None]] = {}
    for record in records:
        key = record["Keys"]
        # Copy the key, because its canonical form may differ from the source's.
        last[canonical({name: dict(value) for name, value in key.items()})] = (
            key,
            record.get("NewImage"),
        )
    return [
        {"PutRequest": {"Item": image}} if image else {"DeleteRequest": {"Key": key}}
        for key, image in last.values()
    ]


async def read_records(
    source: Endpoint, stream_arn: str, position: ShardPosition, iterators: dict[str, str]
) -> dict[str, Any]:
    """The answer of GetRecords at a position; raises ``RecordsDeleted``."""
    while True:
        try:
            iterator = iterators.pop(position.shard_id, None)
            if iterator is None:
                request = position.iterator_request(stream_arn)
                iterator = (await source.call("GetShardIterator", request))["ShardIterator"]
            answer = await source.call("GetRecords", {"ShardIterator": iterator})
        except RequestFailed as error:
            if error.error_type == "ExpiredIteratorException":
                continue
            if error.error_type in _DELETED:
                raise RecordsDeleted from None
            raise
        # Some endpoints send null at the end of a shard.
        if answer.get("NextShardIterator") is None:
            answer.pop("NextShardIterator", None)
        else:
            iterators[position.shard_id] = answer["NextShardIterator"]
        return answer


async def listed_shards(source: Endpoint, stream_arn: str) -> list[ListedShard]:
    """All shards of a stream; raises ``TransferFailed`` if the stream was switched off."""
    shards: list[ListedShard] = []
    request = {"StreamArn": stream_arn}
    while True:
        description = (await source.call("DescribeStream", request))["StreamDescription"]
        if description["StreamStatus"] in ("DISABLING", "DISABLED"):
            raise TransferFailed(
                "The stream of the source was switched off: switch it on and repeat the command, "
                "which copies the table again"
            )
        shards += description["Shards"]
        last = description.get("LastEvaluatedShardId")
        if last is None:
            return shards
        request["ExclusiveStartShardId"] = last


async def started(source: Endpoint, state: MirrorState, *, clears: bool) -> MirrorState:
    """The state of a copy that starts now: its positions are close to the ends of the shards.

    The records before a position are older than the scan, so the scan sees their changes.
    """
    positions = first_positions(await listed_shards(source, state.stream_arn))
    async with concurrent_calls() as group:
        for position in readable(positions):
            group.start_soon(_skip, source, state.stream_arn, position)
    return MirrorState(
        state.source,
        state.target,
        state.stream_arn,
        state.target_id,
        positions,
        [Segment() for _ in state.segments],
        clears,
    )


async def _skip(source: Endpoint, stream_arn: str, position: ShardPosition) -> None:
    """Move a position close to the end of its shard."""
    iterators: dict[str, str] = {}
    while True:
        answer = await read_records(source, stream_arn, position, iterators)
        records = answer["Records"]
        if records:
            position.advance(records[-1]["dynamodb"]["SequenceNumber"])
        position.has_ended = "NextShardIterator" not in answer
        if position.has_ended or not _is_full([record["dynamodb"] for record in records]):
            return
