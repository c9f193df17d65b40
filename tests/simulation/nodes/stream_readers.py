"""Clients that read a stream while its shards roll and its logs are trimmed.

Each page is compared with the committed changes. A page must have all changes after the position of
its iterator, without gaps and repetitions. Changes may be missing only if they are older than the
retention, and only after an error, or at the start of a shard.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, Final

import anyio

from dynactor.model.limits import GET_RECORDS
from dynactor.streams import sequence_number, shard_iterator
from tests.simulation.nodes.committed_logs import CommittedLogs
from tests.simulation.nodes.workload import THROTTLED, Workload
from tests.support.clients.wire import Answer
from tests.support.streams.stream_walk import parents_first

_SERVICE: Final = "DynamoDBStreams"
# Two nodes whose clocks differ by most: one wrote the change, the other one trims it.
_SKEW_SECONDS: Final = 2.0
_FINISH_SECONDS: Final = 120.0
_MOST_ROUNDS: Final = 100
_OLDEST: Final = 4
# No run takes so long.
_LONG_SECONDS: Final = 10_000.0


class StreamReader:
    """Reads one table's stream, each shard after its parent.

    Invariant: all changes of a log up to its position were shown, or were trimmed first.
    """

    def __init__(
        self,
        workload: Workload,
        logs: CommittedLogs,
        table: str,
        retention_seconds: float,
        draw: Random,
    ) -> None:
        self._workload = workload
        self._logs = logs
        self._table = table
        self._retention_seconds = retention_seconds
        self._is_trimmed = retention_seconds < _LONG_SECONDS
        self._draw = draw
        # A slow reader is often overtaken by the trimming.
        self._pause_seconds = draw.choice((0.3, 1.0, 2.0))
        self._limits = draw.choice(((1, 2, 3), (3, 10), (GET_RECORDS,)))
        self._arn = ""
        self._positions: dict[int, int] = {}
        self._shards: list[dict[str, Any]] = []
        self._iterators: dict[str, str] = {}
        self._started: set[str] = set()
        self._ended: set[str] = set()

    async def run(self) -> None:
        """Read until the other clients have sent enough requests."""
        async with anyio.create_task_group() as group:
            if self._is_trimmed:
                for _ in range(_OLDEST):
                    group.start_soon(self._repeat, self._read_oldest)
            await self._repeat(self._read_all)

    async def _repeat(self, read: Callable[[], Awaitable[None]]) -> None:
        for _ in range(_MOST_ROUNDS):
            if self._workload.is_enough:
                return
            await read()
            await anyio.sleep(self._draw.random() * self._pause_seconds)

    async def finish(self) -> None:
        """Read the rest, after all faults have ended."""
        with anyio.move_on_after(_FINISH_SECONDS):
            while self._unread():
                await self._read_all()
                await anyio.sleep(0.1)
        if unread := self._unread():
            self._fail(f"does not show {unread}")

    def _unread(self) -> list[tuple[int, int]]:
        """The changes that were not shown, and are too young to be trimmed."""
        return [
            (number, counter)
            for number in self._logs.logs(self._table)
            for counter in self._kept(number, self._positions.get(number, 0), None)
        ]

    # -- shards -------------------------------------------------------------------------------

    async def _read_all(self) -> None:
        """Read a page of each shard whose parent has ended."""
        if not self._shards or self._draw.random() < 0.3:
            await self._describe()
        listed = {shard["ShardId"] for shard in self._shards}
        for shard in parents_first(self._shards):
            shard_id = shard["ShardId"]
            parent = shard.get("ParentShardId")
            if shard_id in self._ended or (parent in listed and parent not in self._ended):
                continue
            if shard_id not in self._iterators:
                await self._start(shard)
            if shard_id in self._iterators:
                await self._page(shard)

    async def _describe(self) -> None:
        if not self._arn:
            described = await self._ask("DescribeTable", {"TableName": self._table}, "DynamoDB")
            if described is None or described.status != 200:
                return
            self._arn = described.body["Table"]["LatestStreamArn"]
        answer = await self._ask("DescribeStream", {"StreamArn": self._arn})
        if answer is None or answer.status == 500:
            return
        if answer.status != 200:
            self._fail(f"{answer} to DescribeStream")
            return
        gone = {shard["ShardId"] for shard in self._shards}
        self._shards = answer.body["StreamDescription"]["Shards"]
        for shard_id in gone - {shard["ShardId"] for shard in self._shards}:
            self._check_forgotten(shard_id)
            self._iterators.pop(shard_id, None)
            self._ended.add(shard_id)

    def _check_forgotten(self, shard_id: str) -> None:
        """Check that a shard was old enough to be forgotten."""
        closed = self._logs.shards[shard_id].closed_epoch_seconds
        if closed is None or closed > self._trimmed_before():
            self._fail(f"forgets shard {shard_id}, which was closed at {closed}")

    async def _start(self, shard: dict[str, Any]) -> None:
        """Get an iterator: at the shard's oldest change, or after the last one that was shown."""
        shard_id = shard["ShardId"]
        first = shard["SequenceNumberRange"]["StartingSequenceNumber"]
        number, counter = _parsed(first)
        position = self._positions.get(number, 0)
        body = {"StreamArn": self._arn, "ShardId": shard_id}
        is_continued = shard_id in self._started and position >= counter
        if is_continued:
            body["ShardIteratorType"] = "AFTER_SEQUENCE_NUMBER"
            body["SequenceNumber"] = sequence_number.SequenceNumber(number, position).wire()
        else:
            body["ShardIteratorType"] = "TRIM_HORIZON"
        answer = await self._ask("GetShardIterator", body)
        if answer is None or answer.status == 500:
            return
        if answer.status != 200:
            self._refused(shard_id, number, answer)
            return
        iterator = answer.body["ShardIterator"]
        after = _after(iterator)
        if is_continued and after != position:
            self._fail(f"{body} gives an iterator after {after}")
        self._skip_to(shard_id, number, after)
        self._iterators[shard_id] = iterator
        self._started.add(shard_id)

    # -- records ------------------------------------------------------------------------------

    async def _page(self, shard: dict[str, Any]) -> None:
        shard_id = shard["ShardId"]
        number, _ = _parsed(shard["SequenceNumberRange"]["StartingSequenceNumber"])
        iterator = self._iterators[shard_id]
        position = self._positions[number]
        limit = self._draw.choice(self._limits)
        answer = await self._ask("GetRecords", {"ShardIterator": iterator, "Limit": limit})
        if answer is None or answer.status == 500:
            if self._draw.random() < 0.3:
                del self._iterators[shard_id]
            return
        if answer.status != 200:
            self._refused(shard_id, number, answer)
            return
        last = self._check_page(shard_id, number, position, answer.body)
        self._positions[number] = max(position, last)
        following = answer.body.get("NextShardIterator")
        if following is None:
            del self._iterators[shard_id]
            self._ended.add(shard_id)
        else:
            self._iterators[shard_id] = following

    async def _read_oldest(self) -> None:
        """Read the oldest changes of a shard, which are trimmed next."""
        if not self._shards:
            return
        shard = self._draw.choice(self._shards)
        shard_id = shard["ShardId"]
        number, _ = _parsed(shard["SequenceNumberRange"]["StartingSequenceNumber"])
        body = {
            "StreamArn": self._arn,
            "ShardId": shard_id,
            "ShardIteratorType": "TRIM_HORIZON",
        }
        answer = await self._ask("GetShardIterator", body)
        if answer is None or answer.status != 200:
            return
        iterator = answer.body["ShardIterator"]
        after = _after(iterator)
        for following in self._logs.between(number, after, self._logs.last(number))[:1]:
            # Read at the time at which the change is trimmed.
            due = self._logs.epoch_seconds(number, following) + self._retention_seconds
            late = self._draw.random() * 2 - 1
            await anyio.sleep(min(max(0.0, due + late - time.time()), self._retention_seconds))
        answer = await self._ask("GetRecords", {"ShardIterator": iterator})
        if answer is None or answer.status == 500:
            return
        if answer.status == 200:
            self._check_page(shard_id, number, after, answer.body)
        else:
            self._check_refusal(shard_id, number, after, answer)

    def _check_page(self, shard_id: str, number: int, after: int, page: dict[str, Any]) -> int:
        """Compare the page after a position with the log; return the position after the page."""
        records = page["Records"]
        shown = [_parsed(each["dynamodb"]["SequenceNumber"])[1] for each in records]
        last = shown[-1] if shown else after
        following = page.get("NextShardIterator")
        if following is None:
            # The shard has ended, so all its changes were shown.
            last = self._logs.shards[shard_id].last or 0
        elif _after(following) != last:
            self._fail(f"{shard_id} goes on after {_after(following)}, not {last}")
        expected = self._logs.between(number, after, last)
        if shown != expected:
            self._fail(f"{shard_id} shows {shown} of {number} after {after}, not {expected}")
        elif records != [self._logs.record(number, counter) for counter in shown]:
            self._fail(f"{shard_id} shows {records}, which differ from the log")
        return last

    def _refused(self, shard_id: str, number: int, answer: Answer) -> None:
        """Handle an error: the trimming has overtaken this reader."""
        self._iterators.pop(shard_id, None)
        self._check_refusal(shard_id, number, self._positions.get(number, 0), answer)
        if answer.error == "ResourceNotFoundException":
            self._ended.add(shard_id)
        elif answer.error == "TrimmedDataAccessException":
            # The next iterator starts at the oldest change.
            self._started.discard(shard_id)

    def _check_refusal(self, shard_id: str, number: int, after: int, answer: Answer) -> None:
        """Check that the change after a position, or the shard, was old enough."""
        if answer.error == "ResourceNotFoundException":
            self._check_forgotten(shard_id)
        elif answer.error == "TrimmedDataAccessException":
            following = self._logs.between(number, after, self._logs.last(number))[:1]
            if not following or self._kept(number, after, following[0]):
                self._fail(f"{shard_id}: the change after {after} is not old, but trimmed")
        elif answer.error not in THROTTLED:
            self._fail(f"{shard_id}: {answer}")

    def _skip_to(self, shard_id: str, number: int, after: int) -> None:
        """Skip the changes up to ``after``, which must be old enough to be trimmed."""
        position = self._positions.get(number, 0)
        if after < position:
            self._fail(f"{shard_id} starts again after {after}, not after {position}")
        if kept := self._kept(number, position, after):
            self._fail(f"{shard_id} starts after {after}, and skips {kept} of {number}")
        self._positions[number] = after

    def _kept(self, number: int, after: int, last: int | None) -> list[int]:
        """The changes of a range that may not be trimmed yet."""
        logs = self._logs
        last = logs.last(number) if last is None else last
        trimmed_before = self._trimmed_before()
        return [
            counter
            for counter in logs.between(number, after, last)
            if logs.epoch_seconds(number, counter) > trimmed_before
        ]

    def _trimmed_before(self) -> float:
        return time.time() - self._retention_seconds + _SKEW_SECONDS

    async def _ask(
        self, operation: str, body: dict[str, Any], service: str = _SERVICE
    ) -> Answer | None:
        return await self._workload.ask(operation, body, service)

    def _fail(self, text: str) -> None:
        self._workload.violations.append(f"a reader of the stream of {self._table}: {text}")


def _parsed(text: str) -> tuple[int, int]:
    """The log and the counter of a sequence number."""
    number = sequence_number.parse(text)
    assert number is not None, text
    return number.partition_number, number.counter


def _after(iterator: str) -> int:
    cursor = shard_iterator.parse(iterator)
    assert cursor is not None, iterator
    return cursor.after
