"""S98-S100, S104, S106, S108, S109, S111, S112, A6: the cost of global secondary indexes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.rules.global_indexes.game_scores import (
    GAME_TITLE,
    entries,
    eventually,
    game_title_index,
    global_index,
    provisioned,
    put_all,
    query,
    scores_table,
)
from tests.rules.global_indexes.online_index import throughput_of, updating
from tests.rules.local_indexes.thread import Item, Units, padded, units
from tests.support.clients.clients import WireClient
from tests.support.tables.tables import table, wait_until_active, wait_until_indexes_active

INDEXES = {"ReturnConsumedCapacity": "INDEXES"}
KEYS = ("pk:S", "sk:S", "group:S", "mark:S")
BY_MARK = "ByMark"


@pytest.fixture(scope="module")
def marks(wire: WireClient) -> Iterator[str]:
    """A table with the index ByMark on group and mark, which projects ``held``."""
    index = global_index(BY_MARK, "group", "mark", include=("held",))
    with table(wire, *KEYS, GlobalSecondaryIndexes=[index]) as name:
        yield name


def item_of(pk: str, number: int = 0, mark: str | None = None, **others: str) -> Item:
    """An item of a group named like its partition key; without ``mark`` it has no entry."""
    texts = {"pk": pk, "sk": f"{number:05}", "group": pk, "mark": mark} | others
    return {name: {"S": text} for name, text in texts.items() if text is not None}


def sized(pk: str, number: int, *, entry: int, item: int) -> Item:
    """An item of ``item`` bytes whose index entry has ``entry`` bytes."""
    held = padded(item_of(pk, number, f"{number:05}"), "held", entry)
    return padded(held, "rest", item) if item > entry else held


def put(client: Any, name: str, item: Item) -> Units:
    return units(client.put_item(TableName=name, Item=item, **INDEXES))


def update(client: Any, name: str, item: Item, expression: str, **values: str) -> Units:
    given = {f":{placeholder}": {"S": text} for placeholder, text in values.items()}
    return units(
        client.update_item(
            TableName=name,
            Key={"pk": item["pk"], "sk": item["sk"]},
            UpdateExpression=expression,
            **({"ExpressionAttributeValues": given} if given else {}),
            **INDEXES,
        )
    )


def delete(client: Any, name: str, item: Item) -> Units:
    key = {"pk": item["pk"], "sk": item["sk"]}
    return units(client.delete_item(TableName=name, Key=key, **INDEXES))


def test_s98_the_throughput_of_an_index_is_separate_from_its_tables(wire):
    index = game_title_index(throughput=(3, 4))
    members = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": provisioned(1, 2)}
    with scores_table(wire, index, **members) as name:
        wire("UpdateTable", updating(name, GAME_TITLE, 5, 6))
        described = wait_until_indexes_active(wire, name)

    [of_index] = described["GlobalSecondaryIndexes"]
    assert throughput_of(described) == (1, 2)
    assert throughput_of(of_index) == (5, 6)


def test_s99_a_query_takes_the_indexs_read_units_and_none_of_the_tables(client, marks, pk):
    put_all(client, marks, (sized(pk, n, entry=2_000, item=9_000) for n in range(4)))
    ask = {"where": {"group": pk}, **INDEXES}

    answer = eventually(
        lambda: query(client, marks, BY_MARK, **ask), lambda answer: answer["Count"] == 4
    )

    consumed = answer["ConsumedCapacity"]
    assert consumed["GlobalSecondaryIndexes"] == {BY_MARK: {"CapacityUnits": 1.0}}
    assert "LocalSecondaryIndexes" not in consumed
    assert units(answer) == (1.0, 0.0, {BY_MARK: 1.0})


def test_s100_writes_take_the_indexs_write_units_for_its_maintenance(client, marks, pk):
    item = sized(pk, 0, entry=1_500, item=4_500)

    answer = client.put_item(TableName=marks, Item=item, **INDEXES)

    consumed = answer["ConsumedCapacity"]
    assert consumed["Table"] == {"CapacityUnits": 5.0}
    assert consumed["GlobalSecondaryIndexes"] == {BY_MARK: {"CapacityUnits": 2.0}}
    assert "LocalSecondaryIndexes" not in consumed


def test_s104_the_table_is_described_with_each_indexs_throughput(wire):
    indexes = (
        game_title_index(throughput=(3, 4)),
        global_index("ByScore", "TopScore", throughput=(7, 8)),
    )
    members = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": provisioned(1, 2)}
    with scores_table(wire, *indexes, **members) as name:
        described = wait_until_active(wire, name)["GlobalSecondaryIndexes"]

    shown = {index["IndexName"]: throughput_of(index) for index in described}
    assert shown == {GAME_TITLE: (3, 4), "ByScore": (7, 8)}


def test_s106_a_query_of_an_index_costs_the_sum_of_its_entries_rounded_up(client, marks, pk):
    """Ten entries of 500 bytes are 5,000 bytes; the items' 3,000 bytes each do not count."""
    put_all(client, marks, (sized(pk, n, entry=500, item=3_000) for n in range(10)))
    ask = {"where": {"group": pk}, **INDEXES}

    whole = eventually(
        lambda: query(client, marks, BY_MARK, **ask), lambda answer: answer["Count"] == 10
    )
    filtered = query(client, marks, BY_MARK, FilterExpression="attribute_not_exists(held)", **ask)
    counted = query(client, marks, BY_MARK, Select="COUNT", **ask)
    limited = query(client, marks, BY_MARK, Limit=8, **ask)
    some = query(client, marks, BY_MARK, ProjectionExpression="sk", **ask)

    assert units(whole) == (1.0, 0.0, {BY_MARK: 1.0})
    assert filtered["Count"] == 0
    assert units(filtered) == units(counted) == units(some) == units(whole)
    assert units(limited) == (0.5, 0.0, {BY_MARK: 0.5})


def test_a6_eight_entries_of_2000_bytes_cost_two_units(client, marks, pk):
    put_all(client, marks, (sized(pk, n, entry=2_000, item=7_000) for n in range(8)))

    answer = eventually(
        lambda: query(client, marks, BY_MARK, where={"group": pk}, **INDEXES),
        lambda answer: answer["Count"] == 8,
    )

    assert units(answer) == (2.0, 0.0, {BY_MARK: 2.0})


@pytest.mark.parametrize(
    ("sizes", "read_units"),
    [
        ([2_000] * 8, 2.0),
        ([2_048] * 8, 2.0),
        ([2_048] * 7 + [2_049], 2.5),
        ([2_000] * 9, 2.5),
        ([2_000] * 4, 1.0),
    ],
)
def test_s108_an_eventually_consistent_query_costs_half_a_unit_per_4_kb(
    client, marks, pk, sizes, read_units
):
    put_all(client, marks, (sized(pk, n, entry=s, item=s) for n, s in enumerate(sizes)))

    answer = eventually(
        lambda: query(client, marks, BY_MARK, where={"group": pk}, **INDEXES),
        lambda answer: answer["Count"] == len(sizes),
    )

    assert units(answer) == (read_units, 0.0, {BY_MARK: read_units})


def test_s109_a_write_costs_the_table_and_each_index_that_it_updates(client, wire, pk):
    indexes = [
        global_index("All", "group"),
        global_index("Keys", "mark", projection="KEYS_ONLY"),
        global_index("Never", "never"),
    ]
    with table(wire, *KEYS, "never:S", GlobalSecondaryIndexes=indexes) as name:
        item = padded(item_of(pk, 0, "1"), "rest", 2_000)
        new = put(client, name, item)
        same = put(client, name, item)
        not_in_keys = update(client, name, item, "SET extra = :new", new="new")
        removed = update(client, name, item, "REMOVE mark")
        gone = delete(client, name, item)
        missing = delete(client, name, item)

    assert new == (2 + 2 + 1, 2.0, {"All": 2.0, "Keys": 1.0})
    assert same == (2.0, 2.0, {})
    assert not_in_keys == (2 + 2, 2.0, {"All": 2.0})
    assert removed == (2 + 2 + 1, 2.0, {"All": 2.0, "Keys": 1.0})
    assert gone == (2 + 2, 2.0, {"All": 2.0})
    assert missing == (1.0, 1.0, {})


def test_s111_an_entry_that_is_new_costs_one_write(client, marks, pk):
    put_new = put(client, marks, item_of(pk, 0, "1"))
    put(client, marks, item_of(pk, 1))
    defined = update(client, marks, item_of(pk, 1), "SET mark = :r", r="1")

    assert put_new == defined == (2.0, 1.0, {BY_MARK: 1.0})


@pytest.mark.parametrize("part", ["group", "mark"])
def test_s111_a_key_that_changes_costs_two_writes(client, marks, pk, part):
    item = item_of(pk, 0, "1")
    put(client, marks, item)

    moved = put(client, marks, item | {part: {"S": "another"}})
    moved_back = put(client, marks, item)

    assert moved == moved_back == (3.0, 1.0, {BY_MARK: 2.0})


def test_s111_a_key_that_is_removed_costs_one_write(client, marks, pk):
    put(client, marks, item_of(pk, 0, "1"))
    put(client, marks, item_of(pk, 1, "1"))

    removed = update(client, marks, item_of(pk, 0), "REMOVE mark")
    deleted = delete(client, marks, item_of(pk, 1))

    assert removed == deleted == (2.0, 1.0, {BY_MARK: 1.0})


def test_s111_an_item_absent_before_and_after_costs_nothing(client, marks, pk):
    new = put(client, marks, item_of(pk, 0, held="1"))
    changed = put(client, marks, item_of(pk, 0, held="2"))
    deleted = delete(client, marks, item_of(pk, 0))

    assert new == changed == deleted == (1.0, 1.0, {})


def test_s111_a_projected_attribute_that_changes_costs_one_write(client, marks, pk):
    item = item_of(pk, 0, "1")
    put(client, marks, item)

    added = update(client, marks, item, "SET held = :h", h="1")
    changed = update(client, marks, item, "SET held = :h", h="2")
    same = update(client, marks, item, "SET held = :h", h="2")
    not_projected = update(client, marks, item, "SET rest = :r", r="1")

    assert added == changed == (2.0, 1.0, {BY_MARK: 1.0})
    assert same == not_projected == (1.0, 1.0, {})


@pytest.mark.parametrize(("entry", "write_units"), [(1_024, 1.0), (1_025, 2.0), (3_073, 4.0)])
def test_s112_a_larger_entry_costs_a_unit_for_each_kb(client, marks, pk, entry, write_units):
    item = sized(pk, 0, entry=entry, item=entry)

    new = put(client, marks, item)
    moved = put(client, marks, item | {"mark": {"S": "99999"}})
    gone = delete(client, marks, item)

    assert new.indexes == gone.indexes == {BY_MARK: write_units}
    assert moved.indexes == {BY_MARK: 2 * write_units}


def test_s112_a_changed_entry_costs_the_larger_of_its_old_and_new_size(client, marks, pk):
    put(client, marks, sized(pk, 0, entry=3_000, item=3_000))

    shrunk = put(client, marks, sized(pk, 0, entry=500, item=500))
    moved = put(client, marks, sized(pk, 0, entry=2_500, item=2_500) | {"mark": {"S": "99999"}})

    assert shrunk.indexes == {BY_MARK: 3.0}
    assert moved.indexes == {BY_MARK: 1.0 + 3.0}


def test_s100_batches_take_the_indexs_write_units_too(client, marks, pk):
    items = [item_of(pk, 0, "1"), item_of(pk, 1), sized(pk, 2, entry=1_500, item=1_500)]
    answer = client.batch_write_item(
        RequestItems={marks: [{"PutRequest": {"Item": item}} for item in items]}, **INDEXES
    )

    [consumed] = answer["ConsumedCapacity"]
    assert consumed["Table"] == {"CapacityUnits": 4.0}
    assert consumed["GlobalSecondaryIndexes"] == {BY_MARK: {"CapacityUnits": 3.0}}


@pytest.mark.differs_from_dynamodb_local("it counts the items")
def test_s106_a_scan_of_an_index_costs_its_entries(client, wire, pk):
    index = global_index(BY_MARK, "group", "mark", include=("held",), throughput=(1, 1))
    members = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": provisioned(1, 1)}
    with table(wire, *KEYS, GlobalSecondaryIndexes=[index], **members) as name:
        put_all(client, name, (sized(pk, n, entry=2_000, item=4_000) for n in range(6)))
        entries(client, name, 6, BY_MARK)

        answer = client.scan(TableName=name, IndexName=BY_MARK, **INDEXES)

    assert units(answer) == (1.5, 0.0, {BY_MARK: 1.5})
