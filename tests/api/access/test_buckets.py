"""Imports, exports and bulk operations use only the objects that their callers may use."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog

from dynactor.api.access.access_control import AccessControl
from dynactor.api.access.identities import Role
from dynactor.api.access.observed_denials import ObservedDenials
from dynactor.api.keys.signature import AccessKey
from dynactor.model.access.policy import parse_policy
from dynactor.model.access.suggestion import suggested
from dynactor.storage.store import Store
from tests.support.access.callers import ACCOUNT, DENIED, Callers, Form
from tests.support.access.deciding import policy
from tests.support.databases.transferred import (
    BUCKET,
    TABLE_ARNS,
    Transfers,
    bulk_put_request,
    import_request,
    item,
    lines,
    transferring,
)
from tests.support.stores.store import kept_store

ARN = f"arn:aws:s3:::{BUCKET}"
TABLES = {"Action": "dynamodb:*", "Resource": "arn:aws:dynamodb:*:*:table/mine*"}
# AWS's example for imports, for one prefix.
LIST_MINE = {
    "Action": "s3:ListBucket",
    "Resource": ARN,
    "Condition": {"StringLike": {"s3:prefix": "mine*"}},
}
READ_MINE = {"Action": "s3:GetObject", "Resource": f"{ARN}/mine/*"}
WRITE_MINE = {"Action": "s3:PutObject", "Resource": f"{ARN}/mine/*"}
OUTPUT = {"S3KeyPrefix": "mine/out"}


class Bucket(Transfers):
    """The operations of one caller after the other on a database with a bucket."""

    def __init__(self, callers: Callers, transfers: Transfers) -> None:
        super().__init__(transfers.client, transfers.directory)
        self.callers = callers

    def add(self, *statements: Mapping[str, Any]) -> None:
        """Let ann have these statements."""
        self.callers.add("ann", policy(*statements))

    async def denied(self, operation: str, request: dict[str, Any], name: str = "ann") -> str:
        """The message of a denied request."""
        reply = await self.callers.call(name, operation, request)
        assert reply.error == DENIED, reply
        return reply.message

    async def ended_import(self, request: dict[str, Any], name: str = "ann") -> dict[str, Any]:
        """An import of a caller when it has ended."""
        reply = await self.callers.call(name, "ImportTable", request)
        assert reply.status == 200, reply
        return await self.imported(reply.body["ImportTableDescription"]["ImportArn"])

    async def ended_bulk_put(self, request: dict[str, Any]) -> dict[str, Any]:
        """A bulk operation of ann when it has ended."""
        reply = await self.callers.call("ann", "StartBulkPutItems", request)
        assert reply.status == 200, reply
        return await self.bulk_ended(reply.body["BulkOperationDescription"]["BulkOperationArn"])

    async def ended_export(self, **members: Any) -> dict[str, Any]:
        """An export of ann's table when it has ended."""
        request = {"TableArn": f"{TABLE_ARNS}mine", "S3Bucket": BUCKET, **members}
        reply = await self.callers.call("ann", "ExportTableToPointInTime", request)
        assert reply.status == 200, reply
        return await self.exported(reply.body["ExportDescription"]["ExportArn"])


@asynccontextmanager
async def calling(directory: Path, store: Store | None = None) -> AsyncIterator[Bucket]:
    async with transferring(directory / "b", store) as transfers:
        bucket = Bucket(Callers(transfers.client.database), transfers)
        for prefix in ("mine/", "mine-other/", "theirs/"):
            bucket.write(f"{prefix}a", lines(*map(item, range(3))))
        yield bucket


def mine(prefix: str = "mine/", table: str = "mine-2") -> dict[str, Any]:
    return import_request(prefix, table)


def refused(action: str, key: str) -> str:
    return (
        f"User: arn:aws:iam::{ACCOUNT}:user/ann is not authorized to perform: {action} on "
        f"resource: {ARN}/{key} because no identity-based policy allows the {action} action"
    )


async def test_a_caller_without_actions_on_buckets_can_not_use_them(tmp_path: Path):
    async with calling(tmp_path) as bucket:
        bucket.add(TABLES)
        await bucket.create("mine", items=2)
        message = (
            f"User: arn:aws:iam::{ACCOUNT}:user/ann is not authorized to perform: s3:ListBucket "
            f"on resource: {ARN} because no identity-based policy allows the s3:ListBucket action"
        )
        assert await bucket.denied("ImportTable", mine("theirs/")) == message
        request = bulk_put_request("mine", input_={"S3KeyPrefix": "theirs/"})
        assert await bucket.denied("StartBulkPutItems", request) == message
        failed = await bucket.ended_export(S3Prefix="mine")
        assert failed["FailureCode"] == "S3AccessDenied"
        export_id = failed["ExportArn"].rpartition("/")[2]
        key = f"mine/AWSDynamoDB/{export_id}/_started"
        assert failed["FailureMessage"] == refused("s3:PutObject", key)
        assert not (bucket.directory / "mine" / "AWSDynamoDB").exists()


async def test_each_file_of_an_export_needs_an_action(tmp_path: Path):
    async with calling(tmp_path) as bucket:
        bucket.add(TABLES, {**WRITE_MINE, "Resource": f"{ARN}/mine/*/_started"})
        await bucket.create("mine", items=2)
        failed = await bucket.ended_export(S3Prefix="mine")
        assert failed["FailureCode"] == "S3AccessDenied"
        folder = f"mine/AWSDynamoDB/{failed['ExportArn'].rpartition('/')[2]}"
        denied = f"s3:PutObject on resource: {ARN}/{folder}/data/"
        assert denied in failed["FailureMessage"]
        assert [path.name for path in (bucket.directory / folder).iterdir()] == ["_started"]


async def test_policies_as_on_aws_allow_imports_and_exports_of_one_prefix(tmp_path: Path):
    async with calling(tmp_path) as bucket:
        bucket.add(TABLES, LIST_MINE, READ_MINE, WRITE_MINE)
        assert (await bucket.ended_import(mine()))["ImportedItemCount"] == 3
        await bucket.create("mine")
        put = bulk_put_request("mine", input_={"S3KeyPrefix": "mine/"}, output=OUTPUT)
        assert (await bucket.ended_bulk_put(put))["ProcessedItemCount"] == 3
        assert (await bucket.ended_export(S3Prefix="mine"))["ItemCount"] == 3
        assert (await bucket.ended_export(S3Prefix="theirs"))["ExportStatus"] == "FAILED"
        await bucket.denied("ImportTable", mine("theirs/"))
        await bucket.denied("ImportTable", mine(""))
        whole = mine()
        del whole["S3BucketSource"]["S3KeyPrefix"]
        await bucket.denied("ImportTable", whole)


async def test_a_prefix_matches_longer_names_and_each_object_is_checked(tmp_path: Path):
    async with calling(tmp_path) as bucket:
        bucket.add(TABLES, LIST_MINE, READ_MINE)
        failed = await bucket.ended_import(mine("mine"))
        assert failed["FailureCode"] == "S3AccessDenied"
        assert failed["FailureMessage"] == refused("s3:GetObject", "mine-other/a")
        await bucket.create("mine")
        put = bulk_put_request("mine", input_={"S3KeyPrefix": "mine"}, output=OUTPUT)
        stopped = await bucket.ended_bulk_put(put)
        assert (stopped["BulkOperationStatus"], stopped["FailureCode"]) == (
            "FAILED",
            "S3AccessDenied",
        )
        bucket.add(TABLES, LIST_MINE, {**READ_MINE, "Resource": f"{ARN}/mine*"})
        # Both files have the same items.
        assert (await bucket.ended_import(mine("mine")))["ImportedItemCount"] == 3


async def test_a_manifest_can_not_name_objects_outside_of_its_prefix(tmp_path: Path):
    async with calling(tmp_path) as bucket:
        bucket.add({})
        await bucket.create("mine", items=3)
        export = await bucket.ended_export(S3Prefix="theirs")
        folder = bucket.directory / Path(export["ExportManifest"]).parent
        for path in folder.iterdir():
            if path.is_file() and not path.name.endswith(".md5"):
                # The list of files still names those in the folder of the export.
                bucket.write(f"mine-copy/{path.name}", path.read_bytes())
        failed = await bucket.ended_import({**mine("mine-copy/"), "InputCompressionType": "GZIP"})
        assert failed["FailureCode"] == "S3NoSuchKey"
        assert failed["FailureMessage"].startswith("The listed file theirs/AWSDynamoDB/")


async def test_the_output_of_a_bulk_operation_needs_an_action(tmp_path: Path):
    async with calling(tmp_path) as bucket:
        bucket.add(TABLES, LIST_MINE, READ_MINE)
        await bucket.create("mine")
        bucket.write("mine/b", b"no record\n")
        put = bulk_put_request("mine", input_={"S3KeyPrefix": "mine/"}, output=OUTPUT)
        failed = await bucket.ended_bulk_put(put)
        operation_id = failed["BulkOperationArn"].rpartition("/")[2]
        key = f"mine/out/AWSDynamoDB/{operation_id}/errors.jsonl"
        assert failed["FailureMessage"] == refused("s3:PutObject", key)
        assert not (bucket.directory / "mine" / "out").exists()


async def test_the_error_log_of_an_import_in_its_bucket_needs_an_action(tmp_path: Path):
    async with calling(tmp_path) as bucket:
        bucket.write("mine/b", b"no record\n")
        bucket.add(TABLES, LIST_MINE, READ_MINE)
        found = await bucket.ended_import(mine())
        assert (found["ImportStatus"], found["ErrorCount"]) == ("FAILED", 1)
        assert not (bucket.directory / "imports").exists()
        logs = {"Action": "s3:PutObject", "Resource": f"{ARN}/imports/*"}
        bucket.add(TABLES, LIST_MINE, READ_MINE, logs)
        found = await bucket.ended_import(mine(table="mine-3"))
        assert len(bucket.errors(found["ImportArn"])) == 1


def use(callers: Callers, name: str, answer: Form) -> None:
    """Let a name stand for the credentials of an answer."""
    fields = answer.fields
    key = AccessKey(fields["AccessKeyId"], fields["SecretAccessKey"])
    callers.keep(name, key, fields["SessionToken"])


@pytest.mark.parametrize("key", ["secret", "${x}*"])
async def test_policies_of_sessions_and_tags_and_denies_count(tmp_path: Path, key: str):
    async with calling(tmp_path) as bucket:
        callers = bucket.callers
        bucket.add({})
        own = policy(
            {},
            {"Effect": "Deny", "Action": "s3:*", "Resource": f"{ARN}/mine/${{aws:PrincipalTag/x}}"},
        )
        trust = policy(
            {"Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:user/ann"}, "Action": "sts:*"},
            kind="trust",
        )
        callers.roles["worker"] = Role("worker", trust, (own,), {"x": key})
        assume = {
            "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/worker",
            "RoleSessionName": "work",
        }
        use(callers, "worker", await callers.sts("ann", "AssumeRole", **assume))
        assert (await bucket.ended_import(mine(), "worker"))["ImportStatus"] == "COMPLETED"
        bucket.write(f"mine/{key}", lines(item(9)))
        failed = await bucket.ended_import(mine(table="mine-3"), "worker")
        assert failed["FailureMessage"].endswith(
            f"{ARN}/mine/{key} with an explicit deny in an identity-based policy"
        )
        (bucket.directory / "mine" / key).unlink()
        session = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **TABLES}]}
        session["Statement"] += [  # type: ignore[operator]
            {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "*"},
            {"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"{ARN}/theirs/*"},
        ]
        assumed = await callers.sts("ann", "AssumeRole", **assume, Policy=json.dumps(session))
        use(callers, "session", assumed)
        failed = await bucket.ended_import(mine(table="mine-3"), "session")
        assert failed["FailureMessage"].endswith(
            "because no session policy allows the s3:GetObject action"
        )
        found = await bucket.ended_import(mine("theirs/", "mine-3"), "session")
        assert found["ImportStatus"] == "COMPLETED"


async def test_the_policies_of_the_request_count_after_a_change_and_a_restart(tmp_path: Path):
    async with kept_store(tmp_path / "data") as store, calling(tmp_path, store) as bucket:
        bucket.write("mine/a", lines(*map(item, range(2_500))))
        bucket.add(TABLES, LIST_MINE, READ_MINE)
        reply = await bucket.callers.call("ann", "ImportTable", mine())
        arn = reply.body["ImportTableDescription"]["ImportArn"]
        while not (await bucket("DescribeImport", ImportArn=arn))["ImportTableDescription"][
            "ImportedItemCount"
        ]:
            await asyncio.sleep(0)
        widest = import_request("mine", "mine-3")
        reply = await bucket.callers.call("ann", "ImportTable", widest)
        other = reply.body["ImportTableDescription"]["ImportArn"]
    async with kept_store(tmp_path / "data") as store, calling(tmp_path, store) as bucket:
        # Nobody has policies now.
        assert (await bucket.imported(arn))["ImportStatus"] == "COMPLETED"
        failed = await bucket.imported(other)
        assert failed["FailureMessage"] == refused("s3:GetObject", "mine-other/a")


async def test_observed_denials_are_logged_and_the_suggested_policy_is_enough(tmp_path: Path):
    async with calling(tmp_path) as bucket:
        callers = bucket.callers
        callers.add("ann")
        observing = AccessControl(callers.registry, ObservedDenials())
        callers.check_with(observing)
        await bucket.create("mine")
        put = bulk_put_request("mine", input_={"S3KeyPrefix": "theirs/"}, output=OUTPUT)
        bucket.write("mine/b", lines(item(9)))
        with structlog.testing.capture_logs() as logged:
            assert (await bucket.ended_import(mine()))["ImportStatus"] == "COMPLETED"
        assert [
            (line["action"], line.get("key"))
            for line in logged
            if line["event"] == "action_not_allowed"
        ] == [("dynamodb:ImportTable", None), ("s3:ListBucket", None), ("s3:GetObject", "mine/a")]
        await bucket.ended_bulk_put(put)
        await bucket.ended_export(S3Prefix="out")
        assert observing.recorded is not None
        suggestion = suggested(observing.recorded.actions(f"arn:aws:iam::{ACCOUNT}:user/ann"))
        assert list(suggestion.policy["Statement"]) == [
            {
                "Effect": "Allow",
                "Action": ["dynamodb:ExportTableToPointInTime", "dynamodb:StartBulkPutItems"],
                "Resource": ["arn:aws:dynamodb:us-east-1:000000000000:table/mine"],
            },
            {
                "Effect": "Allow",
                "Action": ["dynamodb:ImportTable"],
                "Resource": ["arn:aws:dynamodb:us-east-1:000000000000:table/mine-2"],
            },
            {
                "Effect": "Allow",
                "Action": ["s3:ListBucket"],
                "Resource": [ARN],
                "Condition": {"StringEquals": {"s3:prefix": ["mine/", "theirs/"]}},
            },
            {
                "Effect": "Allow",
                "Action": ["s3:GetObject"],
                "Resource": [f"{ARN}/mine/*", f"{ARN}/theirs/*"],
            },
            {
                "Effect": "Allow",
                "Action": ["s3:PutObject"],
                "Resource": [f"{ARN}/mine/out/AWSDynamoDB/*", f"{ARN}/out/AWSDynamoDB/*"],
            },
        ]
        assert suggestion.notes == tuple(
            f"The Resource of {action} has a wildcard, because it is on all objects below a prefix"
            for action in ("s3:GetObject", "s3:PutObject")
        )
        callers.check_with(AccessControl(callers.registry))
        callers.add("ann", parse_policy(json.dumps(suggestion.policy), "suggested"))
        await bucket("DeleteTable", TableName="mine-2")
        assert (await bucket.ended_import(mine()))["ImportStatus"] == "COMPLETED"
        assert (await bucket.ended_bulk_put(put))["BulkOperationStatus"] == "COMPLETED"
        assert (await bucket.ended_export(S3Prefix="out"))["ExportStatus"] == "COMPLETED"
