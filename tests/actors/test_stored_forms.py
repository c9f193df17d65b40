"""What was stored by earlier versions is read by this one."""

from __future__ import annotations

from msgspec import msgpack

from actors.subscribers import checkpoint
from actors.subscribers.checkpoint import Checkpoint
from model.table import StreamingDestination
from storage import catalog
from storage.catalog import PartitionHead


def test_a_head_without_the_size_of_its_log_is_read():
    old = msgpack.encode(
        {"counter": 7, "item_counts": {0: 3}, "sizes_bytes": {0: 100}, "applied": {2: 5}}
    )
    head = catalog.decode_partition_head(old)
    assert head == PartitionHead(7, {0: 3}, {0: 100}, {2: 5}, logged_bytes=0)
    assert catalog.decode_partition_head(catalog.encode_partition_head(head)) == head


def test_a_destination_of_before_topics_had_counts_is_read():
    old = msgpack.encode({"destination_id": 1, "topic": "threads", "status": "ACTIVE"})
    destination = msgpack.decode(old, type=StreamingDestination)
    assert destination == StreamingDestination(1, "threads", "ACTIVE")
    assert not destination.needs_snapshot


def test_a_checkpoint_comes_back():
    stored = Checkpoint(12, 3_456).encode()
    assert checkpoint.decode(stored) == Checkpoint(12, 3_456)
    assert checkpoint.decode(None) == Checkpoint(0, 0)
    # As followers of other kinds write it: a counter alone.
    assert checkpoint.decode((12).to_bytes(8, "big")) == Checkpoint(12, 0)
