"""The rounds in which a relay publishes: records of its logs in turn, or a snapshot's items."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator
from typing import Final

from dynactor.actors.derived.checkpoint import Checkpoint
from dynactor.actors.derived.kafka.relay_environment import RelayTarget
from dynactor.actors.derived.kafka.relay_logs import RelayLog, RelayLogs, behind
from dynactor.actors.derived.kafka.table_snapshot import TableSnapshot
from dynactor.model.values.stored_item import StoredItem
from dynactor.storage.store import Store
from dynactor.streams.change_record import ChangeRecord
from dynactor.streams.kafka.message import (
    KafkaForm,
    KafkaMessage,
    change_messages,
    gap_message,
    snapshot_message,
)
from dynactor.streams.kafka.partitioner import partition_of

_ROUND_RECORDS: Final = 1_024
# Few: between two pieces requests get their turn, and reading decodes a page in one piece.
_PIECE_RECORDS: Final = 64
_READ_RECORDS: Final = 256


class Round:
    """Records in hand: what is not acknowledged of them, and where their logs are behind them."""

    def __init__(self) -> None:
        self.records = 0
        self.size_bytes = 0
        self.positions: dict[int, Checkpoint] = {}
        self.messages: defaultdict[int, list[KafkaMessage]] = defaultdict(list)

    def add(self, partition_count: int, messages: list[KafkaMessage]) -> None:
        """Add what is told of one record: the messages have one key."""
        self.messages[partition_of(messages[0].key, partition_count)] += messages
        self.size_bytes += sum(map(_size_bytes, messages))
        self.records += 1


class RelayRounds:
    """Makes them, for the Kafka partitions of a topic with so many of them."""

    def __init__(self, place: RelayTarget, form: KafkaForm, logs: RelayLogs, store: Store) -> None:
        self.partition_count = place.partition_count or 0
        self._place = place
        self._form = form
        self._logs = logs
        self._store = store
        # Whose turn it is.
        self._first = 0

    async def next(self, limit_bytes: int) -> Round | None:
        """Take records of all open logs in turn, as many as may be in hand; None if there are none.

        A log that is read to its end opens those of its children when the round is published.
        """
        while True:
            logs = self._logs.open
            current = await self._take_in_turn(logs, limit_bytes)
            if current.records:
                return current
            if self._logs.open == logs:
                return None

    async def _take_in_turn(self, logs: list[RelayLog], limit_bytes: int) -> Round:
        current = Round()
        empty = 0
        while empty < len(logs):
            log = logs[self._first % len(logs)]
            self._first += 1
            if not await self._take(log, current, limit_bytes):
                empty += 1
                continue
            empty = 0
            if current.records >= _ROUND_RECORDS or current.size_bytes >= limit_bytes:
                break
        return current

    async def _take(self, log: RelayLog, current: Round, limit_bytes: int) -> bool:
        """Put some records of a log into a round; False if it has no more."""
        position = current.positions.get(log.number, log.position)
        # Before it is read: records may come between, and then the end.
        end = log.end
        records = await log.feed.read(
            position.counter,
            max_records=min(_READ_RECORDS, _ROUND_RECORDS - current.records),
            max_bytes=limit_bytes - current.size_bytes,
        )
        if records:
            taken = await self._add(current, records, limit_bytes)
            current.positions[log.number] = behind(position, records[:taken])
        elif end is not None and position.counter < end.counter:
            # Its last changes were not recorded: nobody followed the table then.
            if log.number in current.positions:
                current.positions[log.number] = end
            else:
                log.position = end
        return bool(records)

    async def _add(self, current: Round, records: list[ChangeRecord], limit_bytes: int) -> int:
        """Put the first of these records into a round, as many as it holds; returns how many."""
        place, form = self._place, self._form
        for at, record in enumerate(records):
            if at % _PIECE_RECORDS == _PIECE_RECORDS - 1:
                await asyncio.sleep(0)
            current.add(self.partition_count, change_messages(record, place.source, form))
            if current.size_bytes >= limit_bytes:
                return at + 1
        return len(records)

    async def snapshot(self, now_us: int) -> AsyncGenerator[Round, None]:
        """Word of the gap for each Kafka partition, every item page by page, and at last positions.

        ``now_us`` is domain time in microseconds.
        """
        source = self._place.source
        taken = await TableSnapshot.take(self._store, source.table_name, self._logs)
        gap = Round()
        told = gap_message(source, self._form, time_us=now_us)
        for number in range(self.partition_count):
            gap.messages[number].append(told)
        yield gap
        async for page in taken.pages():
            yield await self._of_page(page, now_us)
        end = Round()
        end.positions |= {
            number: position for number, position in taken.positions.items() if number in self._logs
        }
        yield end

    async def _of_page(self, page: list[StoredItem], now_us: int) -> Round:
        current = Round()
        for at, item in enumerate(page):
            if at % _PIECE_RECORDS == _PIECE_RECORDS - 1:
                await asyncio.sleep(0)
            message = snapshot_message(item, self._place.source, self._form, taken_us=now_us)
            current.add(self.partition_count, [message])
        return current


def _size_bytes(message: KafkaMessage) -> int:
    return len(message.key) + len(message.value or b"")
