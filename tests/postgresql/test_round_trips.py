"""The number of round trips to PostgreSQL of each operation."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, Final, NamedTuple

from tests.postgresql.cutting_proxy import CuttingProxy, cutting_proxy
from tests.support.databases.databases import running_database
from tests.support.servers.in_process import InProcessClient
from tests.support.servers.postgresql import Postgresql
from tests.support.stores.store import postgresql_store

ITEMS: Final = 60
YEAR: Final = "$YEAR"
YEARS: Final = count(1)


def key(number: int) -> dict[str, Any]:
    return {"Artist": {"S": "Björk"}, "Song": {"S": f"{number:03}"}}


class Case(NamedTuple):
    """A request and its round trips."""

    operation: str
    request: dict[str, Any]
    round_trips: int


OF_ARTIST: Final = {
    "TableName": "Music",
    "KeyConditionExpression": "Artist = :a",
    "ExpressionAttributeValues": {":a": {"S": "Björk"}},
}
PUT: Final = {"Put": {"TableName": "Music", "Item": {**key(900), "Year": {"N": YEAR}}}}
OTHER_PUT: Final = {"Put": {"TableName": "Other", "Item": {"Id": {"S": "1"}, "Year": {"N": YEAR}}}}
PUTS: Final = [
    {"PutRequest": {"Item": {**key(number), "Year": {"N": YEAR}}}} for number in range(910, 920)
]
# A transaction that reads and rolls back takes three more.
IN_TRANSACTION: Final = 2

CASES: Final = [
    Case("GetItem", {"TableName": "Music", "Key": key(1)}, 1),
    Case("GetItem", {"TableName": "Music", "Key": key(1), "ConsistentRead": True}, 1),
    Case("Query", OF_ARTIST, 1),
    Case("Query", {**OF_ARTIST, "Limit": 7}, 1),
    Case("Query", {**OF_ARTIST, "ScanIndexForward": False, "ConsistentRead": True}, 1),
    Case("Query", {**OF_ARTIST, "IndexName": "ByYear"}, 1),
    # The entries, and then their items.
    Case(
        "Query",
        {**OF_ARTIST, "IndexName": "ByYear", "Limit": 8, "Select": "ALL_ATTRIBUTES"},
        IN_TRANSACTION + 2,
    ),
    # Four partitions.
    Case("Scan", {"TableName": "Other"}, 1),
    Case("Scan", {"TableName": "Other", "Limit": 30}, 1),
    # A full page of 1 MB, once the sizes of its rows are known.
    Case("Scan", {"TableName": "Large"}, 1),
    Case(
        "BatchGetItem",
        {
            "RequestItems": {
                "Music": {"Keys": [key(number) for number in range(40)]},
                "Other": {"Keys": [{"Id": {"S": str(number)}} for number in range(40)]},
            }
        },
        1,
    ),
    Case(
        "TransactGetItems",
        {
            "TransactItems": [
                {"Get": {"TableName": "Music", "Key": key(1)}},
                {"Get": {"TableName": "Other", "Key": {"Id": {"S": "1"}}}},
            ]
        },
        1,
    ),
    Case("PutItem", {"TableName": "Music", "Item": {**key(901), "Year": {"N": YEAR}}}, 2),
    Case(
        "UpdateItem",
        {
            "TableName": "Music",
            "Key": key(902),
            "UpdateExpression": "ADD Plays :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        },
        2,
    ),
    Case("DeleteItem", {"TableName": "Music", "Key": key(903)}, 1),
    Case("DeleteItem", {"TableName": "Music", "Key": key(3)}, 2),
    # A request whose condition fails writes nothing.
    Case(
        "PutItem",
        {"TableName": "Music", "Item": key(1), "ConditionExpression": "attribute_not_exists(Song)"},
        1,
    ),
    # One partition. Several ones share statements if they are ready at the same time.
    Case("BatchWriteItem", {"RequestItems": {"Music": PUTS}}, 2),
    Case("TransactWriteItems", {"TransactItems": [PUT]}, 2),
    # Partitions load their items once to decide, and once more when they join the round.
    Case("TransactWriteItems", {"TransactItems": [PUT, OTHER_PUT]}, 3),
    # The token, the items, the commit.
    Case("TransactWriteItems", {"TransactItems": [PUT], "ClientRequestToken": YEAR}, 3),
]


@asynccontextmanager
async def running(
    postgresql: Postgresql,
) -> AsyncIterator[tuple[InProcessClient, InProcessClient, CuttingProxy]]:
    """The server's two services, and the proxy in front of PostgreSQL."""
    async with cutting_proxy(postgresql.port) as (proxy, port):
        url = postgresql.url().replace(f":{postgresql.port}/", f":{port}/")
        async with (
            postgresql_store(url) as store,
            running_database(store, partitions_per_table=4) as database,
        ):
            dynamodb = InProcessClient(database)
            await make_tables(dynamodb)
            yield dynamodb, InProcessClient(database, "DynamoDBStreams"), proxy


async def make_tables(dynamodb: InProcessClient) -> None:
    names = ("Artist", "Song", "Year")
    kinds = ("S", "S", "N")
    attributes = [
        {"AttributeName": name, "AttributeType": kind}
        for name, kind in zip(names, kinds, strict=True)
    ]
    artist, song, year = [
        {"AttributeName": name, "KeyType": kind}
        for name, kind in zip(names, ("HASH", "RANGE", "RANGE"), strict=True)
    ]
    await answered(
        dynamodb,
        "CreateTable",
        {
            "TableName": "Music",
            "AttributeDefinitions": attributes,
            "KeySchema": [artist, song],
            "BillingMode": "PAY_PER_REQUEST",
            "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
            "LocalSecondaryIndexes": [
                {
                    "IndexName": "ByYear",
                    "KeySchema": [artist, year],
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                }
            ],
        },
    )
    for name in ("Other", "Large"):
        await answered(
            dynamodb,
            "CreateTable",
            {
                "TableName": name,
                "AttributeDefinitions": [{"AttributeName": "Id", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "Id", "KeyType": "HASH"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
    for number in range(ITEMS):
        item = {**key(number), "Year": {"N": str(number)}}
        await answered(dynamodb, "PutItem", {"TableName": "Music", "Item": item})
        for name, text in (("Other", "x"), ("Large", "x" * 30_000)):
            item = {"Id": {"S": str(number)}, "Text": {"S": text}}
            await answered(dynamodb, "PutItem", {"TableName": name, "Item": item})


async def answered(
    asked: InProcessClient, operation: str, request: dict[str, Any]
) -> dict[str, Any]:
    status, body = await asked(operation, request)
    assert status == 200 or body["__type"].endswith("ConditionalCheckFailedException"), body
    return body


async def test_the_round_trips_of_each_operation(postgresql: Postgresql) -> None:
    async with running(postgresql) as (dynamodb, _, proxy):
        found = [await round_trips(dynamodb, proxy, case) for case in CASES]
    expected = "\n".join(f"{case.round_trips} {case.operation}" for case in CASES)
    counts = "\n".join(
        f"{count} {case.operation}" for case, count in zip(CASES, found, strict=True)
    )
    assert counts == expected


async def round_trips(dynamodb: InProcessClient, proxy: CuttingProxy, case: Case) -> int:
    # The statements are prepared, and the sizes of rows learned.
    for _ in range(3):
        await answered(dynamodb, case.operation, changed(case.request))
    if case.operation == "DeleteItem":
        item = {**key(3), "Year": {"N": "1"}}
        await answered(dynamodb, "PutItem", {"TableName": "Music", "Item": item})
    # The end of a transaction is sent behind its answer, but before another request.
    await answered(dynamodb, "GetItem", CASES[0].request)
    before = proxy.round_trips
    await answered(dynamodb, case.operation, changed(case.request))
    await answered(dynamodb, "GetItem", CASES[0].request)
    return proxy.round_trips - before - 1


def changed(request: dict[str, Any]) -> dict[str, Any]:
    """The request with another year, because a put that changes nothing writes nothing."""
    parsed: dict[str, Any] = json.loads(json.dumps(request).replace(YEAR, str(next(YEARS))))
    return parsed


async def test_records_take_a_round_trip_if_they_are_not_in_memory(postgresql: Postgresql) -> None:
    async with running(postgresql) as (dynamodb, streams, proxy):
        description = await answered(dynamodb, "DescribeTable", {"TableName": "Music"})
        arn = description["Table"]["LatestStreamArn"]
        stream = await answered(streams, "DescribeStream", {"StreamArn": arn})
        read = 0
        for shard in stream["StreamDescription"]["Shards"]:
            wanted = {
                "StreamArn": arn,
                "ShardId": shard["ShardId"],
                "ShardIteratorType": "TRIM_HORIZON",
            }
            iterator = await answered(streams, "GetShardIterator", wanted)
            before = proxy.round_trips
            found = await answered(streams, "GetRecords", iterator)
            read += len(found["Records"])
            assert proxy.round_trips == before
        assert read == ITEMS
