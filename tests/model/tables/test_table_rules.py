"""The rules for definitions in CreateTable."""

from __future__ import annotations

from typing import Any

import pytest

from dynactor.model.definitions.index import Projection
from dynactor.model.definitions.table import Throughput
from dynactor.model.errors import LimitExceededException, ValidationException
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.tables.schema_rules import KeyElement, NewIndex
from dynactor.model.tables.table_rules import NewTable, define

INVALID = "One or more parameter values were invalid: "


def key(*names: str) -> tuple[KeyElement, ...]:
    roles = ("HASH", "RANGE", "RANGE")
    return tuple(KeyElement(name, role) for name, role in zip(names, roles, strict=False))


def attributes(names: str) -> tuple[KeyAttribute, ...]:
    return tuple(KeyAttribute(name, "S") for name in names)


def index(name: str = "index", *, schema=None, projection="ALL", include=None) -> NewIndex:
    return NewIndex(name, schema or key("a", "c"), projection, include)


def table(**members: Any) -> NewTable:
    """A valid table with the keys a and b and an index on c; ``members`` change it."""
    good: dict[str, Any] = {
        "name": "table",
        "key_schema": key("a", "b"),
        "attribute_definitions": attributes("abc"),
        "local_indexes": (index(),),
        "billing_mode": "PAY_PER_REQUEST",
    }
    return NewTable(**{**good, **members})


def refusal(**members: Any) -> str:
    with pytest.raises((ValidationException, LimitExceededException)) as caught:
        define(table(**members))
    return caught.value.message


def test_a_table_with_an_index_is_defined():
    definition = define(table())
    assert definition.key_schema == KeySchema((KeyAttribute("a", "S"),), (KeyAttribute("b", "S"),))
    (made,) = definition.local_indexes
    assert made.index_id == 1
    assert made.key_schema.sort == (KeyAttribute("c", "S"),)
    assert made.projection == Projection("ALL")
    assert definition.next_index_id == 2


def test_an_index_on_the_tables_own_sort_key_is_a_valid_one():
    own = index(schema=key("a", "b"))
    assert define(table(attribute_definitions=attributes("ab"), local_indexes=(own,)))


def test_key_attributes_may_be_projected_too():
    include = index(projection="INCLUDE", include=("a", "x"))
    (made,) = define(table(local_indexes=(include,))).local_indexes
    assert made.projection == Projection("INCLUDE", ("a", "x"))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"billing_mode": None},
            (
                "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode "
                "is PROVISIONED"
            ),
        ),
        (
            {"throughput": Throughput(1, 1)},
            "ProvisionedThroughput cannot be specified when BillingMode is PAY_PER_REQUEST",
        ),
        (
            {"attribute_definitions": attributes("acd")},
            (
                "Some index key attributes are not defined in AttributeDefinitions. "
                "Keys: [a, b], AttributeDefinitions: [a, c, d]"
            ),
        ),
        (
            {"local_indexes": None},
            (
                "Number of attributes in KeySchema does not exactly match number of attributes "
                "defined in AttributeDefinitions"
            ),
        ),
        (
            {"attribute_definitions": attributes("abcd")},
            (
                "Some AttributeDefinitions are not used. AttributeDefinitions: [a, b, c, d], "
                "keys used: [a, b, c]"
            ),
        ),
        ({"local_indexes": ()}, "List of LocalSecondaryIndexes is empty"),
        (
            {"key_schema": key("a")},
            (
                "Table KeySchema does not have a range key, which is required when specifying "
                "a LocalSecondaryIndex"
            ),
        ),
        (
            {"local_indexes": (index(schema=key("a")),)},
            "Index KeySchema does not have a range key for index: index",
        ),
        (
            {"local_indexes": (index(schema=key("b", "c")),)},
            (
                "Index KeySchema does not have the same leading hash key as table KeySchema for "
                "index: index. index hash key: b, table hash key: a"
            ),
        ),
        (
            {"local_indexes": (index(schema=key("a", "z")),)},
            (
                "Some index key attributes are not defined in AttributeDefinitions. "
                "Keys: [a, z], AttributeDefinitions: [a, b, c]"
            ),
        ),
        ({"local_indexes": (index(projection=None),)}, "Unknown ProjectionType: null"),
        (
            {"local_indexes": (index(include=("x",)),)},
            "ProjectionType is ALL, but NonKeyAttributes is specified",
        ),
        (
            {"local_indexes": (index(projection="KEYS_ONLY", include=("x",)),)},
            "ProjectionType is KEYS_ONLY, but NonKeyAttributes is specified",
        ),
        (
            {"local_indexes": (index(projection="INCLUDE"),)},
            "ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
        ),
        (
            {"local_indexes": (index(projection="INCLUDE", include=("x", "x")),)},
            "Duplicate attribute name in NonKeyAttributes",
        ),
        ({"local_indexes": (index(), index())}, "Duplicate index name: index"),
        (
            {"local_indexes": tuple(index(f"index{number}") for number in range(6))},
            "Number of LocalSecondaryIndexes exceeds per-table limit of 5",
        ),
        ({"sse_specification": {"SSEType": "AES256"}}, "SSEType AES256 is not supported"),
        ({"tags": (("a", "1"), ("a", "2"))}, "Duplicate tag keys in Tags"),
        (
            {"tags": (("a", "1"), ("é 1+-=._:/@", "no, comma"))},
            (
                "The tag value no, comma has a character that is not allowed. Allowed are letters, "
                "white space, digits and + - = . _ : / @"
            ),
        ),
        (
            {"tags": (("a#", "1"),)},
            (
                "The tag key a# has a character that is not allowed. Allowed are letters, white "
                "space, digits and + - = . _ : / @"
            ),
        ),
        ({"tags": (("aws:a", "1"),)}, "Tag keys that begin with aws: are reserved: aws:a"),
        (
            {"on_demand_throughput": {"MaxReadRequestUnits": 0}},
            (
                "Requested MaxReadRequestUnits for OnDemandThroughput for table is outside of "
                "valid range"
            ),
        ),
        (
            {
                "billing_mode": "PROVISIONED",
                "throughput": Throughput(1, 1),
                "on_demand_throughput": {"MaxReadRequestUnits": 1},
            },
            (
                "MaxReadRequestUnits for OnDemandThroughput cannot be specified when table "
                "BillingMode is PROVISIONED."
            ),
        ),
        (
            {"warm_throughput": {"ReadUnitsPerSecond": 11_999}},
            (
                "Requested ReadUnitsPerSecond for WarmThroughput for table is lower than initial "
                "throughput for OnDemand. See: https://docs.aws.amazon.com/amazondynamodb/latest/"
                "developerguide/on-demand-capacity-mode.html#on-demand-capacity-mode-initial"
            ),
        ),
        (
            {
                "billing_mode": "PROVISIONED",
                "throughput": Throughput(1, 5),
                "warm_throughput": {"WriteUnitsPerSecond": 4},
            },
            (
                "Requested WriteUnitsPerSecond for WarmThroughput for table is lower than "
                "WriteCapacityUnits of ProvisionedThroughput"
            ),
        ),
        (
            {
                "attribute_definitions": attributes("abcd"),
                "local_indexes": (index(projection=None),),
            },
            (
                "Some AttributeDefinitions are not used. AttributeDefinitions: [a, b, c, d], "
                "keys used: [a, b, c]"
            ),
        ),
    ],
)
def test_a_bad_parameter_is_refused_by_name(members: dict[str, Any], message: str):
    assert refusal(**members) == INVALID + message


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"billing_mode": None, "throughput": Throughput(10**12 + 1, 10**12 + 1)},
            "Given value 1000000000001 for ReadCapacityUnits is out of bounds",
        ),
        (
            {"billing_mode": None, "throughput": Throughput(1, 10**12 + 1)},
            "Given value 1000000000001 for WriteCapacityUnits is out of bounds",
        ),
        (
            {"billing_mode": None, "throughput": Throughput(1, 40_001)},
            (
                "The requested WriteCapacityUnits, 40001, is above the per table maximum for the "
                "account in us-east-1. Per table maximum: 40000"
            ),
        ),
        (
            {"warm_throughput": {"WriteUnitsPerSecond": 40_001}},
            (
                "The requested WriteUnitsPerSecond, 40001, is above the per table maximum for the "
                "account in us-east-1. Per table maximum: 40000"
            ),
        ),
        (
            {"attribute_definitions": attributes("a")},
            "Invalid KeySchema: Some index key attribute have no definition",
        ),
        (
            {"key_schema": key("a", "a")},
            "Both the Hash Key and the Range Key element in the KeySchema have the same name",
        ),
        (
            {"key_schema": tuple(reversed(key("a", "b")))},
            "Invalid KeySchema: The first KeySchemaElement is not a HASH key type",
        ),
        (
            {"key_schema": key("a") + key("b")},
            "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type",
        ),
        (
            {"key_schema": key("a", "b", "c")},
            (
                "Key Schema too big.  Key Schema must at most consist of the hash and range key "
                "of a table"
            ),
        ),
        (
            {"local_indexes": (index(schema=key("a", "a")),)},
            "Both the Hash Key and the Range Key element in the KeySchema have the same name",
        ),
        (
            {"local_indexes": (index(schema=tuple(reversed(key("a", "c")))),)},
            "Invalid KeySchema: The first KeySchemaElement is not a HASH key type",
        ),
        (
            {"attribute_definitions": attributes("abcc")},
            "Attribute Name is duplicated: c",
        ),
        (
            {"tags": tuple((f"key{number}", "") for number in range(51))},
            "Number of Tags exceed the current limit for the provided ResourceArn",
        ),
    ],
)
def test_an_invalid_definition_is_refused(members: dict[str, Any], message: str):
    assert refusal(**members) == message


def test_a_hundred_projected_attributes_are_the_most():
    def indexes(*counts: int) -> tuple[NewIndex, ...]:
        return tuple(
            index(
                f"index{number}",
                projection="INCLUDE",
                include=tuple(f"name{attribute}" for attribute in range(count)),
            )
            for number, count in enumerate(counts)
        )

    assert define(table(local_indexes=indexes(20, 20, 20, 20, 20)))
    # The API's own limit is 20 for each index; the limit of the sum is separate.
    assert "limit of 100" in refusal(local_indexes=indexes(20, 20, 20, 20, 21))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"billing_mode": None}, {"key_schema": key("a", "a")}),
        ({"key_schema": key("a", "z")}, {"local_indexes": ()}),
        ({"key_schema": key("a", "a")}, {"attribute_definitions": attributes("abcd")}),
        ({"local_indexes": ()}, {"attribute_definitions": attributes("abcd")}),
        ({"local_indexes": ()}, {"sse_specification": {"SSEType": "AES256"}}),
    ],
)
def test_the_first_of_two_faults_is_reported(first: dict[str, Any], second: dict[str, Any]):
    assert refusal(**first, **second) == refusal(**first)


def test_the_error_of_a_quota_names_the_region():
    above = table(billing_mode=None, throughput=Throughput(40_001, 1))
    with pytest.raises(LimitExceededException, match=r"ReadCapacityUnits, 40001.* in eu-west-1"):
        define(above, "eu-west-1")


def test_encryption_disabled_is_not_kept():
    assert define(table(sse_specification={"Enabled": False})).sse_specification is None


def test_encryption_enabled_is_with_kms():
    definition = define(table(sse_specification={"Enabled": True}))
    assert definition.sse_specification == {"Enabled": True, "SSEType": "KMS"}
