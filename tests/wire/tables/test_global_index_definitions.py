"""CreateTable and DescribeTable with global secondary indexes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.lanes import LanesClient
from tests.support.tables.tables import (
    definition,
    global_index,
    key_schema,
    local_index,
    table,
    wait_until_indexes_active,
)

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

INVALID = "One or more parameter values were invalid: "
UNITS = {"ReadCapacityUnits": 2, "WriteCapacityUnits": 3}


def by_name(description: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {index["IndexName"]: index for index in description["GlobalSecondaryIndexes"]}


def test_indexes_are_described(wire: WireClient):
    indexes = [
        global_index("by-a", "a"),
        global_index("by-a-pk", "a", "pk", projection="KEYS_ONLY"),
        global_index("by-b", "b", "a", projection="INCLUDE", include=("x", "y")),
    ]
    with table(
        wire, "pk:S", "a:N", "b:B", KeySchema=key_schema("pk"), GlobalSecondaryIndexes=indexes
    ) as name:
        described = wait_until_indexes_active(wire, name)
        found = by_name(described)
        assert found.keys() == {"by-a", "by-a-pk", "by-b"}
        for index in indexes:
            shown = found[index["IndexName"]]
            assert shown["KeySchema"] == index["KeySchema"]
            assert shown["IndexStatus"] == "ACTIVE"
            assert "Backfilling" not in shown
            assert (shown["ItemCount"], shown["IndexSizeBytes"]) == (0, 0)
            assert shown["IndexArn"] == f"{described['TableArn']}/index/{index['IndexName']}"
        assert sorted(found["by-b"]["Projection"]["NonKeyAttributes"]) == ["x", "y"]
        assert found["by-a-pk"]["Projection"] == {"ProjectionType": "KEYS_ONLY"}


@differs_from_dynamodb_local("its indexes are ACTIVE at once")
def test_the_answer_shows_indexes_that_are_being_created(wire: WireClient):
    request = definition(
        "pk:S",
        "a:S",
        KeySchema=key_schema("pk"),
        GlobalSecondaryIndexes=[global_index("by-a", "a")],
    )
    answer = wire("CreateTable", request)["TableDescription"]
    assert by_name(answer)["by-a"]["IndexStatus"] == "CREATING"
    assert "Backfilling" not in by_name(answer)["by-a"]
    wait_until_indexes_active(wire, request["TableName"])
    wire("DeleteTable", {"TableName": request["TableName"]})


@differs_from_dynamodb_local("it shows no throughput for them")
def test_indexes_of_an_on_demand_table_have_no_units(wire: WireClient):
    limits = {"MaxReadRequestUnits": 5, "MaxWriteRequestUnits": 6}
    indexes = [global_index("by-a", "a", OnDemandThroughput=limits)]
    with table(
        wire, "pk:S", "a:S", KeySchema=key_schema("pk"), GlobalSecondaryIndexes=indexes
    ) as name:
        shown = by_name(wait_until_indexes_active(wire, name))["by-a"]
        throughput = shown["ProvisionedThroughput"]
        assert (throughput["ReadCapacityUnits"], throughput["WriteCapacityUnits"]) == (0, 0)
        assert shown["OnDemandThroughput"] == limits
        assert shown["WarmThroughput"] == {
            "ReadUnitsPerSecond": 12_000,
            "WriteUnitsPerSecond": 4_000,
            "Status": "ACTIVE",
        }


def test_indexes_of_a_provisioned_table_have_their_own_units(wire: WireClient):
    members = {
        "KeySchema": key_schema("pk"),
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
        "GlobalSecondaryIndexes": [global_index("by-a", "a", ProvisionedThroughput=UNITS)],
    }
    with table(wire, "pk:S", "a:S", **members) as name:
        throughput = by_name(wait_until_indexes_active(wire, name))["by-a"]["ProvisionedThroughput"]
        assert throughput["ReadCapacityUnits"] == 2
        assert throughput["WriteCapacityUnits"] == 3


def test_a_key_may_have_several_attributes_of_each_kind(wire: WireClient):
    keys = ("a:HASH", "b:HASH", "c:HASH", "d:HASH", "e:RANGE", "f:RANGE", "pk:RANGE", "sk:RANGE")
    names = ("pk:S", "sk:S", "a:S", "b:N", "c:S", "d:B", "e:S", "f:N")
    with table(wire, *names, GlobalSecondaryIndexes=[global_index("wide", *keys)]) as name:
        shown = by_name(wait_until_indexes_active(wire, name))["wide"]
        assert [
            (element["AttributeName"], element["KeyType"]) for element in shown["KeySchema"]
        ] == [tuple(key.split(":")) for key in keys]


def test_a_table_may_have_local_and_global_indexes(wire: WireClient):
    members = {
        "indexes": (local_index("by-a", "pk", "a"),),
        "GlobalSecondaryIndexes": [global_index("by-sk", "sk")],
    }
    with table(wire, "pk:S", "sk:S", "a:S", **members) as name:
        described = wait_until_indexes_active(wire, name)
        assert [index["IndexName"] for index in described["LocalSecondaryIndexes"]] == ["by-a"]
        assert by_name(described).keys() == {"by-sk"}


@differs_from_dynamodb_local("its words for table definitions are its own")
@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"GlobalSecondaryIndexes": []}, f"{INVALID}List of GlobalSecondaryIndexes is empty"),
        (
            {"GlobalSecondaryIndexes": [global_index("by-a", "a", ProvisionedThroughput=UNITS)]},
            (
                f"{INVALID}ProvisionedThroughput should not be specified for index: by-a when "
                "BillingMode is PAY_PER_REQUEST"
            ),
        ),
        (
            {
                "BillingMode": "PROVISIONED",
                "ProvisionedThroughput": UNITS,
                "GlobalSecondaryIndexes": [global_index("by-a", "a")],
            },
            f"{INVALID}ProvisionedThroughput is not specified for index: by-a",
        ),
        (
            {"GlobalSecondaryIndexes": [global_index(f"by-a-{at}", "a") for at in range(21)]},
            f"{INVALID}GlobalSecondaryIndex count exceeds the per-table limit of 20",
        ),
        (
            {"GlobalSecondaryIndexes": [global_index("by-a", "a"), global_index("by-a", "a")]},
            f"{INVALID}Duplicate index name: by-a",
        ),
        (
            {"GlobalSecondaryIndexes": [global_index("by-x", "x")]},
            (
                f"{INVALID}Some index key attributes are not defined in AttributeDefinitions. "
                "Keys: [x], AttributeDefinitions: [pk, a]"
            ),
        ),
        (
            {"GlobalSecondaryIndexes": [global_index("by-a", "a:RANGE")]},
            "Invalid KeySchema: The first KeySchemaElement is not a HASH key type",
        ),
    ],
)
def test_an_invalid_definition_is_refused(lanes: LanesClient, members: Any, message: str):
    request = definition("pk:S", "a:S", KeySchema=key_schema("pk")) | members
    assert lanes.refused("CreateTable", request) == ("ValidationException", message)


@pytest.mark.parametrize(
    "keys",
    [
        ("a:HASH", "b:HASH", "c:HASH", "d:HASH", "e:HASH"),
        ("a:HASH", "b:RANGE", "c:RANGE", "d:RANGE", "e:RANGE", "pk:RANGE"),
        ("a:HASH", "b:RANGE", "c:HASH", "d:RANGE", "e:RANGE"),
        ("a:HASH", "a:RANGE", "b:RANGE", "c:RANGE", "d:RANGE"),
    ],
)
def test_a_key_with_too_many_attributes_or_in_a_wrong_order_is_refused(wire: WireClient, keys: Any):
    names = ("pk:S", "a:S", "b:S", "c:S", "d:S", "e:S")
    members = {
        "KeySchema": key_schema("pk"),
        "GlobalSecondaryIndexes": [global_index("wide", *keys)],
    }
    refusal = wire.refused("CreateTable", definition(*names, **members))
    assert refusal.type == "ValidationException"
