"""boto3 as users call it: client, resource, paginators, waiters, batches and conditions."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import boto3
import pytest
from boto3.dynamodb.conditions import Attr, Key
from boto3.dynamodb.types import Binary
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.support.clients.clients import SDK_ARGUMENTS, boto3_client
from tests.support.tables.tables import definition, local_index, unique_name


@pytest.fixture(scope="module")
def songs(resource: Any) -> Iterator[Any]:
    """A table of 60 songs by three artists."""
    index = local_index("by-year", "artist", "year")
    name = unique_name("songs")
    request = definition("artist:S", "song:S", "year:N", indexes=(index,), name=name)
    songs = resource.create_table(**request)
    songs.wait_until_exists()
    with songs.batch_writer() as batch:
        for artist in ("Ella", "Miles", "Nina"):
            for number in range(20):
                item = {
                    "artist": artist,
                    "song": f"song {number:02}",
                    "year": 1950 + (number * 7) % 20,
                    "length": Decimal("3.25") * number,
                    "tags": {"jazz", artist},
                    "awards": [{"name": "Grammy", "won": number % 2 == 0}],
                }
                batch.put_item(Item=item)
    yield songs
    songs.delete()
    songs.wait_until_not_exists()


def test_an_item_is_returned_in_python_types(songs: Any):
    item = {
        "artist": "types",
        "song": "one",
        "number": Decimal("1.5"),
        "binary": Binary(b"\x00\x01"),
        "none": None,
        "bool": True,
        "list": [Decimal(1), "two", [Decimal(3)]],
        "map": {"a": {"b": Decimal(1)}},
        "strings": {"a", "b"},
        "numbers": {Decimal(1), Decimal("2.5")},
        "binaries": {Binary(b"a"), Binary(b"b")},
    }
    songs.put_item(Item=item)
    assert songs.get_item(Key={"artist": "types", "song": "one"})["Item"] == item
    songs.delete_item(Key={"artist": "types", "song": "one"})


def test_a_query_takes_conditions_as_objects(songs: Any):
    answer = songs.query(
        KeyConditionExpression=Key("artist").eq("Nina") & Key("song").begins_with("song 1"),
        FilterExpression=Attr("tags").contains("jazz") & Attr("awards[0].won").eq(value=True),
        ProjectionExpression="song",
    )
    assert [item["song"] for item in answer["Items"]] == [f"song 1{n}" for n in (0, 2, 4, 6, 8)]


def test_a_query_of_an_index_returns_items_in_the_order_of_the_index(songs: Any):
    answer = songs.query(
        IndexName="by-year",
        KeyConditionExpression=Key("artist").eq("Ella") & Key("year").between(1955, 1960),
        ScanIndexForward=False,
    )
    assert [int(item["year"]) for item in answer["Items"]] == [1960, 1959, 1958, 1957, 1956, 1955]


def test_a_conditional_update_increments_a_counter(songs: Any):
    key = {"artist": "counter", "song": "one"}
    for expected in (1, 2, 3):
        answer = songs.update_item(
            Key=key,
            UpdateExpression="SET plays = if_not_exists(plays, :zero) + :one",
            ConditionExpression=Attr("plays").not_exists() | Attr("plays").lt(10),
            ExpressionAttributeValues={":zero": 0, ":one": 1},
            ReturnValues="UPDATED_NEW",
        )
        assert answer["Attributes"] == {"plays": expected}
    songs.delete_item(Key=key)


def test_a_failed_condition_raises_its_own_exception(songs: Any):
    with pytest.raises(songs.meta.client.exceptions.ConditionalCheckFailedException) as failure:
        songs.put_item(
            Item={"artist": "Ella", "song": "song 00"},
            ConditionExpression=Attr("song").not_exists(),
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    assert failure.value.response["Error"]["Message"] == "The conditional request failed"
    assert failure.value.response["Item"]["year"] == {"N": "1950"}


def test_an_unknown_table_raises_its_own_exception(client: Any):
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.describe_table(TableName="no-such-table-anywhere")


def test_a_validation_error_has_its_code(client: Any, simple: str):
    with pytest.raises(ClientError) as failure:
        client.put_item(TableName=simple, Item={"pk": {"N": "1"}})
    assert failure.value.response["Error"]["Code"] == "ValidationException"
    assert failure.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    assert failure.value.response["ResponseMetadata"]["RequestId"]


@pytest.mark.parametrize("page_size", [1, 7, 100])
def test_the_scan_paginator_returns_all_items(client: Any, songs: Any, page_size: int):
    pages = client.get_paginator("scan").paginate(
        TableName=songs.name, PaginationConfig={"PageSize": page_size}
    )
    found = [(item["artist"]["S"], item["song"]["S"]) for page in pages for item in page["Items"]]
    assert len(found) == len(set(found)) == 60


def test_the_query_paginator_resumes_from_a_token(client: Any, songs: Any):
    paginator = client.get_paginator("query")
    request = {
        "TableName": songs.name,
        "KeyConditionExpression": "artist = :artist",
        "ExpressionAttributeValues": {":artist": {"S": "Miles"}},
    }
    first = paginator.paginate(**request, PaginationConfig={"MaxItems": 8, "PageSize": 3})
    found = [item["song"]["S"] for page in first for item in page["Items"]]
    assert len(found) == 8
    rest = paginator.paginate(**request, PaginationConfig={"StartingToken": first.resume_token})
    found += [item["song"]["S"] for page in rest for item in page["Items"]]
    assert found == [f"song {number:02}" for number in range(20)]


def test_the_list_tables_paginator_finds_the_table(client: Any, songs: Any):
    pages = client.get_paginator("list_tables").paginate(PaginationConfig={"PageSize": 1})
    assert songs.name in [name for page in pages for name in page["TableNames"]]


def test_waiters_wait_for_a_table_to_exist_and_to_be_deleted(client: Any):
    name = unique_name()
    client.create_table(**definition("pk:S", name=name))
    quick = {"Delay": 1, "MaxAttempts": 30}
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig=quick)
    client.delete_table(TableName=name)
    client.get_waiter("table_not_exists").wait(TableName=name, WaiterConfig=quick)
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.describe_table(TableName=name)


def test_the_batch_writer_takes_puts_and_deletes_and_drops_duplicates(songs: Any):
    with songs.batch_writer(overwrite_by_pkeys=["artist", "song"]) as batch:
        for number in range(60):
            batch.put_item(Item={"artist": "batch", "song": str(number % 30), "n": number})
        for number in range(10):
            batch.delete_item(Key={"artist": "batch", "song": str(number)})
    answer = songs.query(KeyConditionExpression=Key("artist").eq("batch"))
    assert {item["n"] for item in answer["Items"]} == set(range(40, 60))
    with songs.batch_writer() as batch:
        for item in answer["Items"]:
            batch.delete_item(Key={"artist": "batch", "song": item["song"]})


def test_the_resource_gets_batches(resource: Any, songs: Any):
    keys = [{"artist": "Ella", "song": f"song {number:02}"} for number in range(20)]
    answer = resource.batch_get_item(RequestItems={songs.name: {"Keys": keys}})
    assert len(answer["Responses"][songs.name]) == 20


def test_the_table_object_describes_itself(resource: Any, songs: Any):
    table = resource.Table(songs.name)
    assert table.table_status == "ACTIVE"
    assert table.key_schema[0] == {"AttributeName": "artist", "KeyType": "HASH"}
    assert table.local_secondary_indexes[0]["IndexName"] == "by-year"
    assert table.item_count == 60
    assert table.creation_date_time.year >= 2020


def test_threads_share_a_client(endpoint: str, songs: Any):
    client = boto3_client(endpoint, max_pool_connections=8)

    def count(worker: int) -> None:
        for _ in range(25):
            client.update_item(
                TableName=songs.name,
                Key={"artist": {"S": "threads"}, "song": {"S": "shared"}},
                UpdateExpression="ADD plays :one, #worker :one",
                ExpressionAttributeNames={"#worker": f"worker{worker}"},
                ExpressionAttributeValues={":one": {"N": "1"}},
            )

    with ThreadPoolExecutor(8) as executor:
        list(executor.map(count, range(8)))
    client.close()
    item = songs.get_item(Key={"artist": "threads", "song": "shared"})["Item"]
    assert item["plays"] == 200
    assert all(item[f"worker{worker}"] == 25 for worker in range(8))
    songs.delete_item(Key={"artist": "threads", "song": "shared"})


def test_legacy_retries_check_the_crc32(endpoint: str, simple: str):
    # In this mode, botocore retries a request whose answer has a wrong CRC32.
    client = boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        config=Config(retries={"mode": "legacy", "max_attempts": 0}),
        **SDK_ARGUMENTS,
    )
    item = {"pk": {"S": "crc"}, "v": {"S": "x" * 5000}}
    client.put_item(TableName=simple, Item=item)
    assert client.get_item(TableName=simple, Key={"pk": {"S": "crc"}})["Item"] == item
    client.close()


@pytest.mark.differs_from_dynamodb_local("it knows no compression")
def test_a_client_may_compress_its_requests(endpoint: str, simple: str):
    client = boto3_client(endpoint, request_min_compression_size_bytes=100)
    item = {"pk": {"S": "compressed"}, "v": {"S": "x" * 50_000}}
    client.put_item(TableName=simple, Item=item)
    assert client.get_item(TableName=simple, Key={"pk": {"S": "compressed"}})["Item"] == item
    client.close()


@pytest.mark.parametrize("region", ["local", "eu-west-3"])
def test_any_region_and_any_credentials_are_served(endpoint: str, simple: str, region: str):
    client = boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name=region,
        aws_access_key_id="other",
        aws_secret_access_key="other",
    )
    assert client.describe_table(TableName=simple)["Table"]["TableName"] == simple
    client.close()
