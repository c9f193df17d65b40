"""Tables that are exported and imported in the test's process, with buckets in directories."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
from botocore.model import Shape
from msgspec import json

from dynactor.storage.store import Store
from tests.support.clients.service_model import service_model
from tests.support.databases.databases import running_database
from tests.support.servers.in_process import InProcessClient

_DEADLINE_SECONDS: Final = 60
BUCKET: Final = "exports"
TABLE_ARNS: Final = "arn:aws:dynamodb:us-east-1:000000000000:table/"
THREAD: Final = f"{TABLE_ARNS}Thread"
KEYS: Final = {
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "n", "AttributeType": "N"},
    ],
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "n", "KeyType": "RANGE"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
}


class Transfers:
    """A client of a database, and the directory of its bucket."""

    def __init__(self, client: InProcessClient, directory: Path) -> None:
        self.client = client
        self.directory = directory

    async def __call__(self, operation: str, **request: Any) -> dict[str, Any]:
        """Run an operation, which must succeed."""
        status, answer = await self.client(operation, request)
        assert status == 200, answer
        return answer

    async def refused(self, operation: str, **request: Any) -> tuple[str, str]:
        """The type and message of the error of an operation."""
        status, answer = await self.client(operation, request)
        assert status == 400, answer
        message = answer["message"] if "message" in answer else answer["Message"]
        return answer["__type"].partition("#")[2], message

    async def create(self, name: str = "Thread", items: int = 0) -> None:
        """Create a table with some items."""
        await self("CreateTable", TableName=name, **KEYS)
        for number in range(items):
            await self("PutItem", TableName=name, Item=item(number))

    async def items(self, name: str) -> list[dict[str, Any]]:
        """All items of a table, sorted."""
        found: list[dict[str, Any]] = []
        page: dict[str, Any] = {}
        while not found or "LastEvaluatedKey" in page:
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]} if page else {}
            page = await self("Scan", TableName=name, **start)
            found += page["Items"]
            if not page["Items"]:
                break
        return sorted(found, key=repr)

    async def export(self, name: str = "Thread", **members: Any) -> dict[str, Any]:
        """Export a table; the description when the export has ended."""
        request = {"TableArn": f"{TABLE_ARNS}{name}", "S3Bucket": BUCKET, **members}
        begun = await self("ExportTableToPointInTime", **request)
        return await self.exported(begun["ExportDescription"]["ExportArn"])

    async def exported(self, arn: str) -> dict[str, Any]:
        """The description of an export when it has ended."""
        with anyio.fail_after(_DEADLINE_SECONDS):
            while True:
                found = (await self("DescribeExport", ExportArn=arn))["ExportDescription"]
                if found["ExportStatus"] != "IN_PROGRESS":
                    return dict(found)
                await asyncio.sleep(0)

    async def import_(self, **members: Any) -> dict[str, Any]:
        """Import files; the description when the import has ended."""
        begun = await self("ImportTable", **import_request(**members))
        return await self.imported(begun["ImportTableDescription"]["ImportArn"])

    async def imported(self, arn: str) -> dict[str, Any]:
        """The description of an import when it has ended."""
        with anyio.fail_after(_DEADLINE_SECONDS):
            while True:
                found = (await self("DescribeImport", ImportArn=arn))["ImportTableDescription"]
                if found["ImportStatus"] != "IN_PROGRESS":
                    return dict(found)
                await asyncio.sleep(0)

    async def bulk_put(self, **members: Any) -> dict[str, Any]:
        """Put the items of files into a table; the description when the operation has ended."""
        begun = await self("StartBulkPutItems", **bulk_put_request(**members))
        return await self.bulk_ended(begun["BulkOperationDescription"]["BulkOperationArn"])

    async def bulk_operation(self, arn: str) -> dict[str, Any]:
        """The present description of a bulk operation."""
        answer = await self("DescribeBulkOperation", BulkOperationArn=arn)
        description: dict[str, Any] = answer["BulkOperationDescription"]
        return description

    async def bulk_ended(self, arn: str) -> dict[str, Any]:
        """The description of a bulk operation when it has ended."""
        with anyio.fail_after(_DEADLINE_SECONDS):
            while True:
                found = await self.bulk_operation(arn)
                if found["BulkOperationStatus"] not in ("IN_PROGRESS", "CANCELLING"):
                    return found
                await asyncio.sleep(0)

    def bulk_output(self, arn: str, name: str) -> list[dict[str, Any]]:
        """The lines of an output object of a bulk operation."""
        path = self.directory / "out" / "AWSDynamoDB" / arn.rpartition("/")[2] / name
        return [json.decode(line) for line in path.read_bytes().splitlines()]

    def write(self, key: str, data: bytes | str) -> Path:
        """Write an object of the bucket."""
        path = self.directory / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def written(self, name: str) -> list[Path]:
        """The objects with this last part of their key."""
        return list(self.directory.rglob(name))

    def errors(self, arn: str) -> list[dict[str, Any]]:
        """The error log of an import."""
        path = self.directory / "imports" / arn.rpartition("/")[2] / "errors.jsonl"
        return [json.decode(line) for line in path.read_bytes().splitlines()]


def import_request(
    prefix: str = "in/",
    table: str = "Imported",
    *,
    parameters: Mapping[str, Any] = KEYS,
    **members: Any,
) -> dict[str, Any]:
    """A request of ImportTable."""
    return {
        "S3BucketSource": {"S3Bucket": BUCKET, "S3KeyPrefix": prefix},
        "InputFormat": "DYNAMODB_JSON",
        "TableCreationParameters": {"TableName": table, **parameters},
        **members,
    }


def bulk_put_request(table: str = "Thread", **members: Any) -> dict[str, Any]:
    """A request of StartBulkPutItems; ``input_`` and ``output`` change the configurations."""
    source = {"S3Bucket": BUCKET, "S3KeyPrefix": "in/", "InputFormat": "DYNAMODB_JSON"}
    output = {
        "S3Bucket": BUCKET,
        "S3KeyPrefix": "out/",
        "OutputType": ["ERROR", "CONDITION_CHECK_FAILURE"],
    }
    return {
        "TableName": table,
        "InputS3Configuration": source | members.pop("input_", {}),
        "OutputS3Configuration": output | members.pop("output", {}),
        **members,
    }


def item(number: int) -> dict[str, Any]:
    """An item with every type of attribute."""
    return {
        "pk": {"S": f"p{number % 7}"},
        "n": {"N": str(number)},
        "text": {"S": "Björk \n\u2028 " + "x" * (number % 50)},
        "binary": {"B": "AAEC"},
        "none": {"NULL": True},
        "yes": {"BOOL": False},
        "map": {"M": {"list": {"L": [{"N": "1.5"}, {"S": ""}]}}},
        "strings": {"SS": ["a", "b"]},
        "numbers": {"NS": ["1", "2"]},
        "binaries": {"BS": ["AAA=", "AAE="]},
    }


def lines(*items: Mapping[str, Any]) -> bytes:
    """DynamoDB JSON with these items."""
    return b"".join(json.encode({"Item": each}) + b"\n" for each in items)


def exported_items(directory: Path, description: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The items in the data files of an export, sorted."""
    folder = (directory / description["ExportManifest"]).parent / "data"
    return sorted(
        (
            json.decode(line)["Item"]
            for path in folder.iterdir()
            for line in gzip.decompress(path.read_bytes()).splitlines()
        ),
        key=repr,
    )


def unknown_members(operation: str, answer: Mapping[str, Any]) -> list[str]:
    """The paths of members of an answer that the service model does not have."""
    shape = service_model().operation_model(operation).output_shape
    return list(_unknown(shape, answer, operation))


def _unknown(shape: Shape, value: Any, path: str) -> list[str]:
    if shape.type_name == "list":
        return [each for part in value for each in _unknown(shape.member, part, path)]
    if shape.type_name != "structure":
        return []
    found = []
    for name, part in value.items():
        if name in shape.members:
            found += _unknown(shape.members[name], part, f"{path}.{name}")
        else:
            found.append(f"{path}.{name}")
    return found


@asynccontextmanager
async def transferring(
    directory: Path, store: Store | None = None, **settings: Any
) -> AsyncIterator[Transfers]:
    """A database with a bucket in a directory."""
    await asyncio.to_thread(directory.mkdir, exist_ok=True)
    buckets = {BUCKET: f"file://{directory}"}
    async with running_database(store, buckets=buckets, **settings) as database:
        yield Transfers(InProcessClient(database), directory)
