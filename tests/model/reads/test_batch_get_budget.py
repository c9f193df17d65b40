"""The size limits of a BatchGetItem's answer: 16 MB, and 1,458,173 bytes per partition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dynactor.model.limits import ITEM_SIZE_BYTES, MIB
from dynactor.model.reads.batch_get_budget import BatchGetBudget

FIRST = 100
# Measured on AWS: three items of 400 KB and one of this size come at once.
PARTITION_BYTES = 3 * ITEM_SIZE_BYTES + 229_373


def took(budget: BatchGetBudget, partition: int, size_bytes: int) -> bool:
    if not budget.fits(partition, size_bytes):
        assert budget.is_closed(partition)
        return False
    budget.take(partition, size_bytes)
    return True


def test_one_partition_returns_at_most_1_458_173_bytes():
    budget = BatchGetBudget()
    for _ in range(3):
        assert took(budget, FIRST, ITEM_SIZE_BYTES)
    assert took(budget, FIRST, 229_373)
    assert not took(budget, FIRST, 1)


def test_a_partition_returns_no_item_after_the_first_that_exceeds_its_limit():
    budget = BatchGetBudget()
    assert took(budget, FIRST, PARTITION_BYTES - 10)
    assert not took(budget, FIRST, 11)
    assert not took(budget, FIRST, 1)


def test_other_partitions_have_limits_of_their_own():
    budget = BatchGetBudget()
    assert took(budget, FIRST, PARTITION_BYTES)
    assert not took(budget, FIRST, 1)
    assert took(budget, FIRST + 1, PARTITION_BYTES)


def test_an_answer_has_exactly_16_mb_and_ends_before_the_first_item_that_does_not_fit():
    budget = BatchGetBudget()
    for number in range(15):
        assert took(budget, number, MIB)
    assert took(budget, 15, MIB - 1)
    assert not took(budget, 16, 2)
    assert not took(budget, 17, 1)


def test_an_item_that_did_not_fit_uses_no_space():
    budget = BatchGetBudget()
    assert budget.fits(FIRST, MIB)
    assert took(budget, FIRST, MIB)


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, ITEM_SIZE_BYTES)), min_size=1, max_size=100
    )
)
def test_rounds_answer_every_item_in_the_order_of_its_partition(
    items: list[tuple[int, int]],
) -> None:
    left = items
    while left:
        budget = BatchGetBudget()
        answered: dict[int, list[int]] = {}
        unprocessed = []
        for partition, size_bytes in left:
            if took(budget, partition, size_bytes):
                answered.setdefault(partition, []).append(size_bytes)
            else:
                unprocessed.append((partition, size_bytes))
        wanted = {
            partition: [size for one, size in left if one == partition] for partition, _ in left
        }
        total_bytes = sum(map(sum, answered.values()))
        assert total_bytes <= 16 * MIB
        for partition, sizes in wanted.items():
            of_partition = answered.get(partition, [])
            assert of_partition == sizes[: len(of_partition)]
            assert sum(of_partition) <= PARTITION_BYTES
            assert of_partition or total_bytes > 16 * MIB - ITEM_SIZE_BYTES
        left = unprocessed
