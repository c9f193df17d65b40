"""The room of a BatchGetItem's answer: 16 MB, of which 1 MB from one partition."""

from __future__ import annotations

from model.batch_room import BatchRoom
from model.limits import ITEM_SIZE_BYTES, MIB

FIRST = 100


def took(room: BatchRoom, partition: int, size_bytes: int) -> bool:
    if not room.fits(partition, size_bytes):
        assert room.is_closed(partition)
        return False
    room.take(partition, size_bytes)
    return True


def test_a_partition_gives_exactly_1_mb():
    room = BatchRoom()
    assert took(room, FIRST, ITEM_SIZE_BYTES)
    assert took(room, FIRST, MIB - ITEM_SIZE_BYTES)
    assert not took(room, FIRST, 1)


def test_a_partition_that_an_item_would_have_passed_gives_no_smaller_one():
    room = BatchRoom()
    assert took(room, FIRST, MIB - 10)
    assert not took(room, FIRST, 11)
    assert not took(room, FIRST, 1)


def test_other_partitions_have_room_of_their_own():
    room = BatchRoom()
    assert took(room, FIRST, MIB)
    assert not took(room, FIRST, 1)
    assert took(room, FIRST + 1, MIB)


def test_an_answer_has_exactly_16_mb_and_nothing_behind_the_first_item_that_does_not_fit():
    room = BatchRoom()
    for number in range(15):
        assert took(room, number, MIB)
    assert took(room, 15, MIB - 1)
    assert not took(room, 16, 2)
    assert not took(room, 17, 1)


def test_an_item_that_was_not_taken_leaves_its_room():
    room = BatchRoom()
    assert room.fits(FIRST, MIB)
    assert took(room, FIRST, MIB)
