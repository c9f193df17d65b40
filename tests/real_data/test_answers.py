"""Real data: every answer is compared with a computation in plain Python.

boto3's ``batch_writer`` loads a data set into a table with two local indexes. Then each query,
filter, projection and page is computed again from the rows in the simplest way.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from tests.real_data.data_set import DataSet, Filter, Index, Projection, Row
from tests.real_data.loaded_table import LoadedTable, order_of
from tests.support.clients.clients import WireClient

SEED = 20_260_101


@pytest.fixture(scope="module")
def tables(wire: WireClient, resource: Any) -> Iterator[Callable[[DataSet], LoadedTable]]:
    """The table of a data set, loaded on first use."""
    loaded: dict[str, LoadedTable] = {}

    def table_of(data_set: DataSet) -> LoadedTable:
        if data_set.name not in loaded:
            loaded[data_set.name] = LoadedTable(wire, resource, data_set)
        return loaded[data_set.name]

    yield table_of
    for table in loaded.values():
        table.delete()


@pytest.fixture
def table(tables: Callable[[DataSet], LoadedTable], data_set: DataSet) -> LoadedTable:
    return tables(data_set)


def in_order(found: list[Row], index: Index, *, backwards: bool = False) -> bool:
    values = [order_of(row[index.sort]) for row in found]
    return all(left >= right if backwards else left <= right for left, right in pairwise(values))


def test_a_scan_returns_every_row(table: LoadedTable):
    assert len(table.rows) == table.data_set.row_count
    assert table.by_key(table.all_of(table.scan)) == table.by_key(table.rows)


@pytest.mark.parametrize("forward", [True, False])
def test_a_query_returns_every_partition_completely_and_in_order(
    table: LoadedTable, index: Index, *, forward: bool
):
    for partition in table.partitions:
        found, answer = table.query(partition, index, ScanIndexForward=forward)
        assert table.by_key(found) == table.by_key(table.held(partition, index))
        assert in_order(found, index, backwards=not forward)
        assert answer["ScannedCount"] == len(found)
        assert "LastEvaluatedKey" not in answer


CONDITIONS: list[tuple[str, Callable[[Any, Any, Any], bool]]] = [
    (" AND #sort = :low", lambda value, low, _: value == low),
    (" AND #sort < :low", lambda value, low, _: value < low),
    (" AND #sort <= :low", lambda value, low, _: value <= low),
    (" AND #sort > :low", lambda value, low, _: value > low),
    (" AND #sort >= :low", lambda value, low, _: value >= low),
    (" AND #sort BETWEEN :low AND :high", lambda value, low, high: low <= value <= high),
]


@pytest.mark.parametrize(("condition", "holds"), CONDITIONS, ids=[c[0] for c in CONDITIONS])
def test_conditions_on_the_sort_key_select_the_rows_that_python_selects(
    table: LoadedTable, index: Index, condition: str, holds: Callable[[Any, Any, Any], bool]
):
    chance = random.Random(SEED)
    for partition in table.partitions:
        held = table.held(partition, index)
        if not held:
            continue
        low, high = sorted((chance.choice(held)[index.sort] for _ in range(2)), key=order_of)
        values = {":low": low, ":high": high} if ":high" in condition else {":low": low}
        found, _ = table.query(partition, index, condition, values=values)
        bounds = (order_of(low), order_of(high))
        expected = [row for row in held if holds(order_of(row[index.sort]), *bounds)]
        assert table.by_key(found) == table.by_key(expected)
        assert in_order(found, index)


def test_begins_with_finds_the_rows_that_python_finds(table: LoadedTable, text_index: Index):
    chance = random.Random(SEED)
    for partition in table.partitions:
        held = table.held(partition, text_index)
        for row in chance.sample(held, min(3, len(held))):
            beginning = row[text_index.sort][: chance.randint(1, 4)]
            condition = " AND begins_with(#sort, :low)"
            found, _ = table.query(partition, text_index, condition, values={":low": beginning})
            expected = [row for row in held if row[text_index.sort].startswith(beginning)]
            assert table.by_key(found) == table.by_key(expected)


def test_filters_of_scans_and_queries_return_the_rows_that_python_selects(
    table: LoadedTable, filtered: Filter
):
    members = {"FilterExpression": filtered.expression, "values": filtered.values}
    left = [row for row in table.rows if filtered.holds(row)]
    assert left
    assert table.by_key(table.all_of(table.scan, **members)) == table.by_key(left)
    for partition in table.partitions[:20]:
        found, answer = table.query(partition, **members)
        within = table.of(partition, table.data_set.table)
        left = [row for row in within if filtered.holds(row)]
        assert table.by_key(found) == table.by_key(left)
        assert answer["ScannedCount"] == len(within)


def test_projections_return_the_attributes_that_python_selects(
    table: LoadedTable, index: Index, projection: Projection
):
    for partition in table.partitions[::5]:
        # For attributes that an index does not project, the item is fetched, and counts as 4 KB of
        # its page.
        found = table.all_of(
            table.query, partition, index, ProjectionExpression=projection.expression
        )
        expected = [projection.cut(row) for row in table.of(partition, index)]
        # Compare without order, because rows with equal sort keys are in any order.
        assert sorted(map(_text_of, found)) == sorted(map(_text_of, expected))


def _text_of(value: Any) -> str:
    """A value's text, equal for equal values, because maps and sets have no order."""
    if isinstance(value, dict):
        return str(sorted((name, _text_of(member)) for name, member in value.items()))
    if isinstance(value, list):
        return str(list(map(_text_of, value)))
    if isinstance(value, set):
        return str(sorted(map(_text_of, value)))
    return repr(value) if isinstance(value, str) else str(value)


@pytest.mark.parametrize("forward", [True, False])
def test_pages_of_any_size_add_up_to_the_whole_answer(
    table: LoadedTable, index: Index, *, forward: bool
):
    chance = random.Random(SEED)
    for partition in table.partitions:
        whole, _ = table.query(partition, index, ScanIndexForward=forward)
        limit = chance.randint(1, max(len(whole), 2))
        pages = list(
            table.pages(table.query, partition, index, Limit=limit, ScanIndexForward=forward)
        )
        assert [row for page in pages for row in page] == whole
        assert all(len(page) == limit for page in pages[:-1])


@pytest.mark.parametrize("total", [1, 3, 16])
def test_segments_and_pages_of_a_scan_add_up_to_the_whole_table(
    table: LoadedTable, index: Index, total: int
):
    found = [
        row
        for segment in range(total)
        for row in table.all_of(
            table.scan, IndexName=index.name, Segment=segment, TotalSegments=total, Limit=97
        )
    ]
    expected = [row for row in table.rows if index.sort in row]
    assert table.by_key(found) == table.by_key(table.data_set.held(expected, index))


def test_counts_equal_those_that_python_computes(table: LoadedTable):
    for partition, count in Counter(row[table.data_set.partition] for row in table.rows).items():
        _, answer = table.query(partition, Select="COUNT")
        assert answer == {"Count": count, "ScannedCount": count}
    described = table.wire("DescribeTable", {"TableName": table.name})["Table"]
    assert described["ItemCount"] == table.data_set.row_count
    found = {index["IndexName"]: index["ItemCount"] for index in described["LocalSecondaryIndexes"]}
    assert found == {
        index.name: sum(index.sort in row for row in table.rows)
        for index in table.data_set.local_indexes
    }


def test_getitem_and_batchgetitem_return_every_row_by_its_key(table: LoadedTable):
    for at in range(0, len(table.rows), 100):
        some = table.rows[at : at + 100]
        assert table.by_key(table.get_batch(some)) == table.by_key(some)


def test_updates_and_deletes_change_rows_and_indexes_as_python_does(table: LoadedTable):
    """Runs last: a tenth of the rows is changed, a tenth deleted, and all are compared again."""
    chance = random.Random(SEED)
    tenth = len(table.rows) // 10
    for row in chance.sample(table.rows, tenth):
        table.change(row)
    for row in chance.sample(table.rows, tenth):
        assert table.remove(row) == row
    for partition in table.partitions:
        for index in table.data_set.indexes:
            found, _ = table.query(partition, index)
            assert table.by_key(found) == table.by_key(table.held(partition, index))
            assert in_order(found, index)
