"""The rounds of a sink: records of its open logs in turn, or the items of a snapshot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Final, Generic

from dynactor.actors.followers.checkpoint import Checkpoint
from dynactor.actors.followers.log_progress import LogProgress
from dynactor.actors.followers.round_sink import M, Round, RoundSink
from dynactor.actors.followers.table_progress import TableProgress
from dynactor.actors.followers.table_snapshot import TableSnapshot
from dynactor.model.values.stored_item import StoredItem
from dynactor.streams.change_record import ChangeRecord

_ROUND_RECORDS: Final = 1_024
# Small, because requests wait while one piece is added to a round.
_PIECE_RECORDS: Final = 64
_READ_RECORDS: Final = 256


class RoundMaker(Generic[M]):
    """Makes the rounds. ``ends`` are the counters to stop at, by log; None for no end."""

    def __init__(self, logs: TableProgress, sink: RoundSink[M]) -> None:
        self.ends: Mapping[int, int] | None = None
        self._logs = logs
        self._sink = sink
        # The index of the next log.
        self._first = 0

    async def next(self, limit_bytes: int) -> Round[M] | None:
        """Take records of all open logs in turn; None if there are no changes.

        A round without messages moves past changes that were not recorded.
        """
        logs = self._logs.open
        current = Round[M]()
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
        return current if current.positions else None

    async def _take(self, log: LogProgress, current: Round[M], limit_bytes: int) -> bool:
        """Put some records of a log into a round; False if the log has no more."""
        position = current.positions.get(log.number, log.position)
        run = await log.read(
            position,
            max_records=min(_READ_RECORDS, _ROUND_RECORDS - current.records),
            max_bytes=limit_bytes - current.size_bytes,
        )
        records = self._wanted(log, run.records)
        if records:
            taken = await self._add(current, records, limit_bytes)
            current.positions[log.number] = log.position_after(
                position, run._replace(records=records[:taken])
            )
        elif not run.records and run.end is not None and position.counter < run.end.counter:
            # The last changes were not recorded, because the table had no followers then.
            current.positions[log.number] = run.end
        return bool(records)

    def _wanted(self, log: LogProgress, found: list[ChangeRecord]) -> list[ChangeRecord]:
        if self.ends is None:
            return found
        end = self.ends[log.number]
        return [record for record in found if record.sequence_number.counter <= end]

    async def _add(self, current: Round[M], records: list[ChangeRecord], limit_bytes: int) -> int:
        """Add records to a round until it is full; return the number of added records."""
        for at, record in enumerate(records):
            if at % _PIECE_RECORDS == _PIECE_RECORDS - 1:
                # Let other tasks of the event loop run.
                await asyncio.sleep(0)
            self._sink.add_change(current, record)
            current.records += 1
            if current.size_bytes >= limit_bytes:
                return at + 1
        return len(records)

    async def snapshot_rounds(
        self, snapshot: TableSnapshot, taken_us: int
    ) -> AsyncGenerator[Round[M], None]:
        """The gap, all items page by page, and the positions of the logs; raises ``StoreError``."""
        gap = Round[M]()
        self._sink.add_gap(gap, taken_us)
        yield gap
        async for page in snapshot.pages():
            yield await self._page_round(page, taken_us)
        end = Round[M]()
        end.positions |= self._positions_behind(snapshot)
        yield end

    def _positions_behind(self, snapshot: TableSnapshot) -> dict[int, Checkpoint]:
        return {
            number: position
            for number, position in snapshot.positions.by_number.items()
            if number in self._logs
        }

    async def _page_round(self, page: list[StoredItem], taken_us: int) -> Round[M]:
        current = Round[M]()
        for at, item in enumerate(page):
            if at % _PIECE_RECORDS == _PIECE_RECORDS - 1:
                # Let other tasks of the event loop run.
                await asyncio.sleep(0)
            self._sink.add_item(current, item, taken_us)
        current.records = current.items = len(page)
        return current
