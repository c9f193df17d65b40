"""CreateTable: the answer, and refused definitions."""

from __future__ import annotations

import re
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
    unique_name,
    wait_until_active,
)

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local
ours_alone = pytest.mark.ours_alone

INVALID = "One or more parameter values were invalid: "


def created(wire: WireClient, request: dict[str, Any]) -> dict[str, Any]:
    """Create a table, delete it, and return the description in the answer to CreateTable."""
    description: dict[str, Any] = wire("CreateTable", request)["TableDescription"]
    wait_until_active(wire, request["TableName"])
    wire("DeleteTable", {"TableName": request["TableName"]})
    return description


def test_an_on_demand_table_is_described(wire: WireClient):
    request = definition("pk:S", "sk:N")
    description = created(wire, request)
    assert description["TableName"] == request["TableName"]
    assert description["TableStatus"] in ("CREATING", "ACTIVE")
    assert description["KeySchema"] == request["KeySchema"]
    assert description["AttributeDefinitions"] == request["AttributeDefinitions"]
    assert description["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    throughput = description["ProvisionedThroughput"]
    assert (throughput["ReadCapacityUnits"], throughput["WriteCapacityUnits"]) == (0, 0)
    assert throughput["NumberOfDecreasesToday"] == 0
    assert description["ItemCount"] == 0
    assert description["TableSizeBytes"] == 0
    assert description["DeletionProtectionEnabled"] is False
    assert re.fullmatch(
        rf"arn:aws:dynamodb:[a-z0-9-]+:[0-9]{{12}}:table/{request['TableName']}",
        description["TableArn"],
    )
    assert isinstance(description["CreationDateTime"], float)


@differs_from_dynamodb_local("its tables are ACTIVE at once")
def test_the_time_of_the_switch_to_on_demand_is_shown_when_the_table_is_active(wire: WireClient):
    with table(wire, "pk:S") as name:
        described = wire("DescribeTable", {"TableName": name})["Table"]
        assert described["BillingModeSummary"] == {
            "BillingMode": "PAY_PER_REQUEST",
            "LastUpdateToPayPerRequestDateTime": described["CreationDateTime"],
        }
    creating = created(wire, definition("pk:S"))
    assert creating["TableStatus"] == "CREATING"
    assert creating["BillingModeSummary"] == {"BillingMode": "PAY_PER_REQUEST"}


@differs_from_dynamodb_local("it has no TableId")
def test_a_table_has_an_id_of_its_own(wire: WireClient):
    request = definition("pk:S")
    first = created(wire, request)["TableId"]
    second = created(wire, request)["TableId"]
    assert re.fullmatch(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", first)
    assert first != second


def test_a_provisioned_table_is_described(wire: WireClient):
    request = definition(
        "pk:B",
        BillingMode="PROVISIONED",
        ProvisionedThroughput={"ReadCapacityUnits": 3, "WriteCapacityUnits": 4},
    )
    throughput = created(wire, request)["ProvisionedThroughput"]
    assert (throughput["ReadCapacityUnits"], throughput["WriteCapacityUnits"]) == (3, 4)


def test_throughput_alone_makes_a_provisioned_table(wire: WireClient):
    request = definition(
        "pk:S", ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    )
    del request["BillingMode"]
    description = created(wire, request)
    assert description["ProvisionedThroughput"]["ReadCapacityUnits"] == 1
    assert description.get("BillingModeSummary", {}).get("BillingMode") in (None, "PROVISIONED")


def test_local_indexes_are_described(wire: WireClient):
    indexes = (
        local_index("by-a", "pk", "a"),
        local_index("by-b", "pk", "b", "KEYS_ONLY"),
        local_index("by-c", "pk", "a", "INCLUDE", ("x", "y")),
    )
    request = definition("pk:S", "sk:S", "a:N", "b:B", indexes=indexes)
    description = created(wire, request)
    by_name = {index["IndexName"]: index for index in description["LocalSecondaryIndexes"]}
    assert by_name.keys() == {"by-a", "by-b", "by-c"}
    for index in indexes:
        described = by_name[index["IndexName"]]
        assert described["KeySchema"] == index["KeySchema"]
        assert described["Projection"]["ProjectionType"] == index["Projection"]["ProjectionType"]
        assert described["ItemCount"] == 0
        assert described["IndexSizeBytes"] == 0
        assert described["IndexArn"] == f"{description['TableArn']}/index/{index['IndexName']}"
    assert sorted(by_name["by-c"]["Projection"]["NonKeyAttributes"]) == ["x", "y"]


def test_an_index_on_the_tables_own_sort_key_is_accepted(wire: WireClient):
    request = definition("pk:S", "sk:S", indexes=(local_index("again", "pk", "sk"),))
    assert created(wire, request)["LocalSecondaryIndexes"][0]["IndexName"] == "again"


def test_the_order_of_attribute_definitions_does_not_matter(wire: WireClient):
    request = definition("sk:S", "pk:S", KeySchema=key_schema("pk", "sk"))
    assert created(wire, request)["KeySchema"] == key_schema("pk", "sk")


@differs_from_dynamodb_local("other words")
def test_the_name_of_an_existing_table_is_refused(wire: WireClient, simple: str):
    request = definition("pk:S", name=simple)
    assert wire.refused("CreateTable", request) == (
        "ResourceInUseException",
        f"Table already exists: {simple}",
    )


def test_the_error_for_the_name_of_an_existing_table_is_resource_in_use(
    wire: WireClient, simple: str
):
    request = definition("pk:N", name=simple)
    assert wire.refused("CreateTable", request).type == "ResourceInUseException"


def test_names_of_3_and_of_255_characters_are_accepted(wire: WireClient):
    for name in (unique_name("n").ljust(255, "x"), unique_name()[-3:].replace("-", ".")):
        assert created(wire, definition("pk:S", name=name))["TableName"] == name


@ours_alone("on AWS such tables are billed")
def test_settings_are_described(wire: WireClient):
    members = {
        "DeletionProtectionEnabled": False,
        "TableClass": "STANDARD_INFREQUENT_ACCESS",
        "SSESpecification": {"Enabled": True, "SSEType": "KMS"},
        "OnDemandThroughput": {"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 20},
    }
    with table(wire, "pk:S", **members) as name:
        described = wire("DescribeTable", {"TableName": name})["Table"]
        assert described["TableClassSummary"]["TableClass"] == "STANDARD_INFREQUENT_ACCESS"
        assert described["SSEDescription"]["Status"] == "ENABLED"
        assert described["SSEDescription"]["SSEType"] == "KMS"
        assert described["OnDemandThroughput"] == members["OnDemandThroughput"]


@differs_from_dynamodb_local("it keeps no tags of CreateTable")
def test_tags_given_at_creation_are_kept(wire: WireClient):
    with table(wire, "pk:S", Tags=[{"Key": "team", "Value": "films"}]) as name:
        arn = wire("DescribeTable", {"TableName": name})["Table"]["TableArn"]
        tags = wire("ListTagsOfResource", {"ResourceArn": arn})["Tags"]
        assert tags == [{"Key": "team", "Value": "films"}]


@ours_alone("global tables come later")
@pytest.mark.parametrize(
    "members",
    [
        {"GlobalTableSourceArn": "arn:aws:dynamodb:us-east-1:000000000000:table/source"},
        {"GlobalTableSettingsReplicationMode": "ENABLED"},
    ],
)
def test_an_unsupported_setting_is_refused_clearly(wire: WireClient, members: Any):
    request = definition("pk:S", **members)
    assert wire.refused("CreateTable", request) == (
        "ValidationException",
        f"{next(iter(members))} is not supported yet",
    )
    refusal = wire.refused("DescribeTable", {"TableName": request["TableName"]})
    assert refusal.type == "ResourceNotFoundException"


def index(
    partition: str = "pk", sort: str = "a", name: str = "index", **projection: Any
) -> dict[str, Any]:
    return {
        "IndexName": name,
        "KeySchema": key_schema(partition, sort),
        "Projection": projection or {"ProjectionType": "ALL"},
    }


def with_indexes(*indexes: dict[str, Any]) -> dict[str, Any]:
    return {
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "a")
        ],
        "KeySchema": key_schema("pk", "sk"),
        "LocalSecondaryIndexes": list(indexes),
    }


def with_keys(*names: str, defined: str) -> dict[str, Any]:
    return {
        "KeySchema": key_schema(*names),
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "S"} for name in defined.split()
        ],
    }


@differs_from_dynamodb_local("its words for table definitions are its own")
@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"BillingMode": None},
            INVALID + "ReadCapacityUnits and WriteCapacityUnits must both be specified when "
            "BillingMode is PROVISIONED",
        ),
        (
            {"BillingMode": "PROVISIONED"},
            INVALID + "ReadCapacityUnits and WriteCapacityUnits must both be specified when "
            "BillingMode is PROVISIONED",
        ),
        (
            {"ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}},
            INVALID + "ProvisionedThroughput cannot be specified when BillingMode is "
            "PAY_PER_REQUEST",
        ),
        (
            {
                "BillingMode": "PROVISIONED",
                "ProvisionedThroughput": {
                    "ReadCapacityUnits": 1_000_000_000_001,
                    "WriteCapacityUnits": 1,
                },
            },
            "Given value 1000000000001 for ReadCapacityUnits is out of bounds",
        ),
        (
            with_keys("pk", "sk", defined="pk"),
            "Invalid KeySchema: Some index key attribute have no definition",
        ),
        (
            with_keys("sk", defined="pk"),
            INVALID + "Some index key attributes are not defined in AttributeDefinitions. "
            "Keys: [sk], AttributeDefinitions: [pk]",
        ),
        (
            with_keys("pk", "pk", defined="pk sk"),
            "Both the Hash Key and the Range Key element in the KeySchema have the same name",
        ),
        (
            {"KeySchema": [{"AttributeName": "pk", "KeyType": "RANGE"}]},
            "Invalid KeySchema: The first KeySchemaElement is not a HASH key type",
        ),
        (
            with_keys("pk", "sk", defined="pk sk")
            | {
                "KeySchema": [
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "sk", "KeyType": "HASH"},
                ]
            },
            "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type",
        ),
        (
            with_keys("pk", defined="pk sk"),
            INVALID + "Number of attributes in KeySchema does not exactly match number of "
            "attributes defined in AttributeDefinitions",
        ),
        (
            {"TableClass": "COLD"},
            (
                "Invalid table-class parameter provided. Please try again with a valid table-class "
                "value: [STANDARD, STANDARD_INFREQUENT_ACCESS]"
            ),
        ),
        (
            with_indexes(index() | {"KeySchema": key_schema("pk", "a") + key_schema("sk")}),
            (
                "1 validation error detected: Value '[KeySchemaElement(attributeName=pk, "
                "keyType=HASH), KeySchemaElement(attributeName=a, keyType=RANGE), "
                "KeySchemaElement(attributeName=sk, keyType=HASH)]' at "
                "'localSecondaryIndexes.1.member.keySchema' failed to satisfy constraint: Member "
                "must have length less than or equal to 2"
            ),
        ),
        (with_indexes(), INVALID + "List of LocalSecondaryIndexes is empty"),
        (
            with_keys("pk", defined="pk a") | {"LocalSecondaryIndexes": [index()]},
            INVALID + "Table KeySchema does not have a range key, which is required when "
            "specifying a LocalSecondaryIndex",
        ),
        (
            with_indexes(index() | {"KeySchema": key_schema("pk")}),
            INVALID + "Index KeySchema does not have a range key for index: index",
        ),
        (
            with_indexes(index(partition="sk")),
            INVALID + "Index KeySchema does not have the same leading hash key as table KeySchema "
            "for index: index. index hash key: sk, table hash key: pk",
        ),
        (
            with_indexes(index(sort="undefined")),
            INVALID + "Some index key attributes are not defined in AttributeDefinitions. "
            "Keys: [pk, undefined], AttributeDefinitions: [pk, sk, a]",
        ),
        (
            with_indexes(index(sort="pk")),
            "Both the Hash Key and the Range Key element in the KeySchema have the same name",
        ),
        (
            with_indexes(index() | {"Projection": {}}),
            INVALID + "Unknown ProjectionType: null",
        ),
        (
            with_indexes(index(ProjectionType="ALL", NonKeyAttributes=["x"])),
            INVALID + "ProjectionType is ALL, but NonKeyAttributes is specified",
        ),
        (
            with_indexes(index(ProjectionType="KEYS_ONLY", NonKeyAttributes=["x"])),
            INVALID + "ProjectionType is KEYS_ONLY, but NonKeyAttributes is specified",
        ),
        (with_indexes(index(), index()), INVALID + "Duplicate index name: index"),
        (
            with_indexes(*[index(name=f"index{number}") for number in range(6)]),
            INVALID + "Number of LocalSecondaryIndexes exceeds per-table limit of 5",
        ),
    ],
)
def test_an_invalid_definition_is_refused(wire: WireClient, members: Any, message: str):
    request = {
        name: value for name, value in (definition("pk:S") | members).items() if value is not None
    }
    assert wire.refused("CreateTable", request) == ("ValidationException", message)


@ours_alone("it shows no warm throughput")
def test_the_answer_shows_only_a_requested_warm_throughput(wire: WireClient):
    warm = {"ReadUnitsPerSecond": 13_000, "WriteUnitsPerSecond": 5_000}
    for members, shows in (({}, False), ({"WarmThroughput": warm}, True)):
        indexes = [global_index("by-a", "a", **members), global_index("by-b", "a")]
        request = definition("pk:S", "a:S", GlobalSecondaryIndexes=indexes, **members)
        request["KeySchema"] = key_schema("pk")
        made = wire("CreateTable", request)["TableDescription"]
        by_a, by_b = made["GlobalSecondaryIndexes"]
        assert ("WarmThroughput" in made, "WarmThroughput" in by_a) == (shows, shows)
        assert "WarmThroughput" not in by_b
        described = wait_until_active(wire, request["TableName"])
        assert described["WarmThroughput"]
        assert all(each["WarmThroughput"] for each in described["GlobalSecondaryIndexes"])
        wire("DeleteTable", {"TableName": request["TableName"]})


@differs_from_dynamodb_local("other words")
def test_an_attribute_defined_twice_is_refused(lanes: LanesClient):
    request = definition("pk:S") | with_keys("pk", defined="pk xyz xyz")
    assert lanes.refused("CreateTable", request) == (
        "ValidationException",
        "Attribute Name is duplicated: xyz",
    )


@differs_from_dynamodb_local("other words")
def test_a_fault_of_a_global_index_is_reported_before_that_of_a_local_one(lanes: LanesClient):
    request = definition(
        "pk:S",
        "sk:S",
        indexes=(local_index("l1", "pk", "sk"),),
        GlobalSecondaryIndexes=[global_index("g1", "sk")],
    )
    message = lanes.refused("CreateTable", request).message
    assert message is not None
    assert message.startswith("2 validation errors detected: ")
    first, second = message.split("; ")
    assert "'g1' at 'globalSecondaryIndexes.1.member.indexName'" in first
    assert "'l1' at 'localSecondaryIndexes.1.member.indexName'" in second


@pytest.mark.parametrize(
    "members",
    [
        with_indexes(index(ProjectionType="INCLUDE")),
        with_indexes(index(ProjectionType="INCLUDE", NonKeyAttributes=["x", "x"])),
        with_indexes(index(ProjectionType="INCLUDE", NonKeyAttributes=["x" * 256])),
        with_keys("p" * 256, defined="p" * 256),
        with_keys("pk", defined="pk pk"),
    ],
)
def test_an_invalid_definition_is_a_validation_error(wire: WireClient, members: Any):
    assert wire.refused("CreateTable", definition("pk:S") | members).type == "ValidationException"


@differs_from_dynamodb_local("it takes 100 and more")
def test_at_most_100_attributes_are_projected_over_all_indexes(wire: WireClient):
    def five(attributes_of_last: int) -> dict[str, Any]:
        counts = (20, 20, 20, 20, attributes_of_last)
        return with_indexes(
            *[
                index(
                    name=f"index{number}",
                    ProjectionType="INCLUDE",
                    NonKeyAttributes=[f"{number}-{at}" for at in range(count)],
                )
                for number, count in enumerate(counts)
            ]
        )

    assert created(wire, definition("pk:S") | five(20))
    refusal = wire.refused("CreateTable", definition("pk:S") | five(21))
    assert refusal.type == "ValidationException"
