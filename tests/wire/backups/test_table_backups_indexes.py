"""A restored table has all or the chosen indexes of its source, with all entries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.databases.table_backups import back_up, items_of, restored
from tests.support.tables.tables import (
    definition,
    global_index,
    local_index,
    table,
    unique_name,
    wait_until_active,
    wait_until_indexes_active,
)

pytestmark = pytest.mark.differs_from_dynamodb_local("it knows no backups")

BY_SOME = local_index("by-some", "pk", "n", "INCLUDE", ("x", "y"))
BY_KEYS = local_index("by-keys", "pk", "v", "KEYS_ONLY")
OF_ALL = global_index("of-all", "n", "v")
OF_KEYS = global_index("of-keys", "v", projection="KEYS_ONLY")


@pytest.fixture(scope="module")
def source(wire: WireClient) -> Iterator[str]:
    """A table with two indexes of each kind, and items without entries in some of them."""
    keys = ("pk:S", "sk:S", "n:N", "v:S")
    with table(
        wire, *keys, indexes=(BY_SOME, BY_KEYS), GlobalSecondaryIndexes=[OF_ALL, OF_KEYS]
    ) as name:
        for number in range(60):
            item: dict[str, Any] = {"pk": {"S": f"p{number % 3}"}, "sk": {"S": f"{number:02}"}}
            if number % 2:
                item |= {"n": {"N": f"{number % 7}"}, "x": {"S": "x" * number}}
            if number % 5:
                item |= {"v": {"S": f"v{number % 4}"}, "z": {"L": []}}
            wire("PutItem", {"TableName": name, "Item": item})
        # Wait until the global indexes have all entries.
        with_v = sum("v" in item for item in items_of(wire, name))
        while len(items_of(wire, name, IndexName="of-keys")) < with_v:
            pass
        with_both = sum("v" in item and "n" in item for item in items_of(wire, name))
        while len(items_of(wire, name, IndexName="of-all")) < with_both:
            pass
        yield name


@pytest.fixture(scope="module")
def backup(wire: WireClient, source: str) -> Iterator[str]:
    """A backup of the table ``source``."""
    arn = back_up(wire, source)
    yield arn
    wire("DeleteBackup", {"BackupArn": arn})


def shapes(indexes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: each[name] for name in ("IndexName", "KeySchema", "Projection")} for each in indexes
    ]


def counted(indexes: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    return {each["IndexName"]: (each["ItemCount"], each["IndexSizeBytes"]) for each in indexes}


def test_every_restored_index_equals_the_sources(wire: WireClient, source: str, backup: str):
    of_source = wait_until_indexes_active(wire, source)
    with restored(wire, backup) as name:
        whole = wire("DescribeTable", {"TableName": name})["Table"]
        for kind in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes"):
            assert shapes(whole[kind]) == shapes(of_source[kind])
            assert counted(whole[kind]) == counted(of_source[kind])
        for index in whole["GlobalSecondaryIndexes"]:
            assert index["IndexStatus"] == "ACTIVE"
            assert "Backfilling" not in index
        assert whole["ItemCount"] == of_source["ItemCount"]
        assert whole["TableSizeBytes"] == of_source["TableSizeBytes"]
        for index in ("by-some", "by-keys", "of-all", "of-keys"):
            expected = items_of(wire, source, IndexName=index)
            assert items_of(wire, name, IndexName=index) == expected
            assert expected
        assert items_of(wire, name) == items_of(wire, source)


def test_a_restored_tables_indexes_follow_new_writes(wire: WireClient, backup: str):
    with restored(wire, backup) as name:
        key = {"pk": {"S": "p1"}, "sk": {"S": "01"}}
        wire("DeleteItem", {"TableName": name, "Key": key})
        added = {"pk": {"S": "p1"}, "sk": {"S": "99"}, "n": {"N": "1"}, "v": {"S": "new"}}
        wire("PutItem", {"TableName": name, "Item": added})
        expected = [item for item in items_of(wire, name) if "n" in item and "v" in item]
        while items_of(wire, name, IndexName="of-all") != expected:
            pass
        by_some = items_of(wire, name, IndexName="by-some")
        assert [item["sk"] for item in by_some] == [
            item["sk"] for item in sorted(expected_local(wire, name), key=repr)
        ]


def expected_local(wire: WireClient, name: str) -> list[dict[str, Any]]:
    """The expected entries of an index on ``n`` with the projection of ``by-some``."""
    held = ("pk", "sk", "n", "x", "y")
    return [
        {each: item[each] for each in item if each in held}
        for item in items_of(wire, name)
        if "n" in item
    ]


def test_item_collections_have_their_sizes(wire: WireClient, source: str, backup: str):
    key = {"pk": {"S": "p1"}, "sk": {"S": "01"}}
    update = {
        "Key": key,
        "UpdateExpression": "REMOVE nothing",
        "ReturnItemCollectionMetrics": "SIZE",
    }
    with restored(wire, backup) as name:
        metrics = [
            wire("UpdateItem", {"TableName": each, **update})["ItemCollectionMetrics"]
            for each in (name, source)
        ]
    assert metrics[0] == metrics[1]


def test_indexes_are_described_with_the_backup(wire: WireClient, backup: str):
    described = wire("DescribeBackup", {"BackupArn": backup})["BackupDescription"]
    none = {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0}
    assert described["SourceTableFeatureDetails"] == {
        "LocalSecondaryIndexes": [BY_SOME, BY_KEYS],
        "GlobalSecondaryIndexes": [
            {**index, "ProvisionedThroughput": none} for index in (OF_ALL, OF_KEYS)
        ],
    }


def test_a_restore_can_select_some_of_the_indexes(wire: WireClient, source: str, backup: str):
    with restored(
        wire,
        backup,
        LocalSecondaryIndexOverride=[BY_KEYS],
        GlobalSecondaryIndexOverride=[OF_KEYS],
    ) as name:
        whole = wire("DescribeTable", {"TableName": name})["Table"]
        assert shapes(whole["LocalSecondaryIndexes"]) == [BY_KEYS]
        assert shapes(whole["GlobalSecondaryIndexes"]) == [OF_KEYS]
        # Attribute definitions that no key uses are removed.
        defined = {each["AttributeName"] for each in whole["AttributeDefinitions"]}
        assert defined == {"pk", "sk", "v"}
        for index in ("by-keys", "of-keys"):
            expected = items_of(wire, source, IndexName=index)
            assert items_of(wire, name, IndexName=index) == expected


def test_a_restore_can_rename_an_index(wire: WireClient, source: str, backup: str):
    renamed = {**BY_KEYS, "IndexName": "renamed"}
    with restored(
        wire, backup, LocalSecondaryIndexOverride=[renamed], GlobalSecondaryIndexOverride=[]
    ) as name:
        expected = items_of(wire, source, IndexName="by-keys")
        assert items_of(wire, name, IndexName="renamed") == expected


def test_a_restore_can_omit_all_indexes(wire: WireClient, source: str, backup: str):
    with restored(
        wire, backup, LocalSecondaryIndexOverride=[], GlobalSecondaryIndexOverride=[]
    ) as name:
        whole = wire("DescribeTable", {"TableName": name})["Table"]
        assert "LocalSecondaryIndexes" not in whole
        assert "GlobalSecondaryIndexes" not in whole
        assert items_of(wire, name) == items_of(wire, source)


@pytest.mark.parametrize(
    "override",
    [
        {"GlobalSecondaryIndexOverride": [global_index("of-all", "n")]},
        {"GlobalSecondaryIndexOverride": [global_index("of-keys", "v")]},
        {"LocalSecondaryIndexOverride": [local_index("by-keys", "pk", "n", "KEYS_ONLY")]},
        {"LocalSecondaryIndexOverride": [local_index("by-some", "pk", "n", "INCLUDE", ("x",))]},
    ],
)
def test_an_index_that_the_source_lacks_is_refused(
    wire: WireClient, backup: str, override: dict[str, Any]
):
    name = unique_name()
    refusal = wire.refused(
        "RestoreTableFromBackup", {"TargetTableName": name, "BackupArn": backup, **override}
    )
    assert refusal.type == "ValidationException"
    assert "does not match any index of the source table" in refusal.message
    missing = wire.refused("DescribeTable", {"TableName": name})
    assert missing.type == "ResourceNotFoundException"


def test_attributes_of_a_projection_may_come_in_another_order(wire: WireClient, backup: str):
    index = local_index("by-some", "pk", "n", "INCLUDE", ("y", "x"))
    with restored(wire, backup, LocalSecondaryIndexOverride=[index]) as name:
        whole = wire("DescribeTable", {"TableName": name})["Table"]
        assert len(whole["LocalSecondaryIndexes"]) == 1


def test_an_index_is_not_restored_twice(wire: WireClient, backup: str):
    asked = {
        "TargetTableName": unique_name(),
        "BackupArn": backup,
        "GlobalSecondaryIndexOverride": [OF_ALL, OF_ALL],
    }
    assert wire.refused("RestoreTableFromBackup", asked).type == "ValidationException"


def test_items_that_violate_an_index_key_are_restored_only_in_the_table(wire: WireClient):
    # The item violates an index that is added later: its attribute has another type than the index
    # key.
    request = definition("pk:S", "sk:S")
    name = request["TableName"]
    wire("CreateTable", request)
    wait_until_active(wire, name)
    for sort, value in (("a", {"N": "1"}), ("b", {"S": "one"})):
        item = {"pk": {"S": "EC2"}, "sk": {"S": sort}, "n": value}
        wire("PutItem", {"TableName": name, "Item": item})
    change = {
        "TableName": name,
        "AttributeDefinitions": [{"AttributeName": "n", "AttributeType": "N"}],
        "GlobalSecondaryIndexUpdates": [{"Create": global_index("of-n", "n")}],
    }
    wire("UpdateTable", change)
    wait_until_indexes_active(wire, name)
    arn = back_up(wire, name)
    with restored(wire, arn) as other:
        assert items_of(wire, other) == items_of(wire, name)
        [entry] = items_of(wire, other, IndexName="of-n")
        assert entry["sk"] == {"S": "a"}
    wire("DeleteTable", {"TableName": name})
    wire("DeleteBackup", {"BackupArn": arn})
