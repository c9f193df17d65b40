"""A bulk operation puts the items of files as PutItem does: each record alone, each one checked."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
import zstandard
from msgspec import json

from dynactor.actors.phases.streams import StreamRegistry
from dynactor.actors.transfers.bulk_operations import BulkOperations
from dynactor.storage import catalog, transfers
from dynactor.storage.store import Group, StoreError
from tests.support.databases.databases import HeldStore, SetClock
from tests.support.databases.recovered import trim
from tests.support.databases.transferred import (
    KEYS,
    Transfers,
    bulk_put_request,
    item,
    lines,
    transferring,
    unknown_members,
)
from tests.support.stores.store import kept_store, memory_store

INDEXED = {
    "AttributeDefinitions": [
        *KEYS["AttributeDefinitions"],  # type: ignore[misc]
        {"AttributeName": "local", "AttributeType": "S"},
        {"AttributeName": "global", "AttributeType": "S"},
    ],
    "KeySchema": KEYS["KeySchema"],
    "BillingMode": "PAY_PER_REQUEST",
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    "LocalSecondaryIndexes": [
        {
            "IndexName": "by_local",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "local", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_global",
            "KeySchema": [{"AttributeName": "global", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
}


def small(number: int, **members: Any) -> dict[str, Any]:
    return {"pk": {"S": "p"}, "n": {"N": str(number)}, **members}


def conditional(
    an_item: dict[str, Any],
    expression: str = "attribute_not_exists(pk)",
    **members: Any,
) -> bytes:
    return json.encode({"Item": an_item, "ConditionExpression": expression, **members}) + b"\n"


def counts(found: dict[str, Any]) -> tuple[int, int]:
    """The processed and the failed items."""
    return found["ProcessedItemCount"], found["FailedItemCount"]


def ended_as(found: dict[str, Any]) -> tuple[str, str]:
    """The status and the failure's code."""
    assert unknown_members("DescribeBulkOperation", {"BulkOperationDescription": found}) == []
    return found["BulkOperationStatus"], found.get("FailureCode", "")


async def started(call: Transfers, **members: Any) -> str:
    begun = await call("StartBulkPutItems", **bulk_put_request(**members))
    description: dict[str, str] = begun["BulkOperationDescription"]
    return description["BulkOperationArn"]


async def processed(call: Transfers, arn: str, least: int) -> dict[str, Any]:
    """The description once this many items are processed."""
    with anyio.fail_after(60):
        while (found := await call.bulk_operation(arn))["ProcessedItemCount"] < least:
            await asyncio.sleep(0)
    return found


async def started_with_a_page(call: Transfers) -> str:
    """Start an operation that has written a page of 300 items; the others wait for the clock."""
    await call.create()
    call.write("in/a", lines(*map(small, range(300))))
    arn = await started(call, MaxWriteRequestUnits=1_024)
    await processed(call, arn, 1)
    return arn


async def test_items_of_each_compression_replace_those_of_the_table(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        await call.create("Wanted", items=20)
        await call.create(items=3)
        await call("PutItem", TableName="Thread", Item=item(5) | {"old": {"S": "replaced"}})
        call.write("in/a", gzip.compress(lines(*map(item, range(15)))))
        call.write("in/b", gzip.compress(lines(*map(item, range(15, 20)))))
        found = await call.bulk_put(input_={"InputCompressionType": "GZIP"})
        assert ended_as(found) == ("COMPLETED", "")
        assert counts(found) == (20, 0)
        assert found["ProcessedInputBytes"] == found["TotalInputBytes"] > 0
        assert await call.items("Thread") == await call.items("Wanted")
        call.write("in/a", zstandard.compress(lines(item(20))))
        call.write("in/b", zstandard.compress(lines(item(21))))
        found = await call.bulk_put(input_={"InputCompressionType": "ZSTD"})
        assert counts(found) == (2, 0)


async def test_ion_is_put_with_its_conditions(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        await call.create()
        await call("PutItem", TableName="Thread", Item=small(1, a={"N": "7"}))
        rest = "ExpressionAttributeNames:{'#a':\"a\"},ExpressionAttributeValues:{':v':"
        call.write(
            "in/a.ion",
            f'{{Item:{{pk:"p",n:1.,a:8.}},ConditionExpression:"#a = :v",{rest}7.}}}}\n'
            f'{{Item:{{pk:"p",n:1.,a:9.}},ConditionExpression:"#a = :v",{rest}7.}}}}\n'
            '{Item:{pk:"p",n:2.,set:$dynamodb_NS::[1.,2.]}}\n'
            '{Item:{pk:"p",n:3.},ConditionExpression:4}\n',
        )
        found = await call.bulk_put(input_={"InputFormat": "ION"})
        assert ended_as(found) == ("COMPLETED_WITH_ERRORS", "")
        assert counts(found) == (4, 1)
        assert await call.items("Thread") == [
            small(1, a={"N": "8"}),
            small(2, set={"NS": ["1", "2"]}),
        ]


async def test_faulty_records_are_counted_and_written_to_the_output(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        await call.create()
        too_large = small(9, text={"S": "x" * 410_000})
        call.write(
            "in/a",
            b"no json\n"
            + lines(small(1), {"pk": {"S": "no sort key"}}, too_large)
            + conditional(small(2), "no condition")
            + conditional(small(2), "pk = :v")
            + conditional(small(2), "pk = :v", ExpressionAttributeValues={":v": "no value"})
            + b'{"Item": {"pk": {"S": "p"}, "n": {"N": "3"}}, "ExpressionAttributeNames": {}}\n',
        )
        call.write("in/b", b"\x1f\x8b not without InputCompressionType")
        call.write("in/c", lines(small(4)))
        found = await call.bulk_put()
        assert ended_as(found) == ("COMPLETED_WITH_ERRORS", "")
        assert counts(found) == (10, 8)
        logged = call.bulk_output(found["BulkOperationArn"], "errors.jsonl")
        assert [(each["key"], each["line"], each["code"]) for each in logged] == [
            ("in/a", 1, "InvalidRecord"),
            ("in/a", 3, "ValidationException"),
            ("in/a", 4, "ValidationException"),
            ("in/a", 5, "ValidationException"),
            ("in/a", 6, "ValidationException"),
            ("in/a", 7, "SerializationException"),
            ("in/a", 8, "ValidationException"),
            ("in/b", 0, "OtherCompression"),
        ]
        assert max(len(each["item"]) for each in logged) == 1_024
        assert await call.items("Thread") == [small(1), small(4)]


async def test_a_failed_condition_is_processed_and_shown_with_both_items(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        await call.create()
        await call("PutItem", TableName="Thread", Item=small(1))
        new = small(1, new={"BOOL": True})
        call.write(
            "in/a",
            conditional(new)
            + conditional(small(2))
            + conditional(small(3), "attribute_exists(#p)", ExpressionAttributeNames={"#p": "pk"}),
        )
        found = await call.bulk_put()
        assert ended_as(found) == ("COMPLETED", "")
        assert counts(found) == (3, 0)
        name = "condition-check-failures/00001.jsonl"
        assert call.bulk_output(found["BulkOperationArn"], name) == [
            {"key": "in/a", "line": 1, "attemptedItem": new, "existingItem": small(1)},
            {"key": "in/a", "line": 3, "attemptedItem": small(3)},
        ]
        assert await call.items("Thread") == [small(1), small(2)]


async def test_only_the_wanted_types_of_output_are_written(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        await call.create()
        call.write("in/a", b"no json\n" + conditional(small(1), "attribute_exists(pk)"))
        for wanted, written in (
            ("ERROR", ["errors.jsonl"]),
            ("CONDITION_CHECK_FAILURE", ["condition-check-failures"]),
        ):
            found = await call.bulk_put(output={"OutputType": [wanted], "S3KeyPrefix": wanted})
            assert counts(found) == (2, 1)
            operation_id = found["BulkOperationArn"].rpartition("/")[2]
            folder = call.directory / wanted / "AWSDynamoDB" / operation_id
            assert [path.name for path in folder.iterdir()] == written


async def test_the_last_record_with_a_key_wins(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        await call.create()
        of_key = [small(1, at={"N": str(number)}) for number in range(150)]
        call.write("in/a", lines(*of_key))
        found = await call.bulk_put()
        assert counts(found) == (150, 0)
        assert await call.items("Thread") == of_key[-1:]


async def test_indexes_and_streams_follow_and_their_bytes_are_counted(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        await call("CreateTable", TableName="Thread", **INDEXED)
        indexed = small(1, local={"S": "abc"}) | {"global": {"S": "abcd"}}
        call.write("in/a", lines(indexed, small(2), small(3, local={"N": "1"})))
        found = await call.bulk_put()
        assert counts(found) == (3, 1)
        (usage,) = found["BulkOperationUsage"]
        # pk 2 + 1, n 1 + 2, local 5 + 3, global 6 + 4.
        assert usage == {
            "TableName": "Thread",
            "BulkPutBytes": 24 + 6 + 24 + 16,
            "Table": {"BulkPutBytes": 24 + 6},
            "LocalSecondaryIndexes": {"by_local": {"BulkPutBytes": 24}},
            "GlobalSecondaryIndexes": {"by_global": {"BulkPutBytes": 16}},
        }
        query = {
            "TableName": "Thread",
            "IndexName": "by_global",
            "KeyConditionExpression": "#g = :g",
            "ExpressionAttributeNames": {"#g": "global"},
            "ExpressionAttributeValues": {":g": {"S": "abcd"}},
        }
        with anyio.fail_after(60):
            while (await call("Query", **query))["Count"] != 1:
                await asyncio.sleep(0)
        (stream,) = call.client.database.part(StreamRegistry).all()
        records = 0
        for shard in stream.shards:
            read = call.client.database.part(StreamRegistry).read
            records += len(await read(shard, 0, max_records=9, max_bytes=9_999))
        assert records == 2


async def test_throttled_writes_wait_and_are_tried_again(tmp_path: Path) -> None:
    clock = SetClock()
    async with transferring(tmp_path / "b", clock=clock, initial_burst_seconds=0) as call:
        throughput = {"ReadCapacityUnits": 9, "WriteCapacityUnits": 5}
        settings = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": throughput}
        await call("CreateTable", TableName="Thread", **KEYS | settings)
        call.write("in/a", lines(*map(small, range(12))))
        arn = await started(call)
        throttle = call.client.database.table("Thread").throttle
        with anyio.fail_after(60):
            while not throttle.throttle_events:
                await asyncio.sleep(0)
            while (found := await call.bulk_operation(arn))["ProcessedItemCount"] < 12:
                assert found["BulkOperationStatus"] == "IN_PROGRESS"
                clock.step(0.5)
                await asyncio.sleep(0)
        assert counts(await call.bulk_ended(arn)) == (12, 0)
        assert len(await call.items("Thread")) == 12


async def test_a_rate_bounds_the_writes(tmp_path: Path) -> None:
    clock = SetClock()
    async with transferring(tmp_path / "b", clock=clock) as call:
        await call.create()
        # Two writes fill a page, of 256 units.
        large = [small(number, text={"S": "x" * 131_100}) for number in range(10)]
        call.write("in/a", lines(*large))
        arn = await started(call, MaxWriteRequestUnits=1_024)
        await processed(call, arn, 2)
        for ready in range(4, 11, 2):
            for _ in range(20):
                await asyncio.sleep(0)
            assert (await call.bulk_operation(arn))["ProcessedItemCount"] == ready - 2
            clock.step(0.26)
            await processed(call, arn, ready)
        assert ended_as(await call.bulk_ended(arn)) == ("COMPLETED", "")


async def test_few_existing_items_are_in_memory_together(tmp_path: Path) -> None:
    clock = SetClock()
    async with transferring(tmp_path / "b", clock=clock) as call:
        await call.create()
        false = conditional(small(1), "attribute_exists(nothing)")
        call.write("in/a", b"".join(false.replace(b'"1"', b'"%d"' % n) for n in range(200)))
        arn = await started(call, MaxWriteRequestUnits=1_024)
        done = 0
        while done < 200:
            before, done = done, (await processed(call, arn, done + 1))["ProcessedItemCount"]
            # With the largest existing items, a page has 16 MB.
            assert done - before <= 40
            clock.step(1)
        assert counts(await call.bulk_ended(arn)) == (200, 0)


async def test_a_canceled_operation_keeps_what_it_has_written(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b", clock=SetClock()) as call:
        await call.create()
        call.write("in/a", b"no json\n" + lines(*map(small, range(300))))
        arn = await started(call, MaxWriteRequestUnits=1_024)
        # The clock stands still, so the second page waits.
        await processed(call, arn, 1)
        canceled = await call("CancelBulkOperation", BulkOperationArn=arn)
        assert canceled == {"BulkOperationArn": arn, "BulkOperationStatus": "CANCELLING"}
        found = await call.bulk_ended(arn)
        assert ended_as(found) == ("CANCELLED", "BulkOperationCancelled")
        assert "EndTime" in found
        processed_items, failed = counts(found)
        assert len(await call.items("Thread")) == processed_items - failed < 300
        assert call.bulk_output(arn, "errors.jsonl")[0]["code"] == "InvalidRecord"
        again = await call("CancelBulkOperation", BulkOperationArn=arn)
        assert again["BulkOperationStatus"] == "CANCELLED"


async def test_the_deletion_of_the_table_ends_the_operation(tmp_path: Path) -> None:
    clock = SetClock()
    async with transferring(tmp_path / "b", clock=clock) as call:
        arn = await started_with_a_page(call)
        await call("DeleteTable", TableName="Thread")
        await call.create()
        clock.step(1)
        found = await call.bulk_ended(arn)
        assert ended_as(found) == ("FAILED", "ResourceNotFoundException")
        assert await call.items("Thread") == []


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"input_": {"S3Bucket": "unknown"}}, "S3NoSuchBucket"),
        ({"output": {"S3Bucket": "unknown"}}, "S3NoSuchBucket"),
        ({"input_": {"S3KeyPrefix": "nothing/"}}, "S3NoSuchKey"),
    ],
)
async def test_an_operation_without_its_objects_fails(
    tmp_path: Path, members: dict[str, Any], code: str
) -> None:
    async with transferring(tmp_path / "b") as call:
        await call.create()
        call.write("in/a", lines(small(1)))
        found = await call.bulk_put(**members)
        assert ended_as(found) == ("FAILED", code)
        assert counts(found) == (0, 0)
        assert await call.items("Thread") == []


async def test_an_output_that_cannot_be_written_fails_the_operation(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        await call.create()
        call.write("in/a", b"no json\n")
        call.write("out/AWSDynamoDB", b"a file instead of a folder")
        found = await call.bulk_put()
        assert found["BulkOperationStatus"] == "FAILED"


@pytest.mark.parametrize(
    ("members", "error"),
    [
        ({"table": "Unknown"}, "ResourceNotFoundException"),
        ({"table": "Imported"}, "ResourceInUseException"),
        ({"MaxWriteRequestUnits": 1_023}, "ValidationException"),
        ({"PerformanceTier": "FAST"}, "ValidationException"),
        ({"input_": {"InputFormat": "CSV"}}, "ValidationException"),
        ({"output": {"OutputType": []}}, "ValidationException"),
        ({"output": {"S3Bucket": None}}, "ValidationException"),
    ],
)
async def test_invalid_requests_are_refused(
    tmp_path: Path, members: dict[str, Any], error: str
) -> None:
    async with transferring(tmp_path / "b", table_transition_seconds=3_600) as call:
        await call("CreateTable", TableName="Imported", **KEYS)
        refusal = await call.refused("StartBulkPutItems", **bulk_put_request(**members))
        assert refusal[0] == error
        assert (await call("ListBulkOperations"))["BulkOperationsSummaryList"] == []


async def test_a_client_token_starts_one_operation_in_8_hours(tmp_path: Path) -> None:
    clock = SetClock()
    async with transferring(tmp_path / "b", clock=clock) as call:
        await call.create()
        call.write("in/a", lines(small(1)))
        first = await call.bulk_put(ClientToken="t")
        again = await call("StartBulkPutItems", **bulk_put_request(ClientToken="t"))
        assert unknown_members("StartBulkPutItems", again) == []
        assert again["BulkOperationDescription"] == first
        other = bulk_put_request(ClientToken="t", PerformanceTier="ACCELERATED")
        refusal = await call.refused("StartBulkPutItems", **other)
        assert refusal[0] == "IdempotentParameterMismatchException"
        clock.step(8 * 60 * 60)
        later = await call.bulk_put(ClientToken="t")
        assert later["BulkOperationArn"] != first["BulkOperationArn"]


async def test_operations_are_listed_page_by_page_and_forgotten_after_90_days(
    tmp_path: Path,
) -> None:
    clock = SetClock()
    async with transferring(tmp_path / "b", clock=clock) as call:
        await call.create()
        call.write("in/a", lines(small(1)))
        arns = []
        for _ in range(11):
            arns.append((await call.bulk_put())["BulkOperationArn"])
            clock.step(1)
        first = await call("ListBulkOperations")
        second = await call("ListBulkOperations", NextToken=first["NextToken"], MaxResults=5)
        assert unknown_members("ListBulkOperations", first) == []
        pages = first["BulkOperationsSummaryList"], second["BulkOperationsSummaryList"]
        assert [len(page) for page in pages] == [10, 1]
        assert [each["BulkOperationArn"] for page in pages for each in page] == arns[::-1]
        assert "NextToken" not in second
        for arn, error in (
            (arns[0].replace("Thread", "Other"), "ResourceNotFoundException"),
            (arns[0].replace("/bulk-operation/", "/import/"), "ValidationException"),
        ):
            for operation in ("DescribeBulkOperation", "CancelBulkOperation"):
                refusal = await call.refused(operation, BulkOperationArn=arn)
                assert refusal[0] == error
        clock.step(90 * 24 * 60 * 60 - 60)
        database = call.client.database
        await trim(database)
        assert await transfers.load_bulk_operations(database._store.latest)
        clock.step(60)
        assert (await call("ListBulkOperations"))["BulkOperationsSummaryList"] == []
        await trim(database)
        assert await transfers.load_bulk_operations(database._store.latest) == []
        assert not list(database.part(BulkOperations)._operations)


class RefusingStore(HeldStore):
    """A store that refuses some commits, or fails to make one durable."""

    refusals = 0
    failures = 0

    async def commit(self, groups: Sequence[Group]) -> asyncio.Future[None]:
        if self.refusals:
            self.refusals -= 1
            raise StoreError("no space left")
        if self.failures:
            self.failures -= 1
            failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            failed.set_exception(StoreError("the sync has failed"))
            return failed
        return await super().commit(groups)


@pytest.mark.parametrize(
    ("refusals", "failures", "ending"),
    [(2, 0, ("COMPLETED", "")), (0, 1, ("FAILED", "InternalServerError"))],
)
async def test_only_writes_that_wrote_nothing_are_repeated(
    tmp_path: Path, refusals: int, failures: int, ending: tuple[str, str]
) -> None:
    clock = SetClock()
    async with memory_store() as own:
        store = RefusingStore(own)
        async with transferring(tmp_path / "b", store, clock=clock) as call:
            await call.create()
            call.write("in/a", lines(*map(small, range(40))))
            arn = await started(call, MaxWriteRequestUnits=1_024)
            await processed(call, arn, 32)
            store.refusals, store.failures = refusals, failures
            clock.step(1)
            assert ended_as(await call.bulk_ended(arn)) == ending
            assert store.refusals == store.failures == 0


async def test_at_most_50_operations_run_at_once(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b", clock=SetClock(), initial_burst_seconds=0) as call:
        # Without units, the operations wait forever.
        throughput = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
        settings = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": throughput}
        await call("CreateTable", TableName="Thread", **KEYS | settings)
        call.write("in/a", lines(*map(small, range(9))))
        arns = [await started(call) for _ in range(50)]
        refusal = await call.refused("StartBulkPutItems", **bulk_put_request())
        assert refusal[0] == "LimitExceededException"
        await call("CancelBulkOperation", BulkOperationArn=arns[0])
        await call.bulk_ended(arns[0])
        await started(call)


async def test_an_operation_continues_when_the_catalog_is_loaded_again(tmp_path: Path) -> None:
    clock = SetClock()
    async with transferring(tmp_path / "b", clock=clock) as call:
        arn = await started_with_a_page(call)
        database = call.client.database
        await database.actor.adopt(await catalog.load(database._store.latest))
        clock.step(1)
        await processed(call, arn, 33)
        clock.step(1)
        found = await call.bulk_ended(arn)
        assert ended_as(found) == ("COMPLETED", "")
        assert len(await call.items("Thread")) == 300


async def test_a_restart_ends_the_operations_that_were_running(tmp_path: Path) -> None:
    clock = SetClock()
    arns = []
    async with (
        kept_store(tmp_path / "data") as store,
        transferring(tmp_path / "b", store, clock=clock) as call,
    ):
        await call.create()
        call.write("in/a", lines(small(1)))
        arns.append((await call.bulk_put())["BulkOperationArn"])
        call.write("in/a", lines(*map(small, range(300))))
        arns.append(await started(call, MaxWriteRequestUnits=1_024))
        first = (await processed(call, arns[1], 1))["ProcessedItemCount"]
    async with (
        kept_store(tmp_path / "data") as store,
        transferring(tmp_path / "b", store, clock=clock) as call,
    ):
        found = [await call.bulk_ended(arn) for arn in arns]
        assert [ended_as(each) for each in found] == [
            ("COMPLETED", ""),
            ("FAILED", "InternalServerError"),
        ]
        assert counts(found[0]) == (1, 0)
        assert "start the operation again" in found[1]["FailureMessage"]
        assert len(await call.items("Thread")) == first < 300
