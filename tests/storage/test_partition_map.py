from hypothesis import given
from hypothesis import strategies as st

from dynactor.model.key_conditions.key_range import WHOLE, KeyRange, segment_range
from dynactor.storage.catalog import PartitionRange
from dynactor.storage.partition_map import PartitionMap, divide, divide_evenly

positions = st.binary(min_size=1, max_size=12)


@st.composite
def maps(draw: st.DrawFn) -> PartitionMap:
    starts = sorted(draw(st.sets(positions, max_size=6)))
    return PartitionMap(
        tuple(PartitionRange(at, start) for at, start in enumerate([b"", *starts], 1))
    )


def within(key_range: KeyRange, position: bytes) -> bool:
    return key_range.start <= position and (key_range.end is None or position < key_range.end)


@given(maps(), positions, st.one_of(st.none(), positions), positions)
def test_the_parts_of_a_range_cover_the_range_once_and_in_order(
    partition_map, start, end, position
):
    wanted = KeyRange(start, end)
    if end is not None and end < start:
        return
    pieces = list(partition_map.pieces(wanted))
    assert sum(within(piece, position) for piece in pieces) == within(wanted, position)
    assert pieces == sorted(pieces, key=lambda piece: piece.start)
    assert list(partition_map.pieces(wanted, reverse=True)) == pieces[::-1]


@given(maps(), positions)
def test_a_position_is_in_the_range_of_its_owner(partition_map, position):
    place = partition_map.place_at(position)
    pieces = list(partition_map.pieces(WHOLE))
    assert within(pieces[place], position)


@given(maps(), positions, positions)
def test_a_split_gives_a_partitions_range_to_its_children_and_no_other(partition_map, at, position):
    parent = partition_map.number_at(at)
    start, end = partition_map.partition_range(parent)
    if at == start:
        return
    divided = PartitionMap(divide(partition_map.ranges, parent, at, (98, 99)))
    owner = divided.number_at(position)
    if partition_map.number_at(position) == parent:
        assert owner == (98 if position < at else 99)
    else:
        assert owner == partition_map.number_at(position)
    assert (divided.partition_range(98), divided.partition_range(99)) == ((start, at), (at, end))
    assert parent not in divided
    assert sorted(divided.numbers) == sorted({*partition_map.numbers, 98, 99} - {parent})


@given(st.integers(1, 64))
def test_new_partitions_share_the_hash_space_evenly(count):
    ranges = divide_evenly(7, count)
    starts = [int.from_bytes(partition.start.ljust(8, b"\0"), "big") for partition in ranges]
    shares = [end - start for start, end in zip(starts, [*starts[1:], 1 << 64], strict=True)]
    assert max(shares) - min(shares) <= 1
    assert [partition.number for partition in ranges] == list(range(7, 7 + count))


@given(st.integers(1, 50), st.binary(min_size=8, max_size=8))
def test_every_position_is_in_exactly_one_segment(total_segments, position):
    segments = [segment_range(segment, total_segments) for segment in range(total_segments)]
    assert sum(within(segment, position) for segment in segments) == 1
