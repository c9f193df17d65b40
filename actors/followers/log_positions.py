"""The positions of a table's logs at a time, and the versions of items that came before them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from dynactor.actors.followers.checkpoint import Checkpoint
from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.model.values.stored_item import StoredItem
from dynactor.storage import catalog, key_layout
from dynactor.storage.catalog import TableRecord
from dynactor.storage.store import View
from dynactor.streams import change_log, log_bounds, sequence_number
from dynactor.streams.change_record import ChangeRecord
from dynactor.streams.log_bounds import LogReach
from dynactor.streams.sequence_number import SequenceNumber

# Small, because a request waits while records are decoded.
_RECORDS: Final = 128
_RECORDS_BYTES: Final = 256 * 1024
# Maximum time between the changes of one transaction.
TRANSACTION_US: Final = 10 * MICROSECONDS_PER_SECOND


class LogPositions:
    """The positions of a table's logs, by partition number, including ended logs.

    ``earlier`` are the versions after the positions that count as versions before them.
    """

    def __init__(
        self, by_number: Mapping[int, Checkpoint], earlier: frozenset[int] = frozenset()
    ) -> None:
        self.by_number = by_number
        self._earlier = earlier
        self._last_number = max(by_number)

    def is_before(self, version: int) -> bool:
        """Whether the change with this version came before the positions."""
        number = sequence_number.unpack(version)
        position = self.by_number.get(number.partition_number)
        if position is None:
            # A log without a position was deleted before the snapshot if its number is lower than
            # another's. Otherwise it began later, because numbers rise.
            is_before = number.partition_number < self._last_number
        else:
            is_before = number.counter <= position.counter
        return is_before or version in self._earlier

    def replaced(self, record: ChangeRecord) -> StoredItem | None:
        """The item at the positions, if this change was the first one after them."""
        if record.old is None or not self.is_before(record.old.version):
            return None
        return record.old if self.is_after(record) else None

    def is_after(self, record: ChangeRecord) -> bool:
        """Whether a change that was read after the positions also counts as a later one."""
        return not self._earlier or record.sequence_number.packed() not in self._earlier

    def is_earlier(self, partition_number: int, counter: int) -> bool:
        """Whether a change after the positions counts as one before them."""
        earlier = self._earlier
        return bool(earlier) and SequenceNumber(partition_number, counter).packed() in earlier

    def start_counter(self, partition_number: int) -> int | None:
        """The counter after which a log has changes since the positions; None if it has none."""
        position = self.by_number.get(partition_number)
        if position is not None:
            return position.counter
        return 0 if partition_number > self._last_number else None


async def past_positions(
    view: View, table_name: str, positions: Mapping[int, Checkpoint], time_us: int
) -> LogPositions:
    """The positions of a table's logs at a time, with whole transactions.

    ``positions`` are those of the last changes at this time that were durable when the time was
    requested. By now the others are durable, too. The partitions of a transaction read the clock
    one after another, so a transaction may have changes before and after the time. Then its later
    changes count as changes before it. If a partition was split meanwhile, they are in the log of a
    child. Raises ``StoreError``.
    """
    before: set[bytes] = set()
    after: dict[int, bytes] = {}
    table = await table_record(view, table_name)
    numbers = [] if table is None else table.log_numbers
    # Numbers of children are higher than those of all earlier partitions.
    later = {number: Checkpoint(0, 0) for number in numbers if number > max(positions)}
    reached = {**positions, **later}
    for number, position in list(reached.items()):
        reach = LogReach(number, 0, position.counter, None)
        start = await log_bounds.position_at(view, reach, time_us - TRANSACTION_US)
        async for record in _records(view, number, start):
            if record.commit_time_us > time_us + TRANSACTION_US:
                break
            counter = record.sequence_number.counter
            is_before = counter <= position.counter or record.commit_time_us <= time_us
            if is_before and counter > position.counter:
                reached[number] = replace(position, counter=counter)
            if record.transaction is None:
                continue
            if is_before:
                before.add(record.transaction.transaction_id)
            else:
                after[record.sequence_number.packed()] = record.transaction.transaction_id
    return LogPositions(
        reached, frozenset(version for version, id_ in after.items() if id_ in before)
    )


async def _records(view: View, number: int, after: int) -> AsyncIterator[ChangeRecord]:
    while records := await read(view, number, after):
        for record in records:
            yield record
        after = records[-1].sequence_number.counter


async def read(view: View, number: int, after: int) -> list[ChangeRecord]:
    """The next changes of a log after a counter; none at its end. Raises ``StoreError``."""
    return await change_log.read(
        view, number, after, max_records=_RECORDS, max_bytes=_RECORDS_BYTES
    )


async def table_record(view: View, table_name: str) -> TableRecord | None:
    """A table's record in the catalog; None if there is no such table."""
    (row,) = await view.load([key_layout.table_record(table_name)])
    return None if row is None else catalog.decode_record(row)


async def ends(view: View, record: TableRecord) -> dict[int, Checkpoint]:
    """The ends of a table's logs; the ends of growing logs are in the heads of their partitions."""
    numbers = [partition.number for partition in record.partitions]
    heads: Sequence[bytes | None] = await view.load(list(map(key_layout.partition_head, numbers)))
    positions = {
        ended.number: Checkpoint(ended.last, ended.logged_bytes) for ended in record.ended_logs
    }
    for partition, value in zip(record.partitions, heads, strict=True):
        assert value is not None, "the record and the heads are of one state"
        head = catalog.decode_partition_head(value)
        positions[partition.number] = Checkpoint(head.counter, head.logged_bytes)
    return positions
