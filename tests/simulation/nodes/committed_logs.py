"""The logs and shards as PostgreSQL has committed them, kept after they are trimmed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from msgspec import json, msgpack

from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.storage import key_layout
from dynactor.streams import change_record
from dynactor.streams.change_record import ChangeRecord
from dynactor.streams.sequence_number import SequenceNumber
from dynactor.streams.shard import Shard, Stream
from dynactor.streams.stream_record import stream_record
from tests.simulation.nodes.fake_postgresql import Commit
from tests.support.histories.history import Item

_CHANGE: Final = key_layout.change_row(0, 0)[:1]
_STREAM: Final = key_layout.STREAMS[0]
_REGION: Final = "us-east-1"

_decode_stream = msgpack.Decoder(Stream).decode


class CommittedLogs:
    """Every committed change by log and counter, and every shard by its id."""

    def __init__(self) -> None:
        self.shards: dict[str, Shard] = {}
        self._changes: defaultdict[int, dict[int, bytes]] = defaultdict(dict)
        # The table of each log.
        self._tables: dict[int, str] = {}

    def note(self, commit: Commit) -> None:
        """Keep the changes and shards in the rows of a commit."""
        for key, value in commit.rows.items():
            kind = key[:1]
            if value is None:
                continue
            if kind == _CHANGE:
                number, counter = key_layout.change_number(key)
                self._changes[number][counter] = value
            elif kind == _STREAM:
                stream = _decode_stream(value)
                for shard in stream.shards:
                    self.shards[shard.shard_id] = shard
                    self._tables[shard.partition_number] = stream.table_name

    def between(self, number: int, after: int, last: int) -> list[int]:
        """The counters of a log above ``after``, up to ``last``."""
        return sorted(each for each in self._changes[number] if after < each <= last)

    def last(self, number: int) -> int:
        """The counter of the last change of a log."""
        return max(self._changes[number], default=0)

    def change(self, number: int, counter: int) -> ChangeRecord:
        """A change."""
        value = self._changes[number][counter]
        return change_record.decode(SequenceNumber(number, counter), value)

    def epoch_seconds(self, number: int, counter: int) -> float:
        """The time of a change."""
        return self.change(number, counter).commit_time_us / MICROSECONDS_PER_SECOND

    def record(self, number: int, counter: int) -> Item:
        """A change, as GetRecords shows it."""
        return _shown(self.change(number, counter))

    def logs(self, table: str) -> list[int]:
        """The logs of a table. The log of a partition comes before the logs of its children."""
        return sorted(number for number, name in self._tables.items() if name == table)

    def changes(self, table: str) -> Iterator[ChangeRecord]:
        """All changes of a table."""
        for number in self.logs(table):
            for counter in sorted(self._changes[number]):
                yield self.change(number, counter)

    def records(self, table: str) -> Iterator[Item]:
        """All changes of a table, as GetRecords shows them."""
        return map(_shown, self.changes(table))


def _shown(change: ChangeRecord) -> Item:
    record: Item = json.decode(stream_record(change, "NEW_AND_OLD_IMAGES", _REGION).json)
    return record
