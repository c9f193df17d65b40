"""S113-S115: the storage of a global secondary index, and items without entries."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.global_indexes.game_scores import (
    entries,
    eventually,
    game_title_index,
    global_index,
    key,
    put_all,
    score,
    scores_table,
    settled_entries,
    texts,
)
from tests.rules.global_indexes.online_index import adding
from tests.rules.local_indexes.thread import item_bytes
from tests.support.tables.tables import table, wait_until_indexes_active

OVERHEAD = 100
KEYS = ("UserId:S", "GameTitle:S", "Mark:S")
BY_MARK = global_index("ByMark", "GameTitle", "Mark", include=("Wins",))


def storage(client: Any, name: str) -> tuple[int, int]:
    """Entries and bytes of the index, as described."""
    [index] = client.describe_table(TableName=name)["Table"]["GlobalSecondaryIndexes"]
    return index["ItemCount"], index["IndexSizeBytes"]


def settled_storage(client: Any, name: str, count: int, size_bytes: int) -> None:
    """Wait until the index is described with this many entries and bytes."""
    eventually(lambda: storage(client, name), lambda shown: shown == (count, size_bytes))


@pytest.mark.differs_from_dynamodb_local("it counts the item in the place of its entry")
def test_s113_an_entry_has_the_size_of_its_attributes_and_100_bytes(client, wire):
    first = score("1", "Comet Quest", Mark="a", Wins="w" * 50)
    second = score("2", "Comet Quest", Mark="bb", Losses="l" * 500)
    held = {name: text for name, text in second.items() if name != "Losses"}
    with scores_table(wire, BY_MARK, keys=KEYS) as name:
        settled_storage(client, name, 0, 0)
        put_all(client, name, [first])
        settled_storage(client, name, 1, item_bytes(first) + OVERHEAD)
        put_all(client, name, [second])
        both = item_bytes(first) + item_bytes(held) + 2 * OVERHEAD
        settled_storage(client, name, 2, both)
        put_all(client, name, [score("3", "Comet Quest", Wins="w")])
        settled_storage(client, name, 2, both)
        client.delete_item(TableName=name, Key=key(first))
        settled_storage(client, name, 1, item_bytes(held) + OVERHEAD)
        client.update_item(
            TableName=name,
            Key=key(second),
            UpdateExpression="SET Wins = :w",
            ExpressionAttributeValues={":w": {"S": "ww"}},
        )
        settled_storage(client, name, 1, item_bytes(held) + len("Winsww") + OVERHEAD)
        client.update_item(TableName=name, Key=key(second), UpdateExpression="REMOVE Wins, Mark")
        settled_storage(client, name, 0, 0)


@pytest.mark.differs_from_dynamodb_local("it counts the item in the place of its entry")
def test_s113_the_entries_of_an_added_index_have_the_same_sizes(client, wire):
    items = [score(f"{n}", "Comet Quest", Mark=f"{n}", Losses="l" * 500) for n in range(5)]
    entry_bytes = item_bytes(score("0", "Comet Quest", Mark="0")) + OVERHEAD
    with table(wire, *KEYS[:2]) as name:
        put_all(client, name, items)
        put_all(client, name, [score("5", "Comet Quest")])
        wire("UpdateTable", adding(name, "Mark:S", BY_MARK))
        wait_until_indexes_active(wire, name)
        settled_storage(client, name, 5, 5 * entry_bytes)
        client.delete_item(TableName=name, Key=key(items[0]))
        settled_storage(client, name, 4, 4 * entry_bytes)


@pytest.mark.differs_from_dynamodb_local("it counts the item in the place of its entry")
def test_s114_the_size_is_the_average_entry_times_the_items_that_have_one(client, wire):
    items = [score(f"{n:03}", "Comet Quest", Mark=f"{n:03}", Wins="w" * n) for n in range(40)]
    with scores_table(wire, BY_MARK, keys=KEYS) as name:
        put_all(client, name, items)
        put_all(client, name, (score(f"{n:03}", "without") for n in range(40)))

        average = sum(item_bytes(item) + OVERHEAD for item in items) / len(items)
        settled_storage(client, name, len(items), round(average * len(items)))


@pytest.mark.parametrize("lacking", ["Country", "TopScore"])
def test_s115_an_item_that_lacks_a_part_of_the_key_has_no_entry(client, wire, lacking):
    index = global_index("ByCountry", "Country", "TopScore")
    whole = score("1", "Comet Quest", 7, Country="BR")
    partial = {name: content for name, content in whole.items() if name != lacking}
    with scores_table(
        wire, index, keys=("UserId:S", "GameTitle:S", "TopScore:N", "Country:S")
    ) as name:
        put_all(client, name, [partial])
        without = settled_entries(client, name, score("1", "marker", 1, Country="FR"), "ByCountry")
        put_all(client, name, [whole])
        having = entries(client, name, 2, "ByCountry")

    assert without == []
    assert whole in having


def test_s115_an_item_that_lacks_all_of_the_key_has_no_entry(client, wire):
    with scores_table(wire, game_title_index(), global_index("ByScore", "TopScore")) as name:
        put_all(client, name, [score("1", "Comet Quest", Wins=3)])
        marker = score("1", "marker", 1)

        found = (
            settled_entries(client, name, marker),
            settled_entries(client, name, marker, "ByScore"),
        )
        items = client.scan(TableName=name)["Items"]

    assert found == ([], [])
    assert sorted(texts(items, "GameTitle")) == ["Comet Quest", "marker"]
