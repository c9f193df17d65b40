"""Shards are ranges of logs; they are opened, replaced by a child, closed and trimmed."""

import re

from hypothesis import given
from hypothesis import strategies as st

from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.streams import shard as shards
from dynactor.streams.sequence_number import SequenceNumber
from dynactor.streams.shard import Shard, Stream

LABEL = "2026-11-20T11:30:15.123"
EMPTY = Stream("Thread", 1, LABEL, "KEYS_ONLY", KeySchema((KeyAttribute("pk", "S"),)), 100.0, ())
DAY_SECONDS = 86_400.0


def opened(*positions: int) -> Stream:
    return shards.opened(EMPTY, dict(enumerate(positions, 1)), 100.0)


def counters(shard: Shard, tail: int) -> list[int]:
    """All counters that a shard shows while its log ends at ``tail``."""
    last = tail if shard.last is None else shard.last
    return list(range(shard.after + 1, last + 1))


def test_a_stream_opens_with_a_shard_for_each_partition():
    stream = opened(0, 5)
    assert [(shard.partition_number, shard.after) for shard in stream.shards] == [(1, 0), (2, 5)]
    assert all(
        shard.parent_id is None and shard.last is None and shard.ending_sequence_number is None
        for shard in stream.shards
    )
    assert stream.shards[1].starting_sequence_number == SequenceNumber(2, 6)
    assert stream.shard(stream.shards[1].shard_id) == stream.shards[1]
    assert stream.shard("other") is None


def test_a_shard_id_has_its_time_in_milliseconds():
    (shard,) = shards.opened(EMPTY, {1: 0}, 1_795_175_136.489).shards
    assert re.fullmatch(r"shardId-00000001795175136489-[0-9a-f]{8}", shard.shard_id)


def test_a_rolled_shard_is_closed_and_continued_by_a_child():
    parent, child = shards.rolled(opened(3), {1: 9}, 200.0, 50.0).shards
    assert (parent.last, parent.closed_epoch_seconds) == (9, 200.0)
    assert parent.ending_sequence_number == SequenceNumber(1, 9)
    assert (child.after, child.parent_id, child.last) == (9, parent.shard_id, None)
    assert child.starting_sequence_number > parent.ending_sequence_number


def test_a_split_closes_the_shard_of_its_partition_and_opens_two_children():
    stream = shards.split(opened(3, 4), 1, 9, (7, 8), 200.0)
    parent, first, second, other = stream.shards
    assert (parent.last, parent.closed_epoch_seconds) == (9, 200.0)
    assert [(child.partition_number, child.parent_id) for child in (first, second)] == [
        (7, parent.shard_id),
        (8, parent.shard_id),
    ]
    for child in (first, second):
        assert (child.after, child.last, child.horizon) == (0, None, 0)
        assert child.starting_sequence_number > parent.ending_sequence_number
    assert first.shard_id != second.shard_id
    assert other == opened(3, 4).shards[1]
    assert shards.split(stream, 1, 9, (10, 11), 300.0) == stream


def test_a_partition_without_a_record_can_be_split_and_its_shard_has_a_number():
    parent = shards.split(opened(0), 1, 0, (7, 8), 200.0).shards[0]
    assert parent.last == 0
    assert parent.ending_sequence_number == parent.starting_sequence_number


def test_a_new_or_empty_shard_is_not_rolled():
    assert shards.rolled(opened(3), {1: 9}, 149.0, 50.0) == opened(3)
    assert shards.rolled(opened(3), {1: 3}, 200.0, 50.0) == opened(3)


def test_an_empty_shard_ends_with_the_number_it_starts_with():
    (shard,) = shards.disabled(opened(3), {1: 3}, 200.0).shards
    assert shard.last == 3
    assert shard.ending_sequence_number == shard.starting_sequence_number


@given(st.lists(st.integers(0, 3), max_size=12))
def test_each_record_is_in_one_shard_however_often_it_is_rolled(steps: list[int]):
    stream, tail, now = opened(5), 5, 100.0
    for step in steps:
        tail += step
        # Some rolls happen in the same millisecond.
        now += 0.0004
        stream = shards.rolled(stream, {1: tail}, now, 0.0)
    tail += 2
    stream = shards.disabled(stream, {1: tail}, now)
    shown = [counter for shard in stream.shards for counter in counters(shard, tail)]
    assert shown == list(range(6, tail + 1))
    ids = [shard.shard_id for shard in stream.shards]
    assert len(set(ids)) == len(ids)
    assert [shard.parent_id for shard in stream.shards] == [None, *ids[:-1]]


def test_trimming_moves_the_trim_horizon_and_removes_shards_closed_a_day_ago():
    stream = shards.rolled(opened(0), {1: 4}, 200.0, 50.0)
    assert [shard.horizon for shard in stream.shards] == [0, 4]
    partly = shards.trimmed(stream, {1: 2}, 300.0, DAY_SECONDS)
    assert [shard.horizon for shard in partly.shards] == [2, 4]
    # A reader that has read the parent to its end has missed nothing.
    wholly = shards.trimmed(partly, {1: 6}, 300.0, DAY_SECONDS)
    assert [shard.horizon for shard in wholly.shards] == [4, 6]
    later = shards.trimmed(wholly, {}, 200.0 + DAY_SECONDS, DAY_SECONDS)
    assert [shard.parent_id for shard in later.shards] == [stream.shards[0].shard_id]


def test_a_label_is_the_time_with_milliseconds():
    assert shards.stream_label(1_795_175_136.4829) == "2026-11-20T11:45:36.482"
