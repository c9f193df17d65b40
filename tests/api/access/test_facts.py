"""The condition keys of requests: leading keys, attributes, and the others of DynamoDB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from dynactor.api.access.ask import Asking
from dynactor.api.access.facts import RequestFacts
from dynactor.api.access.sender import Client
from dynactor.api.http.protocol import Request
from dynactor.api.registry import OPERATIONS
from dynactor.model.access.operators import epoch_seconds
from dynactor.model.access.principal import user
from dynactor.model.access.rules import UnknownFact
from tests.support.access.callers import ACCOUNT, Callers
from tests.support.access.deciding import policy
from tests.support.databases.databases import running_database

UNKNOWN = "(unknown)"
TABLE = {
    "TableName": "Scores",
    "AttributeDefinitions": [
        {"AttributeName": name, "AttributeType": kind}
        for name, kind in (("user", "S"), ("game", "S"), ("top", "N"), ("city", "S"), ("bin", "B"))
    ],
    "KeySchema": [
        {"AttributeName": "user", "KeyType": "HASH"},
        {"AttributeName": "game", "KeyType": "RANGE"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": name,
            "KeySchema": [{"AttributeName": key, "KeyType": "HASH"} for key in keys],
            "Projection": {"ProjectionType": "ALL"},
        }
        for name, keys in (("ByTop", ["top"]), ("ByBoth", ["city", "top"]), ("ByBin", ["bin"]))
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "Tags": [{"Key": "team", "Value": "blue"}],
}
KEY = {"user": {"S": "ann"}, "game": {"S": "go"}}
LEADING = "dynamodb:leadingkeys"
ATTRIBUTES = "dynamodb:attributes"
SELECT = "dynamodb:select"
RETURNS = "dynamodb:returnvalues"
CAPACITY = "dynamodb:returnconsumedcapacity"
ENCLOSING = "dynamodb:enclosingoperation"
FULL = "dynamodb:fulltablescan"


def query(condition: str, **more: Any) -> dict[str, Any]:
    values = {":u": {"S": "ann"}, ":n": {"N": "1.0"}, ":c": {"S": "x"}, ":b": {"B": "YQ=="}}
    used = {name: value for name, value in values.items() if name in condition}
    return {"KeyConditionExpression": condition, "ExpressionAttributeValues": used, **more}


def statement(text: str, *parameters: Any) -> dict[str, Any]:
    return {"Statement": text, **({"Parameters": list(parameters)} if parameters else {})}


CHECK_OF_A = statement(
    "EXISTS(SELECT a FROM Scores WHERE \"user\" = 'ann' AND game = 'go' AND a = 1)"
)

# The operation, its request, and facts of each of its actions.
CASES: list[tuple[str, dict[str, Any], list[dict[str, Any]]]] = [
    (
        "GetItem",
        {"Key": KEY},
        [
            {
                LEADING: ["ann"],
                "dynamodb:firstpartitionkeyvalues": ["ann"],
                "dynamodb:secondpartitionkeyvalues": None,
                ATTRIBUTES: ["game", "user"],
                SELECT: ["ALL_ATTRIBUTES"],
                CAPACITY: ["NONE"],
                RETURNS: None,
                ENCLOSING: None,
                FULL: None,
                "aws:resourcetag/team": ["blue"],
            }
        ],
    ),
    (
        "GetItem",
        {
            "Key": KEY,
            "ProjectionExpression": "a.b, #c[0].d, e",
            "ExpressionAttributeNames": {"#c": "see"},
            "ReturnConsumedCapacity": "TOTAL",
        },
        [
            {
                ATTRIBUTES: ["a", "e", "game", "see", "user"],
                SELECT: ["SPECIFIC_ATTRIBUTES"],
                CAPACITY: ["TOTAL"],
            }
        ],
    ),
    (
        "GetItem",
        {"Key": KEY, "AttributesToGet": ["x"]},
        [{ATTRIBUTES: ["game", "user", "x"], SELECT: ["SPECIFIC_ATTRIBUTES"]}],
    ),
    ("GetItem", {"Key": {"game": {"S": "go"}}}, [{LEADING: UNKNOWN}]),
    ("GetItem", {"Key": {"user": {"N": "1"}, "game": {"S": "go"}}}, [{LEADING: UNKNOWN}]),
    ("GetItem", {"Key": KEY, "ProjectionExpression": "a b"}, [{ATTRIBUTES: UNKNOWN}]),
    ("GetItem", {"Key": KEY, "TableName": "Nowhere"}, [{LEADING: UNKNOWN}]),
    (
        "PutItem",
        {
            "Item": {**KEY, "a": {"N": "1"}},
            "ConditionExpression": "size(b) > :x OR NOT c.d IN (:x, e)",
            "ExpressionAttributeValues": {":x": {"N": "1"}},
            "ReturnValues": "ALL_OLD",
        },
        [{ATTRIBUTES: ["a", "b", "c", "e", "game", "user"], RETURNS: ["ALL_OLD"]}],
    ),
    (
        "PutItem",
        {"Item": KEY, "Expected": {"old": {"Exists": False}}},
        [{ATTRIBUTES: ["game", "old", "user"], RETURNS: ["NONE"]}],
    ),
    (
        "UpdateItem",
        {
            "Key": KEY,
            "UpdateExpression": "SET a = b + :x, c.d = if_not_exists(e, :x) REMOVE f ADD g :x "
            "DELETE #h :s",
            "ExpressionAttributeNames": {"#h": "aitch"},
            "ExpressionAttributeValues": {":x": {"N": "1"}, ":s": {"SS": ["s"]}},
            "ReturnValues": "UPDATED_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        },
        [
            {
                ATTRIBUTES: ["a", "aitch", "b", "c", "e", "f", "g", "game", "user"],
                RETURNS: ["ALL_OLD", "UPDATED_NEW"],
            }
        ],
    ),
    (
        "UpdateItem",
        {"Key": KEY, "AttributeUpdates": {"a": {"Action": "DELETE"}}},
        [{ATTRIBUTES: ["a", "game", "user"]}],
    ),
    (
        "DeleteItem",
        {"Key": KEY, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"},
        [{LEADING: ["ann"], RETURNS: ["ALL_OLD"]}],
    ),
    ("Query", query("#u = :u", ExpressionAttributeNames={"#u": "user"}),
     [{LEADING: ["ann"], ATTRIBUTES: ["user"], SELECT: ["ALL_ATTRIBUTES"]}]),
    ("Query", query("game > :c AND :u = #u", ExpressionAttributeNames={"#u": "user"}),
     [{LEADING: ["ann"], ATTRIBUTES: ["game", "user"]}]),
    ("Query", query("top = :n", IndexName="ByTop", Select="COUNT"),
     [{LEADING: ["1"], ATTRIBUTES: ["top"], SELECT: ["COUNT"]}]),
    ("Query", query("bin = :b", IndexName="ByBin"),
     [{LEADING: ["YQ=="], SELECT: ["ALL_PROJECTED_ATTRIBUTES"]}]),
    ("Query", query("city = :c AND top = :n", IndexName="ByBoth"),
     [{LEADING: ["x"], "dynamodb:firstpartitionkeyvalues": ["x"],
       "dynamodb:secondpartitionkeyvalues": ["1"], "dynamodb:thirdpartitionkeyvalues": None}]),
    ("Query", query("game = :c"), [{LEADING: UNKNOWN}]),
    ("Query", query("top = :n", IndexName="None"), [{LEADING: UNKNOWN}]),
    ("Query", query("top = :n AND", IndexName="ByTop"), [{LEADING: UNKNOWN, ATTRIBUTES: UNKNOWN}]),
    ("Query", query("#u = :u", ExpressionAttributeNames={"#u": "user"}, FilterExpression="a = b",
                    ProjectionExpression="c"),
     [{ATTRIBUTES: ["a", "b", "c", "user"], SELECT: ["SPECIFIC_ATTRIBUTES"]}]),
    ("Query", {"KeyConditions": {"user": {"ComparisonOperator": "EQ",
                                          "AttributeValueList": [{"S": "ann"}]}},
               "QueryFilter": {"old": {"ComparisonOperator": "NULL"}}},
     [{LEADING: ["ann"], ATTRIBUTES: ["old", "user"]}]),
    ("Scan", {"FilterExpression": "a = b"},
     [{LEADING: None, ATTRIBUTES: ["a", "b"], SELECT: ["ALL_ATTRIBUTES"], FULL: None}]),
    ("Scan", {"ScanFilter": {"old": {"ComparisonOperator": "NULL"}}}, [{ATTRIBUTES: ["old"]}]),
    ("Scan", {}, [{ATTRIBUTES: None}]),
    ("BatchGetItem", {"RequestItems": {"Scores": {"Keys": [KEY, {**KEY, "user": {"S": "bob"}}],
                                                  "ProjectionExpression": "a"}}},
     [{LEADING: ["ann", "bob"], ATTRIBUTES: ["a", "game", "user"],
       SELECT: ["SPECIFIC_ATTRIBUTES"]}]),
    ("BatchWriteItem", {"RequestItems": {"Scores": [
        {"PutRequest": {"Item": {**KEY, "a": {"S": "x"}}}},
        {"DeleteRequest": {"Key": {**KEY, "user": {"S": "bob"}}}},
    ]}}, [{LEADING: ["ann", "bob"], ATTRIBUTES: ["a", "game", "user"], RETURNS: None}]),
    ("TransactGetItems", {"TransactItems": [{"Get": {"TableName": "Scores", "Key": KEY}}]},
     [{LEADING: ["ann"], ENCLOSING: ["TransactGetItems"], SELECT: ["ALL_ATTRIBUTES"]}]),
    ("TransactWriteItems", {"TransactItems": [
        {"Put": {"TableName": "Scores", "Item": KEY}},
        {"ConditionCheck": {"TableName": "Scores", "Key": KEY, "ConditionExpression":
                            "attribute_exists(a)", "ReturnValuesOnConditionCheckFailure":
                            "ALL_OLD"}},
    ]}, [{LEADING: ["ann"], RETURNS: ["NONE"], ENCLOSING: ["TransactWriteItems"]},
         {LEADING: ["ann"], ATTRIBUTES: ["a", "game", "user"], RETURNS: ["ALL_OLD"]}]),
    ("ExecuteStatement",
     statement("SELECT a, b.c FROM Scores WHERE \"user\" = 'ann' AND d > 3"),
     [{LEADING: ["ann"], ATTRIBUTES: ["a", "b", "d", "user"], SELECT: ["SPECIFIC_ATTRIBUTES"],
       FULL: ["false"], ENCLOSING: ["ExecuteStatement"]}]),
    ("ExecuteStatement",
     statement("SELECT * FROM Scores WHERE \"user\" IN [?, 'bob'] ORDER BY game", {"S": "ann"}),
     [{LEADING: ["ann", "bob"], ATTRIBUTES: ["game", "user"], SELECT: ["ALL_ATTRIBUTES"]}]),
    ("ExecuteStatement",
     statement("SELECT * FROM Scores WHERE \"user\" = 'ann' OR \"user\" = 'bob'"),
     [{LEADING: ["ann", "bob"], FULL: ["false"]}]),
    ("ExecuteStatement",
     statement("SELECT * FROM Scores WHERE \"user\" = 'ann' OR a = 'b'"),
     [{LEADING: None, FULL: ["true"]}]),
    ("ExecuteStatement", statement("SELECT * FROM Scores"), [{LEADING: None, FULL: ["true"]}]),
    ("ExecuteStatement", statement("SELECT * FROM Scores.ByTop WHERE top = 1.0"),
     [{LEADING: ["1"], FULL: ["false"]}]),
    # A statement has no placeholders of names.
    ("ExecuteStatement",
     statement("SELECT \"#a\" FROM Scores WHERE \"user\" = 'ann' AND \"#b\".c > 3"),
     [{ATTRIBUTES: ["#a", "#b", "user"]}]),
    ("ExecuteStatement",
     statement("INSERT INTO Scores VALUE {'user': 'ann', 'game': 'go', 'a': 1}"),
     [{LEADING: ["ann"], ATTRIBUTES: ["a", "game", "user"], SELECT: None, RETURNS: None}]),
    ("ExecuteStatement",
     statement("UPDATE Scores SET a = b WHERE \"user\" = 'ann' AND game = 'go' "
               "RETURNING ALL NEW *"),
     [{LEADING: ["ann"], ATTRIBUTES: ["a", "b", "game", "user"], RETURNS: ["ALL_NEW"]}]),
    ("ExecuteStatement",
     statement("DELETE FROM Scores WHERE \"user\" = 'ann' AND game = 'go'"),
     [{LEADING: ["ann"], RETURNS: ["NONE"]}]),
    ("ExecuteStatement", statement("DELETE FROM Scores WHERE \"user\" = 'ann'"),
     [{LEADING: UNKNOWN}]),
    ("ExecuteStatement", statement("SELECT * FORM Scores"), []),
    ("ExecuteTransaction", {"TransactStatements": [
        statement("EXISTS(SELECT * FROM Scores WHERE \"user\" = 'ann' AND game = 'go' AND a = 1)"),
    ]}, [{LEADING: ["ann"], FULL: None, SELECT: ["ALL_ATTRIBUTES"],
          ENCLOSING: ["ExecuteTransaction"]}]),
    ("ExecuteTransaction", {"TransactStatements": [
        CHECK_OF_A,
        # A failed check returns the whole item.
        {**CHECK_OF_A, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"},
    ]}, [{SELECT: ["SPECIFIC_ATTRIBUTES"]}, {SELECT: ["ALL_ATTRIBUTES"]}]),
    ("BatchExecuteStatement", {"Statements": [
        statement("SELECT * FROM Scores WHERE \"user\" = 'ann' AND game = 'go'"),
        statement("nonsense"),
    ]}, [{LEADING: ["ann"], ENCLOSING: ["BatchExecuteStatement"]}]),
    ("TagResource", {"ResourceArn": f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/Scores",
                     "Tags": [{"Key": "Stage", "Value": "dev"}]},
     [{"aws:requesttag/stage": ["dev"], "aws:tagkeys": ["Stage"],
       "aws:resourcetag/team": ["blue"], "aws:resourcetag/stage": None}]),
    ("UntagResource", {"ResourceArn": f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/Scores",
                       "TagKeys": ["team"]},
     [{"aws:tagkeys": ["team"], "aws:requesttag/team": None}]),
]  # fmt: skip


async def test_facts_of_requests():
    async with running_database() as database:
        callers = Callers(database)
        callers.add("root", policy({}))
        assert (await callers.call("root", "CreateTable", TABLE)).status == 200
        for operation, request, expected in CASES:
            shape = OPERATIONS[operation].input
            named = {"TableName": "Scores"} if "TableName" in shape.__struct_fields__ else {}
            decoded = msgspec.convert(named | request, shape)
            facts = RequestFacts(user("ann", ACCOUNT, {}), SENDER)
            asking = Asking(operation, decoded, database, facts)
            asks = list(OPERATIONS[operation].asks(asking))
            assert len(asks) == len(expected), request
            for ask, wanted in zip(asks, expected, strict=True):
                found = {key: seen(ask.facts, key) for key in wanted}
                assert found == wanted, (operation, request)


SENDER = Request(
    "",
    "",
    "AWS4-HMAC-SHA256 Credential=AKIA/20260101/eu-west-1/dynamodb/aws4_request, SignedHeaders=host",
    "",
    "localhost",
    "",
    "",
    b"",
    headers={"user-agent": "app/1"},
    client=Client("10.0.0.7", is_secure=True),
)


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("aws:sourceip", ["10.0.0.7"]),
        ("aws:securetransport", ["true"]),
        ("aws:useragent", ["app/1"]),
        ("aws:requestedregion", ["eu-west-1"]),
        ("aws:username", ["ann"]),
        ("aws:principalarn", [f"arn:aws:iam::{ACCOUNT}:user/ann"]),
        ("aws:principaltag/team", ["blue"]),
        ("aws:principaltag/other", None),
        ("aws:unknown", None),
    ],
)
def test_facts_of_the_sender(key: str, values: list[str] | None):
    found = RequestFacts(user("ann", ACCOUNT, {"Team": "blue"}), SENDER).values(key)
    assert (None if found is None else list(found)) == values


def test_facts_of_the_time():
    facts = RequestFacts(user("ann", ACCOUNT, {}), SENDER)
    (text,), (number,) = facts.values("aws:currenttime"), facts.values("aws:epochtime")
    assert abs(epoch_seconds(text) - epoch_seconds(number)) < 5
    assert int(number) > 1_700_000_000


def seen(facts: Any, key: str) -> Sequence[str] | str | None:
    try:
        found = facts.values(key)
    except UnknownFact:
        return UNKNOWN
    return None if found is None else sorted(found)
