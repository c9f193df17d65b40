"""aiobotocore with many concurrent requests on one client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiobotocore.config import AioConfig
from aiobotocore.session import get_session

from tests.support.clients.clients import SDK_ARGUMENTS
from tests.support.tables.tables import definition, unique_name


@asynccontextmanager
async def open_client(endpoint: str) -> AsyncIterator[Any]:
    config = AioConfig(max_pool_connections=32, retries={"total_max_attempts": 1})
    session = get_session()
    async with session.create_client(
        "dynamodb", endpoint_url=endpoint, config=config, **SDK_ARGUMENTS
    ) as client:
        yield client


async def test_a_table_is_created_used_and_deleted(endpoint: str):
    name = unique_name()
    async with open_client(endpoint) as client:
        await client.create_table(**definition("pk:S", name=name))
        waiter = client.get_waiter("table_exists")
        await waiter.wait(TableName=name, WaiterConfig={"Delay": 1})
        await client.put_item(TableName=name, Item={"pk": {"S": "a"}, "b": {"B": b"\x00\xff"}})
        got = await client.get_item(TableName=name, Key={"pk": {"S": "a"}})
        assert got["Item"] == {"pk": {"S": "a"}, "b": {"B": b"\x00\xff"}}
        await client.delete_table(TableName=name)


async def test_all_concurrent_increments_are_counted(endpoint: str, simple: str, pk: str):
    async with open_client(endpoint) as client:

        async def increment() -> int:
            answer = await client.update_item(
                TableName=simple,
                Key={"pk": {"S": pk}},
                UpdateExpression="ADD n :one",
                ExpressionAttributeValues={":one": {"N": "1"}},
                ReturnValues="UPDATED_NEW",
            )
            return int(answer["Attributes"]["n"]["N"])

        totals = await asyncio.gather(*(increment() for _ in range(100)))
        # Each increment returns a different sum, because writes to an item are serialized.
        assert sorted(totals) == list(range(1, 101))


async def test_one_of_many_concurrent_conditional_puts_succeeds(
    endpoint: str, simple: str, pk: str
):
    async with open_client(endpoint) as client:

        async def claim(owner: int) -> bool:
            try:
                await client.put_item(
                    TableName=simple,
                    Item={"pk": {"S": pk}, "owner": {"N": str(owner)}},
                    ConditionExpression="attribute_not_exists(pk)",
                )
            except client.exceptions.ConditionalCheckFailedException:
                return False
            return True

        outcomes = await asyncio.gather(*(claim(owner) for owner in range(32)))
        assert outcomes.count(True) == 1
        got = await client.get_item(TableName=simple, Key={"pk": {"S": pk}}, ConsistentRead=True)
        assert int(got["Item"]["owner"]["N"]) == outcomes.index(True)


async def test_segments_are_scanned_in_parallel(endpoint: str, composite: str, pk: str):
    async with open_client(endpoint) as client:
        await asyncio.gather(
            *(
                client.put_item(
                    TableName=composite,
                    Item={"pk": {"S": f"{pk}-{number}"}, "sk": {"S": "s"}, "mine": {"S": pk}},
                )
                for number in range(50)
            )
        )

        async def scan(segment: int) -> list[str]:
            found = []
            paginator = client.get_paginator("scan")
            async for page in paginator.paginate(
                TableName=composite,
                Segment=segment,
                TotalSegments=8,
                FilterExpression="mine = :mine",
                ExpressionAttributeValues={":mine": {"S": pk}},
                PaginationConfig={"PageSize": 20},
            ):
                found += [item["pk"]["S"] for item in page["Items"]]
            return found

        segments = await asyncio.gather(*(scan(segment) for segment in range(8)))
        found = [key for segment in segments for key in segment]
        assert sorted(found) == sorted(f"{pk}-{number}" for number in range(50))


async def test_an_error_raises_the_clients_exception(endpoint: str):
    async with open_client(endpoint) as client:
        with pytest.raises(client.exceptions.ResourceNotFoundException):
            await client.get_item(TableName="no-such-table-anywhere", Key={"pk": {"S": "a"}})
