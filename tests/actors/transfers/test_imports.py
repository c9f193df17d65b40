"""An import creates a whole table, or none: bad records are counted, bad files end it."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import anyio
import pytest
import zstandard
from msgspec import json

from dynactor.actors.transfers.table_imports import TableImports
from dynactor.storage import transfers
from tests.support.databases.databases import SetClock
from tests.support.databases.recovered import trim
from tests.support.databases.transferred import (
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


FAULTY = (
    "FAILED",
    "ItemValidationError",
    (
        "Some of the items failed validation checks and were not imported. Please check CloudWatch "
        "error logs for more details."
    ),
)


def counts(found: dict[str, Any]) -> tuple[int, int, int]:
    """The processed items, the imported items and the errors."""
    return found["ProcessedItemCount"], found["ImportedItemCount"], found["ErrorCount"]


def ended_as(found: dict[str, Any]) -> tuple[str, str, str]:
    """The status of a failed import, its code and its message."""
    return found["ImportStatus"], found["FailureCode"], found["FailureMessage"]


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
        assert ended_as(found) == FAULTY
        assert (await described(call))["TableStatus"] == "ACTIVE"
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


async def test_an_import_from_an_unknown_bucket_fails(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        source = {"S3Bucket": "unknown", "S3KeyPrefix": "in/"}
        found = await call.import_(S3BucketSource=source)
        assert (found["ImportStatus"], found["FailureCode"]) == ("FAILED", "S3NoSuchBucket")
        await assert_no_table(call)


async def test_an_import_without_files_makes_an_empty_table(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        found = await call.import_(prefix="nothing/")
        assert (found["ImportStatus"], counts(found)) == ("COMPLETED", (0, 0, 0))
        assert (await described(call))["TableStatus"] == "ACTIVE"


async def test_a_link_out_of_the_bucket_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(lines(item(1)))
    async with transferring(tmp_path / "b") as call:
        call.write("in/a", lines(item(2)))
        (call.directory / "in" / "link").symlink_to(tmp_path / "secret")
        (call.directory / "in" / "folder").symlink_to(tmp_path)
        found = await call.import_()
        assert found["ImportStatus"] == "COMPLETED"
        assert counts(found) == (1, 1, 0)


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ("NONE", gzip.compress(lines(item(1)))),
        ("GZIP", lines(item(1))),
        ("ZSTD", gzip.compress(lines(item(1)))),
    ],
)
async def test_files_with_another_compression_are_faulty_items(
    tmp_path: Path, said: str, content: bytes
) -> None:
    async with transferring(tmp_path / "b") as call:
        call.write("in/a", content)
        found = await call.import_(InputCompressionType=said)
        assert ended_as(found) == FAULTY
        assert counts(found) == (1, 0, 1)
        assert (await described(call))["TableStatus"] == "ACTIVE"
        assert await call.items("Imported") == []
        (logged,) = call.errors(found["ImportArn"])
        assert (logged["key"], logged["code"]) == ("in/a", "OtherCompression")
        assert f"but InputCompressionType is {said}" in logged["message"]
        await call("DeleteTable", TableName="Imported")
        # The other files are imported.
        call.write("in/b", COMPRESSIONS[said](lines(item(2))))
        found = await call.import_(InputCompressionType=said)
        assert ended_as(found) == FAULTY
        assert counts(found) == (2, 1, 1)
        assert await call.items("Imported") == [item(2)]


async def test_the_second_of_two_imports_with_one_name_fails(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        call.write("in/a", lines(*map(item, range(50))))
        first = await call("ImportTable", **import_request())
        second = (await call("ImportTable", **import_request()))["ImportTableDescription"]
        assert second["ImportStatus"] == "IN_PROGRESS"
        arns = first["ImportTableDescription"]["ImportArn"], second["ImportArn"]
        assert (await call.imported(arns[0]))["ImportStatus"] == "COMPLETED"
        lost = await call.imported(arns[1])
        assert (lost["ImportStatus"], lost["FailureCode"]) == ("FAILED", "TableAlreadyExists")
        assert lost["ClientToken"] == second["ClientToken"]
        assert len(await call.items("Imported")) == 50


async def test_an_import_shows_a_client_token_and_the_owner_of_the_bucket(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        call.write("in/a", lines(item(1)))
        found = await call.import_()
        assert UUID(found["ClientToken"])
        assert found["S3BucketSource"]["S3BucketOwner"] == found["ImportArn"].split(":")[4]
        (listed,) = (await call("ListImports"))["ImportSummaryList"]
        assert listed["S3BucketSource"] == found["S3BucketSource"]


async def test_arns_of_imports_and_tables_of_another_account_are_refused(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        call.write("in/a", lines(item(1)))
        arn = (await call.import_())["ImportArn"].replace(":000000000000:", ":123456789012:")
        denied = ("AccessDeniedException", "Access is denied")
        assert await call.refused("DescribeImport", ImportArn=arn) == denied
        table_arn = arn.partition("/import/")[0]
        for operation in ("ListImports", "ListExports"):
            assert await call.refused(operation, TableArn=table_arn) == denied
        other = arn.replace("arn:aws:", "arn:other:")
        refusal = await call.refused("DescribeImport", ImportArn=other)
        assert refusal == ("ValidationException", "Invalid ImportArn")


async def test_a_client_token_starts_one_import(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        call.write("in/a", lines(item(1)))
        first = await call.import_(ClientToken="t")
        again = await call("ImportTable", **import_request(ClientToken="t"))
        assert again["ImportTableDescription"] == first
        refusal = await call.refused(
            "ImportTable", **import_request(prefix="other/", ClientToken="t")
        )
        assert refusal == (
            "ImportConflictException",
            "Import conflict: Duplicate request detected with conflicting parameters",
        )


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
        (
            {"InputFormatOptions": {"Csv": {"Delimiter": ";"}}},
            (
                "Invalid Request: Unsupported InputFormatOptions for the given input format: "
                "DYNAMODB_JSON."
            ),
        ),
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
        database = call.client.database
        await trim(database)
        assert await transfers.load_imports(database._store.latest)
        clock.step(60)
        assert (await call("ListImports"))["ImportSummaryList"] == []
        await trim(database)
        assert await transfers.load_imports(database._store.latest) == []
        assert not list(database.part(TableImports)._imports)


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
