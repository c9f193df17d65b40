"""An import creates a whole table, or none: bad records are counted, bad files end it."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
import zstandard
from msgspec import json

from dynactor.storage import transfers
from tests.support.databases.databases import SetClock
from tests.support.databases.recovered import trim
from tests.support.databases.transferred import (
    BUCKET,
    KEYS,
    Transfers,
    import_request,
    item,
    lines,
    transferring,
    unknown_members,
)
from tests.support.stores.store import kept_store

COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "NONE": bytes,
    "GZIP": gzip.compress,
    "ZSTD": zstandard.compress,
}
CSV_KEYS = {
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "n", "AttributeType": "N"},
    ],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_n",
            "KeySchema": [{"AttributeName": "n", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "BillingMode": "PAY_PER_REQUEST",
}


def counts(found: dict[str, Any]) -> tuple[int, int, int]:
    """The processed items, the imported items and the errors."""
    return found["ProcessedItemCount"], found["ImportedItemCount"], found["ErrorCount"]


async def assert_no_table(call: Transfers, name: str = "Imported") -> None:
    refusal = await call.refused("DescribeTable", TableName=name)
    assert refusal[0] == "ResourceNotFoundException"


async def described(call: Transfers, name: str = "Imported") -> dict[str, Any]:
    table: dict[str, Any] = (await call("DescribeTable", TableName=name))["Table"]
    return table


@pytest.mark.parametrize("compression", COMPRESSIONS)
async def test_files_of_each_compression_are_imported(tmp_path: Path, compression: str) -> None:
    async with transferring(tmp_path / "b") as call:
        compress = COMPRESSIONS[compression]
        call.write("in/a", compress(lines(*map(item, range(40)))))
        call.write("in/deeper/b", compress(lines(*map(item, range(40, 50)))))
        call.write("other/c", b"not below the prefix")
        await call.create("Wanted", items=50)
        found = await call.import_(InputCompressionType=compression)
        assert found["ImportStatus"] == "COMPLETED"
        assert counts(found) == (50, 50, 0)
        assert await call.items("Imported") == await call.items("Wanted")
        wanted, table = await described(call, "Wanted"), await described(call)
        for member in ("ItemCount", "TableSizeBytes", "TableStatus"):
            assert table[member] == wanted[member]
        assert "RestoreSummary" not in table


async def test_an_export_is_imported_again(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        await call.create(items=50)
        await call.export()
        found = await call.import_(prefix="AWSDynamoDB/", InputCompressionType="GZIP")
        assert counts(found) == (50, 50, 0)
        assert await call.items("Imported") == await call.items("Thread")


async def test_an_imported_table_is_written_like_any_other(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        call.write("in/a", lines(*map(item, range(10))))
        await call.import_()
        await call("PutItem", TableName="Imported", Item=item(10))
        changed = await call("PutItem", TableName="Imported", Item=item(3), ReturnValues="ALL_OLD")
        assert changed["Attributes"] == item(3)
        for key in ({"pk": {"S": "p1"}, "n": {"N": "1"}}, {"pk": {"S": "p2"}, "n": {"N": "2"}}):
            await call("DeleteItem", TableName="Imported", Key=key)
        table = await described(call)
        await call("CreateTable", TableName="Wanted", **KEYS)
        for each in await call.items("Imported"):
            await call("PutItem", TableName="Wanted", Item=each)
        wanted = await described(call, "Wanted")
        assert table["ItemCount"] == wanted["ItemCount"] == 9
        assert table["TableSizeBytes"] == wanted["TableSizeBytes"]


async def test_the_indexes_of_an_imported_table_are_complete_when_it_is_active(
    tmp_path: Path,
) -> None:
    async with transferring(tmp_path / "b") as call:
        call.write("in/a", "pk,n,t\n" + "".join(f"k{n},{n % 3},t{n}\n" for n in range(30)))
        found = await call.import_(InputFormat="CSV", parameters=CSV_KEYS)
        assert counts(found) == (30, 30, 0)
        (index,) = (await described(call))["GlobalSecondaryIndexes"]
        assert (index["IndexStatus"], index["ItemCount"]) == ("ACTIVE", 30)
        query = {
            "IndexName": "by_n",
            "KeyConditionExpression": "n = :n",
            "ExpressionAttributeValues": {":n": {"N": "2"}},
        }
        before = await call("Query", TableName="Imported", **query)
        assert before["Count"] == 10
        # Later changes reach the index.
        await call("DeleteItem", TableName="Imported", Key={"pk": {"S": "k2"}})
        with anyio.fail_after(60):
            while (await call("Query", TableName="Imported", **query))["Count"] != 9:
                await asyncio.sleep(0)


async def test_csv_has_strings_unless_its_header_or_the_header_list_has_types(
    tmp_path: Path,
) -> None:
    plain = {"pk": {"S": "a"}, "zip": {"S": "01234"}, "tags": {"S": '["x"]'}}
    typed = {"pk": {"S": "a"}, "zip": {"N": "1234"}, "tags": {"SS": ["x"]}}
    row = 'a,01234,"[""x""]"\n'
    async with transferring(tmp_path / "b") as call:
        for name, text, header, expected in (
            ("Plain", f"pk,zip,tags\n{row}", None, plain),
            ("Typed", f"pk:S,zip:N,tags:SS\n{row}", None, typed),
            ("Listed", row, ["pk:S", "zip:N", "tags:SS"], typed),
        ):
            call.write("in/a.csv", text)
            options = (
                {} if header is None else {"InputFormatOptions": {"Csv": {"HeaderList": header}}}
            )
            found = await call.import_(
                table=name, InputFormat="CSV", parameters=CSV_KEYS, **options
            )
            assert counts(found) == (1, 1, 0)
            assert await call.items(name) == [expected]


async def test_the_table_is_not_usable_before_the_import_is_complete(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        call.write("in/a", lines(item(1)))
        begun = await call("ImportTable", **import_request())
        assert begun["ImportTableDescription"]["ImportStatus"] == "IN_PROGRESS"
        assert unknown_members("ImportTable", begun) == []
        assert (await described(call))["TableStatus"] == "CREATING"
        refusal = await call.refused("PutItem", TableName="Imported", Item=item(2))
        assert refusal[0] == "ResourceNotFoundException"
        await call.imported(begun["ImportTableDescription"]["ImportArn"])
        assert (await described(call))["TableStatus"] == "ACTIVE"


async def test_faulty_records_are_counted_and_logged_with_their_places(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        too_large = item(9) | {"text": {"S": "x" * 410_000}}
        call.write(
            "in/a",
            lines(item(1))
            + b"no json\n"
            + b'{"Items": {}}\n\n'
            + lines({"pk": {"S": "no sort key"}}, {"pk": {"N": "1"}, "n": {"N": "1"}}, too_large)
            + b'{"Item": {"pk": "a"}}\n'
            + lines(item(2), item(1)),
        )
        found = await call.import_()
        assert found["ImportStatus"] == "COMPLETED"
        # Six errors; the last item replaces the first one.
        assert counts(found) == (9, 2, 6)
        logged = call.errors(found["ImportArn"])
        assert [(each["line"], each["code"]) for each in logged] == [
            (2, "InvalidRecord"),
            (3, "InvalidRecord"),
            (5, "ValidationException"),
            (6, "ValidationException"),
            (7, "ValidationException"),
            (8, "SerializationException"),
            (1, "DuplicateKey"),
        ]
        assert {each["key"] for each in logged} == {"in/a"}
        assert max(len(each["item"]) for each in logged) == 1_024
        assert await call.items("Imported") == sorted([item(1), item(2)], key=repr)


async def test_a_later_duplicate_replaces_an_item_of_another_file(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        call.write("in/a", lines(item(1), item(2)))
        later = item(1) | {"text": {"S": "later"}}
        call.write("in/b", b"\n" + lines(item(3), later, item(4)))
        found = await call.import_()
        assert counts(found) == (5, 4, 0)
        (logged,) = call.errors(found["ImportArn"])
        assert (logged["key"], logged["line"], logged["code"]) == ("in/b", 3, "DuplicateKey")
        texts = {each["text"]["S"] for each in await call.items("Imported")}
        assert "later" in texts
        table = await described(call)
        await call("DeleteTable", TableName="Imported")
        call.write("in/a", lines(item(2)))
        await call.import_()
        assert (await described(call))["TableSizeBytes"] == table["TableSizeBytes"]


def _truncate(data: bytes) -> bytes:
    return data[:-20]


def _flip(data: bytes) -> bytes:
    return data[:40] + bytes([data[40] ^ 1]) + data[41:]


@pytest.mark.parametrize("damage", [_truncate, _flip])
async def test_a_damaged_file_ends_the_import_without_a_table(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    async with transferring(tmp_path / "b") as call:
        call.write("in/a", gzip.compress(lines(item(1))))
        call.write("in/b", damage(gzip.compress(lines(*map(item, range(2, 90))))))
        found = await call.import_(InputCompressionType="GZIP")
        assert (found["ImportStatus"], found["FailureCode"]) == ("FAILED", "SourceDamaged")
        assert found["FailureMessage"].startswith("in/b: ")
        await assert_no_table(call)
        assert call.errors(found["ImportArn"])[-1]["code"] == "SourceDamaged"
        assert unknown_members("DescribeImport", {"ImportTableDescription": found}) == []


def _edit(name: str, old: str, new: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        path = folder / name
        path.write_text(path.read_text().replace(old, new, 1))
        (folder / name.replace(".json", ".md5")).unlink()

    return edit


def _remove_file(folder: Path) -> None:
    next(iter((folder / "data").iterdir())).unlink()


def _change_file(folder: Path) -> None:
    path = next(iter((folder / "data").iterdir()))
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()), 1))


def _change_manifest(folder: Path) -> None:
    path = folder / "manifest-files.json"
    path.write_bytes(path.read_bytes() + b"\n")


def _lie_about_counts(folder: Path) -> None:
    path = folder / "manifest-files.json"
    files = [json.decode(line) for line in path.read_bytes().splitlines()]
    files[0]["itemCount"] += 1
    files[1]["itemCount"] -= 1
    path.write_bytes(b"\n".join(map(json.encode, files)))
    (folder / "manifest-files.md5").unlink()


@pytest.mark.parametrize(
    ("spoil", "code", "words"),
    [
        (_remove_file, "S3NoSuchKey", "does not exist"),
        (_change_file, "SourceDamaged", "checksum of the file"),
        (_change_manifest, "SourceDamaged", "The checksum of"),
        (_lie_about_counts, "SourceDamaged", "the manifest says"),
        (_edit("manifest-summary.json", '"itemCount":50', '"itemCount":49'), "SourceDamaged", "49"),
        (
            _edit("manifest-summary.json", "FULL_EXPORT", "INCREMENTAL_EXPORT"),
            "SourceInvalid",
            "incremental",
        ),
        (_edit("manifest-summary.json", "DYNAMODB_JSON", "ION"), "SourceInvalid", "ION"),
        (_edit("manifest-summary.json", "{", "["), "SourceInvalid", "not a summary"),
        (_edit("manifest-files.json", "md5Checksum", "other"), "SourceInvalid", "not a list"),
        (
            lambda folder: (folder / "manifest-summary.json").unlink(),
            "SourceInvalid",
            "not complete",
        ),
    ],
)
async def test_a_spoiled_export_is_not_imported(
    tmp_path: Path, spoil: Callable[[Path], None], code: str, words: str
) -> None:
    async with transferring(tmp_path / "b") as call:
        await call.create(items=50)
        exported = await call.export()
        spoil((call.directory / exported["ExportManifest"]).parent)
        found = await call.import_(prefix="AWSDynamoDB/", InputCompressionType="GZIP")
        assert (found["ImportStatus"], found["FailureCode"]) == ("FAILED", code)
        assert words in found["FailureMessage"]
        await assert_no_table(call)


@pytest.mark.parametrize(
    ("bucket", "prefix", "code"),
    [("unknown", "in/", "S3NoSuchBucket"), (BUCKET, "nothing/", "S3NoSuchKey")],
)
async def test_an_import_without_files_fails(
    tmp_path: Path, bucket: str, prefix: str, code: str
) -> None:
    async with transferring(tmp_path / "b") as call:
        source = {"S3Bucket": bucket, "S3KeyPrefix": prefix}
        found = await call.import_(S3BucketSource=source)
        assert (found["ImportStatus"], found["FailureCode"]) == ("FAILED", code)
        await assert_no_table(call)


async def test_a_link_out_of_the_bucket_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(lines(item(1)))
    async with transferring(tmp_path / "b") as call:
        call.write("in/a", lines(item(2)))
        (call.directory / "in" / "link").symlink_to(tmp_path / "secret")
        (call.directory / "in" / "folder").symlink_to(tmp_path)
        found = await call.import_()
        assert found["ImportStatus"] == "COMPLETED"
        assert counts(found) == (1, 1, 0)


async def test_a_wrong_compression_is_named(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        call.write("in/a", gzip.compress(lines(item(1))))
        found = await call.import_()
        assert "compressed with GZIP, but InputCompressionType is NONE" in found["FailureMessage"]


async def test_a_client_token_starts_one_import(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        call.write("in/a", lines(item(1)))
        first = await call.import_(ClientToken="t")
        again = await call("ImportTable", **import_request(ClientToken="t"))
        assert again["ImportTableDescription"] == first
        refusal = await call.refused(
            "ImportTable", **import_request(prefix="other/", ClientToken="t")
        )
        assert refusal[0] == "ImportConflictException"


async def test_the_name_of_an_existing_table_is_refused(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        await call.create("Imported", items=1)
        refusal = await call.refused("ImportTable", **import_request())
        assert refusal == ("ResourceInUseException", "Table already exists: Imported")
        assert (await call("ListImports"))["ImportSummaryList"] == []
        assert len(await call.items("Imported")) == 1


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"InputFormatOptions": {"Csv": {"Delimiter": ";"}}}, "only be given for"),
        ({"InputCompressionType": "LZ4"}, "enum value set"),
        ({"S3BucketSource": {"S3Bucket": "-a"}}, "regular expression"),
        ({"InputFormat": "CSV", "InputFormatOptions": {"Csv": {"Delimiter": "x"}}}, "expression"),
    ],
)
async def test_invalid_imports_are_refused(
    tmp_path: Path, members: dict[str, Any], words: str
) -> None:
    async with transferring(tmp_path / "b") as call:
        refusal = await call.refused("ImportTable", **import_request(**members))
        assert refusal[0] == "ValidationException"
        assert words in refusal[1]


async def test_imports_are_listed_page_by_page_and_forgotten_after_90_days(tmp_path: Path) -> None:
    clock = SetClock()
    async with transferring(tmp_path / "b", clock=clock) as call:
        call.write("in/a", lines(item(1)))
        arns = []
        for name in ("Tab1", "Tab2", "Tab3"):
            arns.append((await call.import_(table=name))["ImportArn"])
            clock.step(1)
        first = await call("ListImports", PageSize=2)
        second = await call("ListImports", NextToken=first["NextToken"])
        found = first["ImportSummaryList"] + second["ImportSummaryList"]
        assert [each["ImportArn"] for each in found] == arns[::-1]
        assert unknown_members("ListImports", first) == []
        of_one = await call("ListImports", TableArn="Tab2")
        assert [each["ImportArn"] for each in of_one["ImportSummaryList"]] == [arns[1]]
        arn = arns[0].replace("Tab1", "Tab2")
        assert (await call.refused("DescribeImport", ImportArn=arn))[0] == "ImportNotFoundException"
        refusal = await call.refused(
            "DescribeImport", ImportArn=arn.replace("/import/", "/other_/")
        )
        assert refusal == ("ValidationException", "Invalid ImportArn")
        clock.step(90 * 24 * 60 * 60 - 60)
        actor = call.client.database.actor
        await trim(call.client.database)
        assert await transfers.load_imports(actor._store.latest)
        clock.step(60)
        assert (await call("ListImports"))["ImportSummaryList"] == []
        await trim(call.client.database)
        assert await transfers.load_imports(actor._store.latest) == []
        assert not list(actor._imports._imports)


async def test_an_import_begins_again_after_a_restart(tmp_path: Path) -> None:
    async with kept_store(tmp_path / "data") as store, transferring(tmp_path / "b", store) as call:
        call.write("in/a", lines(*map(item, range(2_500))))
        begun = await call("ImportTable", **import_request())
        arn = begun["ImportTableDescription"]["ImportArn"]
        while not (await call("DescribeImport", ImportArn=arn))["ImportTableDescription"][
            "ImportedItemCount"
        ]:
            await asyncio.sleep(0)
    call.write("in/a", lines(*map(item, range(2_000, 2_600))))
    async with kept_store(tmp_path / "data") as store, transferring(tmp_path / "b", store) as call:
        found = await call.imported(arn)
        assert counts(found) == (600, 600, 0)
        # No item of the first attempt is left.
        assert await call.items("Imported") == sorted(map(item, range(2_000, 2_600)), key=repr)
        assert (await described(call))["ItemCount"] == 600
