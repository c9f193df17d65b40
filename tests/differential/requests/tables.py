"""Random requests that create, change, tag, list and delete tables."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

from tests.differential.peers.peer import ARN_PREFIX
from tests.differential.requests.request import Request, Scenario, request
from tests.differential.requests.schemas import SCHEMAS

Body = dict[str, Any]

_DESCRIBED = (
    "DescribeTable",
    "DescribeTimeToLive",
    "DescribeContinuousBackups",
)


def _key(name: str, key_type: str) -> dict[str, str]:
    return {"AttributeName": name, "KeyType": key_type}


def _attribute(name: str, type_name: str) -> dict[str, str]:
    return {"AttributeName": name, "AttributeType": type_name}


def _index(name: str, sort: str = "d", **projection: Any) -> Body:
    return {
        "IndexName": name,
        "KeySchema": [_key("p", "HASH"), _key(sort, "RANGE")],
        "Projection": projection or {"ProjectionType": "ALL"},
    }


# Possible faults of a CreateTable: the members that replace those of a valid body.
_CREATE_FAULTS: dict[str, Body] = {
    "no key schema": {"KeySchema": []},
    "three keys": {"KeySchema": [_key("p", "HASH"), _key("s", "RANGE"), _key("d", "RANGE")]},
    "two partition keys": {"KeySchema": [_key("p", "HASH"), _key("s", "HASH")]},
    "sort key first": {"KeySchema": [_key("s", "RANGE"), _key("p", "HASH")]},
    "sort key alone": {"KeySchema": [_key("p", "RANGE")]},
    "one attribute twice": {"KeySchema": [_key("p", "HASH"), _key("p", "RANGE")]},
    "undefined key": {"KeySchema": [_key("zz", "HASH")]},
    "bad key type": {"KeySchema": [_key("p", "SORT")]},
    "no definitions": {"AttributeDefinitions": []},
    "unused definition": {
        "AttributeDefinitions": [_attribute("p", "S"), _attribute("unused", "N")],
        "KeySchema": [_key("p", "HASH")],
        "LocalSecondaryIndexes": None,
    },
    "definition twice": {
        "AttributeDefinitions": [_attribute("p", "S"), _attribute("p", "N")],
        "KeySchema": [_key("p", "HASH")],
        "LocalSecondaryIndexes": None,
    },
    "definition of type BOOL": {"AttributeDefinitions": [_attribute("p", "BOOL")]},
    "no throughput": {"ProvisionedThroughput": None, "BillingMode": "PROVISIONED"},
    "no billing at all": {"ProvisionedThroughput": None, "BillingMode": None},
    "zero units": {"ProvisionedThroughput": {"ReadCapacityUnits": 0, "WriteCapacityUnits": 1}},
    "negative units": {"ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": -1}},
    "half of the units": {"ProvisionedThroughput": {"ReadCapacityUnits": 1}},
    "enormous units": {
        "BillingMode": None,
        "ProvisionedThroughput": {
            "ReadCapacityUnits": 1_000_000_000_001,
            "WriteCapacityUnits": 1_000_000_000_001,
        },
    },
    "units and on-demand": {
        "BillingMode": "PAY_PER_REQUEST",
        "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
    },
    "bad billing mode": {"BillingMode": "FREE"},
    "bad table class": {"TableClass": "BEST"},
    "bad name": {"TableName": "bad name!"},
    "short name": {"TableName": "ab"},
    "long name": {"TableName": "a" * 256},
    "bad tags": {"Tags": [{"Key": "a"}]},
    "tags": {"Tags": [{"Key": "a", "Value": "b"}]},
    "tag twice": {"Tags": [{"Key": "a", "Value": "b"}, {"Key": "a", "Value": "c"}]},
    "no local indexes": {"LocalSecondaryIndexes": []},
    "six local indexes": {
        "LocalSecondaryIndexes": [_index(f"index{number}") for number in range(6)],
        "AttributeDefinitions": [_attribute("p", "S"), _attribute("s", "S"), _attribute("d", "S")],
        "KeySchema": [_key("p", "HASH"), _key("s", "RANGE")],
    },
    "index twice": {
        "LocalSecondaryIndexes": [_index("index"), _index("index")],
        "AttributeDefinitions": [_attribute("p", "S"), _attribute("s", "S"), _attribute("d", "S")],
        "KeySchema": [_key("p", "HASH"), _key("s", "RANGE")],
    },
    "index without table sort key": {
        "LocalSecondaryIndexes": [_index("index")],
        "AttributeDefinitions": [_attribute("p", "S"), _attribute("d", "S")],
        "KeySchema": [_key("p", "HASH")],
    },
    "bad index name": {"LocalSecondaryIndexes": [_index("a!")]},
    "undefined index key": {"LocalSecondaryIndexes": [_index("index", "undefined")]},
    "other index partition key": {
        "LocalSecondaryIndexes": [
            {
                "IndexName": "index",
                "KeySchema": [_key("s", "HASH"), _key("p", "RANGE")],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    },
    "index of one key": {
        "LocalSecondaryIndexes": [
            {
                "IndexName": "index",
                "KeySchema": [_key("p", "HASH")],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    },
    "no projection": {
        "LocalSecondaryIndexes": [
            {"IndexName": "index", "KeySchema": [_key("p", "HASH"), _key("d", "RANGE")]}
        ],
    },
    "empty projection": {
        "LocalSecondaryIndexes": [
            {
                "IndexName": "index",
                "KeySchema": [_key("p", "HASH"), _key("d", "RANGE")],
                "Projection": {},
            }
        ],
    },
    "bad projection": {"LocalSecondaryIndexes": [_index("index", ProjectionType="SOME")]},
    "INCLUDE of nothing": {"LocalSecondaryIndexes": [_index("index", ProjectionType="INCLUDE")]},
    "KEYS_ONLY with names": {
        "LocalSecondaryIndexes": [
            _index("index", ProjectionType="KEYS_ONLY", NonKeyAttributes=["a"])
        ]
    },
    "ALL with names": {
        "LocalSecondaryIndexes": [_index("index", ProjectionType="ALL", NonKeyAttributes=["a"])]
    },
    "no names": {
        "LocalSecondaryIndexes": [_index("index", ProjectionType="INCLUDE", NonKeyAttributes=[])]
    },
    "name twice": {
        "LocalSecondaryIndexes": [
            _index("index", ProjectionType="INCLUDE", NonKeyAttributes=["a", "a"])
        ]
    },
    "21 names": {
        "LocalSecondaryIndexes": [
            _index(
                "index",
                ProjectionType="INCLUDE",
                NonKeyAttributes=[f"a{number}" for number in range(21)],
            )
        ]
    },
    "101 names": {
        "LocalSecondaryIndexes": [
            _index(
                f"index{index}",
                ProjectionType="INCLUDE",
                NonKeyAttributes=[f"a{number}" for number in range(count)],
            )
            for index, count in enumerate((20, 20, 20, 20, 21))
        ]
    },
    "stream without view": {"StreamSpecification": {"StreamEnabled": True}},
    "stream off with view": {
        "StreamSpecification": {"StreamEnabled": False, "StreamViewType": "NEW_IMAGE"}
    },
    "no global indexes": {"GlobalSecondaryIndexes": []},
    "deletion protection": {"DeletionProtectionEnabled": True},
}


def _create(random: Random, name: str) -> tuple[Body, list[str]]:
    body = random.choice(SCHEMAS[1:]).create_table(name, on_demand=random.random() < 0.4)
    told = []
    for _ in range(random.choice((0, 1, 1, 2))):
        fault = random.choice(tuple(_CREATE_FAULTS))
        told.append(fault)
        for member, content in _CREATE_FAULTS[fault].items():
            if content is None:
                body.pop(member, None)
            else:
                body[member] = copy.deepcopy(content)
    return body, told


def _update(random: Random, name: str) -> Body:
    body: Body = {"TableName": name}
    parts: tuple[Body, ...] = (
        {"ProvisionedThroughput": {"ReadCapacityUnits": 7, "WriteCapacityUnits": 9}},
        {"ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}},
        {"ProvisionedThroughput": {"ReadCapacityUnits": 0, "WriteCapacityUnits": 5}},
        {"ProvisionedThroughput": {"ReadCapacityUnits": 5}},
        {"BillingMode": "PAY_PER_REQUEST"},
        {"BillingMode": "PROVISIONED"},
        {
            "BillingMode": "PROVISIONED",
            "ProvisionedThroughput": {"ReadCapacityUnits": 3, "WriteCapacityUnits": 3},
        },
        {"BillingMode": "FREE"},
        {"DeletionProtectionEnabled": True},
        {"DeletionProtectionEnabled": False},
        {"TableClass": "STANDARD_INFREQUENT_ACCESS"},
        {"TableClass": "BEST"},
        {"AttributeDefinitions": [_attribute("q", "S")]},
        {"AttributeDefinitions": []},
        {"GlobalSecondaryIndexUpdates": []},
        {"StreamSpecification": {"StreamEnabled": False}},
        {},
    )
    for part in random.sample(parts, random.choice((1, 1, 2))):
        body |= copy.deepcopy(part)
    return body


def step(random: Random, prefix: str) -> Request:
    """A request on one of the two tables whose names start with the prefix."""
    name = prefix + random.choice(("One", "Two"))
    arn = f"{ARN_PREFIX}table/{name}"
    bad_name = random.random() < 0.08
    if bad_name:
        name = random.choice(("ab", "bad name!", "", "a" * 256, arn, "arn:aws:x"))
    match random.randint(0, 17):
        case 0 | 1 | 2 | 3 | 4 | 5 | 6:
            body, told = _create(random, name)
            return request("CreateTable", body, *told)
        case 7 | 8:
            return request("DeleteTable", {"TableName": name} if random.random() < 0.95 else {})
        case 9 | 10 | 11:
            return request("UpdateTable", _update(random, name))
        case 12:
            listing: Body = {"ExclusiveStartTableName": prefix}
            if random.random() < 0.4:
                listing["Limit"] = random.choice((1, 2, 0, -1, 101))
            if random.random() < 0.2:
                listing["ExclusiveStartTableName"] = random.choice(("ab", "bad name!", ""))
            return request("ListTables", listing)
        case 13:
            return request(
                random.choice(_DESCRIBED), {"TableName": name} if random.random() < 0.9 else {}
            )
        case 14:
            return _tagging(random, arn)
        case 15:
            return request(random.choice(("DescribeLimits", "DescribeEndpoints")), {})
        case 16:
            return request("DescribeTable", {"TableName": name})
    return request(random.choice(_DESCRIBED), {"TableName": name})


def _tagging(random: Random, arn: str) -> Request:
    if random.random() < 0.1:
        arn = random.choice(("arn:aws:x", "", arn + "2", "NoSuchTable"))
    body: Body = {"ResourceArn": arn} if random.random() < 0.95 else {}
    match random.randint(0, 3):
        case 0 | 1:
            body["Tags"] = random.choice(
                (
                    [{"Key": "a", "Value": "1"}],
                    [{"Key": "b", "Value": ""}, {"Key": "c", "Value": "2"}],
                    [],
                    [{"Key": "a"}],
                    [{"Key": "", "Value": "1"}],
                    [{"Key": "k" * 129, "Value": "1"}],
                    [{"Key": "k", "Value": "v" * 257}],
                    [{"Key": "aws:a", "Value": "1"}],
                    [{"Key": f"key{number}", "Value": "1"} for number in range(51)],
                )
            )
            return request("TagResource", body)
        case 2:
            body["TagKeys"] = random.choice((["a"], ["b", "none"], [], [""]))
            return request("UntagResource", body)
    return request("ListTagsOfResource", body)


def scenario(seed: int) -> Scenario:
    """A scenario of about 40 requests."""
    random = Random(f"tables {seed}")
    prefix = f"Tables{seed}x"
    requests = tuple(step(random, prefix) for _ in range(40))
    cleared = tuple(
        sent
        for suffix in ("One", "Two")
        for sent in (
            request(
                "UpdateTable", {"TableName": prefix + suffix, "DeletionProtectionEnabled": False}
            ),
            request("DeleteTable", {"TableName": prefix + suffix}),
        )
    )
    return Scenario(prefix, cleared, requests, cleared)
