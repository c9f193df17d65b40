"""A page that takes many rows at once equals one that takes them one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dynactor.model.limits import PAGE_BYTES
from dynactor.model.reads.page import PageBuilder, PageRules
from dynactor.model.values.stored_item import StoredItem

sizes = st.integers(1, 2_000) | st.integers(1, 409_600)
pieces = st.lists(st.lists(sizes, min_size=1, max_size=8), max_size=4)


def entries(of_sizes: list[int]) -> list[StoredItem]:
    return [StoredItem(1, size, b'{"size":%d}' % size) for size in of_sizes]


@given(pieces, st.none() | st.integers(1, 30), st.booleans(), st.lists(st.booleans(), max_size=4))
def test_rows_may_be_added_together_or_one_by_one(rows, limit, count_only, ends):
    rules = PageRules(limit=limit, count_only=count_only)
    together, singly = PageBuilder(rules), PageBuilder(rules)
    for at, of_sizes in enumerate(rows):
        if together.full:
            break
        left = together.rows_left
        assert left == singly.rows_left
        piece = entries(of_sizes if left is None else of_sizes[:left])
        together.add_all(piece)
        for entry in piece:
            if not singly.full:
                singly.add(entry)
        assert together.last is singly.last
        assert (together.full, together.blocks) == (singly.full, singly.blocks)
        if not together.full and at < len(ends) and ends[at]:
            together.finish_partition()
            singly.finish_partition()
    for builder in together, singly:
        builder.finish_partition()
    told = [
        builder.page(consistent=True, last=None, index=None, is_scan=True)
        for builder in (together, singly)
    ]
    assert told[0] == told[1]


def test_a_page_ends_with_the_row_that_reaches_its_limit():
    builder = PageBuilder(PageRules())
    builder.add_all(entries([PAGE_BYTES - 1]))
    assert not builder.full
    builder.add_all(entries([1, 1]))
    assert builder.full
    assert builder.page(consistent=True, last=None, index=None, is_scan=False).count == 2
