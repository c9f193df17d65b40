"""Cheaper alternatives, computed from receipts alone."""

from __future__ import annotations

import pytest

from dynactor.model.advice.explained_costs import Cheaper, Paid
from dynactor.model.advice.explanation import explain
from dynactor.model.capacity import (
    EntryWrite,
    IndexKind,
    ItemWrite,
    KeyRead,
    RangeRead,
    Receipt,
    Work,
)
from tests.support.databases.databases import table_definition

TABLE = table_definition(local_sort_keys=("posts",))
READ, WRITE = "Arithmetic: Read", "Arithmetic: Write"
LOCAL: IndexKind = "LocalSecondaryIndexes"
GLOBAL: IndexKind = "GlobalSecondaryIndexes"


def cheaper(*work: Work) -> tuple[Cheaper, ...]:
    return explain("Anything", [Paid(TABLE, Receipt(work=work))]).cheaper


def saves(*work: Work) -> list[tuple[str, float | None]]:
    return [(each.rule, each.saves) for each in cheaper(*work)]


def read_range(size_bytes: int, units: float, **members: object) -> RangeRead:
    given = {
        "is_scan": False,
        "index": None,
        "kind": None,
        "consistent": False,
        "entries": 10,
        "returned": 10,
        "partition_bytes": (size_bytes,),
        "units": units,
    }
    return RangeRead(**given | members)


@pytest.mark.parametrize(
    ("size_bytes", "units", "saved"),
    [
        (0, 1, []),
        (4_096, 1, []),
        # One byte more costs another block. A smaller item is advised only if the excess over whole
        # blocks is at most a quarter of the size: 1,365 of 5,461 bytes is, 1,366 of 5,462 is not.
        (4_097, 2, [(READ, 1.0)]),
        (5_461, 2, [(READ, 1.0)]),
        (5_462, 2, []),
        (8_192, 2, []),
        (8_193, 3, [(READ, 1.0)]),
    ],
)
def test_a_slightly_smaller_item_would_cost_a_block_less(size_bytes, units, saved):
    assert saves(KeyRead(size_bytes, float(units), consistent=True)) == [
        ("S42", units / 2),
        *saved,
    ]


@pytest.mark.parametrize(
    ("old_bytes", "new_bytes", "units", "saved"),
    [
        (None, 1_024, 1, []),
        (None, 1_025, 2, [(WRITE, 1.0)]),
        (None, 2_000, 2, []),
        (None, 2_049, 3, [(WRITE, 1.0)]),
        (10, 1_025, 2, [(WRITE, 1.0)]),
        (1_025, 10, 2, []),
        (1_025, None, 2, []),
        (None, None, 1, []),
    ],
)
def test_a_write_of_a_slightly_smaller_item_would_cost_a_unit_less(
    old_bytes, new_bytes, units, saved
):
    assert saves(ItemWrite(old_bytes, new_bytes, units)) == saved


def test_items_of_a_batch_are_advised_on_together():
    (advice,) = cheaper(*(ItemWrite(None, 1_024 + above, 2) for above in (1, 7, 200, 900)))

    assert advice.advice == "3 items are each at most 200 bytes above a multiple of 1 KB"
    assert advice.saves == 3


def test_reads_by_key_are_compared_with_one_query():
    """Three items and a missing one: 900 bytes are one block."""
    reads = [KeyRead(size_bytes, 0.5, consistent=False) for size_bytes in (300, 300, 300, 0)]

    assert saves(*reads) == [(READ, 1.5)]
    assert saves(*reads[:1]) == []


def test_large_items_cost_the_same_in_a_query():
    assert saves(*[KeyRead(8_192, 1.0, consistent=False)] * 3) == []


def test_a_projection_without_fetches_would_cost_less():
    read = read_range(
        1_000,
        0.5,
        index="by_posts",
        kind=LOCAL,
        fetched_items=10,
        fetched_blocks=20,
        fetched_units=10.0,
    )

    assert saves(read) == [("S43", 10.0)]


@pytest.mark.parametrize(("kind", "rule"), [(None, READ), (LOCAL, "S41"), (GLOBAL, "S106")])
def test_a_query_without_the_filtered_items_would_cost_less(kind, rule):
    """A filter keeps a tenth of 40,000 bytes: one block instead of ten."""
    read = read_range(40_000, 5.0, index=kind and "index", kind=kind, returned=1)

    assert (rule, 4.5) in saves(read)


def test_no_saving_is_computed_for_a_filter_within_one_block():
    assert saves(read_range(400, 0.5, returned=0)) == [(READ, None)]


def test_a_query_reads_less_than_a_scan():
    read = read_range(0, 2.0, is_scan=True, partition_bytes=(100, 0, 0, 0))

    (advice,) = cheaper(read)

    assert (advice.rule, advice.saves) == ("S158", None)
    assert "in each of 4 partitions" in advice.advice


def entry(old: int | None, new: int | None, units: int, *, moves: bool = False) -> EntryWrite:
    return EntryWrite("ByStatus", GLOBAL, 0.0, units, old, new, moves)


@pytest.mark.parametrize(
    ("old", "new", "units", "change", "rules"),
    [
        (None, 100, 1, "put", {LOCAL: ("S51",), GLOBAL: ("S111",)}),
        (100, 100, 1, "put", {LOCAL: ("S55",), GLOBAL: ("S111",)}),
        (100, 100, 2, "delete and put", {LOCAL: ("S52",), GLOBAL: ("S111",)}),
        (100, None, 1, "delete", {LOCAL: ("S53",), GLOBAL: ("S111",)}),
        (None, 2_000, 2, "put", {LOCAL: ("S51", "S56"), GLOBAL: ("S111", "S112")}),
        (2_000, 100, 2, "put", {LOCAL: ("S55", "S56"), GLOBAL: ("S111", "S112")}),
        (2_000, 100, 3, "delete and put", {LOCAL: ("S52", "S56"), GLOBAL: ("S111", "S112")}),
        (2_000, None, 2, "delete", {LOCAL: ("S53", "S56"), GLOBAL: ("S111", "S112")}),
    ],
)
def test_a_change_of_an_entry_names_its_rules(old, new, units, change, rules):
    for kind in (LOCAL, GLOBAL):
        moves = change == "delete and put"
        written = EntryWrite("by_posts", kind, 0.0, units, old, new, moves)
        work = (ItemWrite(100, 100, 1, (written,)),)
        [table] = explain("PutItem", [Paid(TABLE, Receipt(work=work))]).tables
        [of_index] = [each for each in table.writes[0].indexes if each.change != "none"]
        assert (of_index.change, of_index.rules, of_index.units) == (change, rules[kind], units)


@pytest.mark.parametrize(
    ("of_index", "saved"),
    [
        # The write is necessary, and has the lowest possible cost.
        (entry(None, 1_000, 1), []),
        (entry(1_000, None, 1), []),
        (entry(1_000, 1_000, 2, moves=True), []),
        # An index that does not project the changed attribute would not be written.
        (entry(1_000, 1_000, 1), [("S57", 1.0)]),
        (entry(3_000, 1_000, 3), [("S57", 3.0)]),
        # Entries of 1 KB would cost one unit per write.
        (entry(None, 3_000, 3), [("S57", 2.0)]),
        (entry(3_000, 1_000, 4, moves=True), [("S57", 2.0)]),
    ],
)
def test_an_index_that_projects_less_costs_less(of_index, saved):
    assert saves(ItemWrite(100, 100, 1, (of_index,))) == saved


def test_the_largest_saving_comes_first():
    work = (KeyRead(4_097, 2.0, consistent=True), ItemWrite(100, 100, 1, (entry(3_000, 10, 3),)))

    assert saves(*work) == [("S57", 3.0), ("S42", 1.0), (READ, 1.0)]


def test_parts_of_one_table_are_reported_together():
    paid = [Paid(TABLE, Receipt(write_units=1, work=(ItemWrite(None, 10, 1),)))] * 3

    explanation = explain("BatchWriteItem", paid)

    [table] = explanation.tables
    [write] = table.writes
    assert (write.count, table.capacity_units, explanation.capacity_units) == (3, 3, 3)
    assert [(index.index, index.change) for index in write.indexes] == [("by_posts", "none")]
