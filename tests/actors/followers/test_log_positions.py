"""The positions of logs at a time keep transactions whole."""

from __future__ import annotations

from dynactor.actors.followers.checkpoint import Checkpoint
from dynactor.actors.followers.log_positions import past_positions
from dynactor.storage import catalog, key_layout
from dynactor.storage.catalog import PartitionRange, TableRecord
from dynactor.streams import change_record
from dynactor.streams.change_record import TransactionPlace
from dynactor.streams.sequence_number import SequenceNumber
from tests.support.databases.databases import table_definition
from tests.support.stores.rows import put
from tests.support.stores.store import memory_store
from tests.support.streams.changes import change

TIME_US = 1_700_000_000_000_000
PARTITION, PARENT, CHILD, OTHER_CHILD = 1, 2, 3, 4


async def test_a_change_in_the_log_of_a_later_child_belongs_to_an_earlier_transaction():
    """The second partition was split before it read the clock."""
    ranges = [(PARTITION, b""), (CHILD, b"m"), (OTHER_CHILD, b"t")]
    record = TableRecord(table_definition(), tuple(PartitionRange(*each) for each in ranges))
    rows = {key_layout.table_record("Thread"): catalog.encode_record(record)}
    for place, (number, time_us) in enumerate(
        [(PARTITION, TIME_US), (OTHER_CHILD, TIME_US + 1)], 1
    ):
        one = change(
            {"forum": {"S": "a"}, "subject": {"S": str(number)}},
            None,
            {"n": {"N": "1"}},
            SequenceNumber(number, 1),
            commit_time_us=time_us,
            transaction=TransactionPlace(b"t" * 16, place, 2),
        )
        rows[key_layout.change_row(number, 1)] = change_record.encode(one)
    known = {PARTITION: Checkpoint(1, 0), PARENT: Checkpoint(0, 0)}

    async with memory_store() as store:
        await put(store, rows)
        past = await past_positions(store.durable(), "Thread", known, TIME_US)

    assert past.is_before(SequenceNumber(OTHER_CHILD, 1).packed())
    assert not past.is_before(SequenceNumber(OTHER_CHILD, 2).packed())
    assert not past.is_before(SequenceNumber(CHILD, 1).packed())
