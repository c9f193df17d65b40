"""Resource policies of tables and streams: revisions, evaluation, and lockout."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from dynactor.actors.database.database import Database
from tests.support.access.callers import ACCOUNT, DENIED, Callers
from tests.support.access.deciding import policy
from tests.support.access.tenants import ARN, CREATE, item, key
from tests.support.databases.databases import running_database
from tests.support.stores.store import memory_store

ANN = f"arn:aws:iam::{ACCOUNT}:user/ann"
INVALID = "One or more parameter values were invalid: Invalid policy document: "
GET = {"TableName": "Notes", "Key": key("ann", "1")}


@asynccontextmanager
async def calling() -> AsyncIterator[tuple[Callers, Database]]:
    """A table, its owner root, and ann, who has no policies."""
    async with running_database() as database:
        callers = Callers(database)
        callers.add("root", policy({}))
        callers.add("ann")
        assert (await callers.call("root", "CreateTable", CREATE)).status == 200
        await callers.call("root", "PutItem", {"TableName": "Notes", "Item": item("ann", "1")})
        yield callers, database


def document(*statements: dict[str, Any]) -> str:
    whole = [
        {
            "Effect": "Allow",
            "Principal": "*" if one.get("Effect") == "Deny" else {"AWS": ANN},
            "Resource": "*",
            **one,
        }
        for one in statements
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": whole})


async def put(callers: Callers, text: str, arn: str = ARN, **members: Any) -> Any:
    request = {"ResourceArn": arn, "Policy": text, **members}
    return await callers.call("root", "PutResourcePolicy", request)


READS = document({"Principal": {"AWS": ANN}, "Action": "dynamodb:GetItem", "Resource": ARN})


async def test_a_policy_of_a_table_allows_and_denies():
    async with calling() as (callers, _):
        assert (await callers.call("ann", "GetItem", GET)).error == DENIED
        assert (await put(callers, READS)).status == 200
        assert (await callers.call("ann", "GetItem", GET)).status == 200
        scan = {"TableName": "Notes"}
        assert (await callers.call("ann", "Scan", scan)).error == DENIED
        callers.add("ann", policy({}))
        assert (await callers.call("ann", "Scan", scan)).status == 200
        no_scans = {"Effect": "Deny", "Action": "dynamodb:Scan"}
        assert (await put(callers, document(no_scans))).status == 200
        refused = await callers.call("ann", "Scan", scan)
        assert refused.message.endswith("with an explicit deny in a resource-based policy")
        # The table's policy applies to its indexes.
        of_index = {**scan, "IndexName": "Days"}
        assert (await callers.call("ann", "Scan", of_index)).error == DENIED
        request = {"ResourceArn": ARN}
        assert (await callers.call("root", "DeleteResourcePolicy", request)).status == 200
        assert (await callers.call("ann", "Scan", of_index)).status == 200


async def test_a_policy_has_revisions():
    async with calling() as (callers, _):
        request = {"ResourceArn": ARN}
        assert (await callers.call("root", "GetResourcePolicy", request)).error == (
            "PolicyNotFoundException"
        )
        assert (await callers.call("root", "DeleteResourcePolicy", request)).body == {}
        wrong = {"ExpectedRevisionId": "1"}
        for members in (wrong, {"ExpectedRevisionId": "NO_POLICY"}):
            refused = await callers.call("root", "DeleteResourcePolicy", request | wrong)
            assert refused.error == "PolicyNotFoundException"
            assert (await put(callers, READS, **wrong)).error == "PolicyNotFoundException"
            first = (await put(callers, READS, **members)).body.get("RevisionId")
        assert first is not None
        assert (await put(callers, READS)).body == {"RevisionId": first}
        found = (await callers.call("root", "GetResourcePolicy", request)).body
        assert found == {"Policy": READS, "RevisionId": first}
        refused = await put(callers, READS, ExpectedRevisionId="NO_POLICY")
        assert refused.error == "PolicyNotFoundException"
        other = document({"Action": "dynamodb:*"})
        second = (await put(callers, other, ExpectedRevisionId=first)).body["RevisionId"]
        assert int(second) > int(first)
        removed = await callers.call(
            "root", "DeleteResourcePolicy", request | {"ExpectedRevisionId": second}
        )
        assert removed.body == {"RevisionId": second}


async def test_a_policy_is_checked():
    async with calling() as (callers, _):
        for text, message in (
            ("{}", f"{INVALID}Missing required field Statement"),
            (
                json.dumps({"Statement": [{"Effect": "Allow", "Action": "*", "Principal": "*"}]}),
                f"{INVALID}Missing required field Resource",
            ),
            (
                document({"Principal": "*", "Action": "dynamodb:GetItem"}),
                "Resource-based policy grants unbounded access",
            ),
            (
                document({"Principal": {"AWS": "*"}, "Action": "dynamodb:GetItem"}),
                "Resource-based policy grants unbounded access",
            ),
            (document({"Action": "dynamodb:GetRecords"}), f"{INVALID}Action dynamodb:getrecords"),
            (document({"Action": "dynamodb:Nothing"}), "is not an action of DynamoDB"),
            (
                document({"Action": "*"}) + " " * 20_480,
                "Maximum policy size of 20480 bytes exceeded",
            ),
        ):
            refused = await put(callers, text)
            assert refused.error == "ValidationException"
            assert message in refused.message
        # The size is checked before the text is parsed, which would take long.
        lockout = document({"Effect": "Deny", "Action": "dynamodb:PutResourcePolicy"})
        for text in ("[" * 20_481, lockout + " " * 20_480):
            refused = await put(callers, text)
            assert "Maximum policy size of 20480 bytes exceeded" in refused.message
        of_new_table = {**CREATE, "TableName": "Other", "ResourcePolicy": "[" * 20_481}
        assert (await callers.call("root", "CreateTable", of_new_table)).message == refused.message
        refused = await put(callers, READS, f"{ARN}/index/Days")
        assert refused.error == "ValidationException"
        refused = await put(callers, READS, ARN.replace("Notes", "Nowhere"))
        assert refused.error == "ResourceNotFoundException"
        # White space counts.
        full = document({"Action": "*"})
        assert (await put(callers, full + " " * (20_480 - len(full)))).status == 200


async def test_a_policy_that_locks_its_author_out_must_be_confirmed():
    async with calling() as (callers, _):
        lockout = document({"Effect": "Deny", "Action": "dynamodb:PutResourcePolicy"})
        refused = await put(callers, lockout)
        assert refused.error == DENIED
        assert "ConfirmRemoveSelfResourceAccess" in refused.message
        assert (await put(callers, lockout, ConfirmRemoveSelfResourceAccess=True)).status == 200
        assert (await put(callers, READS)).error == DENIED
        request = {"ResourceArn": ARN}
        assert (await callers.call("root", "DeleteResourcePolicy", request)).status == 200


async def test_a_stream_has_a_policy_of_its_own():
    async with calling() as (callers, _):
        streams = (await callers.call("root", "ListStreams", {})).body["Streams"]
        arn = streams[0]["StreamArn"]
        reads = document({"Action": ["dynamodb:DescribeStream", "dynamodb:GetItem"]})
        assert (await put(callers, reads, arn)).status == 200
        assert (await callers.call("ann", "DescribeStream", {"StreamArn": arn})).status == 200
        assert (await callers.call("ann", "GetItem", GET)).error == DENIED
        assert (await put(callers, READS)).status == 200
        found = await callers.call("root", "GetResourcePolicy", {"ResourceArn": arn})
        assert found.body["Policy"] == reads
        removed = await callers.call("root", "DeleteResourcePolicy", {"ResourceArn": arn})
        assert removed.status == 200
        described = await callers.call("ann", "DescribeStream", {"StreamArn": arn})
        assert described.error == DENIED


async def test_a_new_table_may_have_a_policy_which_is_deleted_with_the_table():
    async with calling() as (callers, _):
        request = {**CREATE, "TableName": "Other", "ResourcePolicy": READS}
        callers.add("maker", policy({"Action": "dynamodb:CreateTable"}))
        refused = await callers.call("maker", "CreateTable", request)
        assert "not authorized to perform: dynamodb:PutResourcePolicy" in refused.message
        assert (await callers.call("root", "CreateTable", request)).status == 200
        named = {"ResourceArn": ARN.replace("Notes", "Other")}
        found = (await callers.call("root", "GetResourcePolicy", named)).body
        assert found["Policy"] == READS
        await callers.call("root", "DeleteTable", {"TableName": "Other"})
        await callers.call("root", "CreateTable", {**CREATE, "TableName": "Other"})
        missing = await callers.call("root", "GetResourcePolicy", named)
        assert missing.error == "PolicyNotFoundException"


async def test_a_principal_of_another_account_is_kept_and_never_matches():
    async with calling() as (callers, _):
        others = document(
            {"Principal": {"AWS": "arn:aws:iam::111122223333:user/ann"}, "Action": "dynamodb:*"}
        )
        assert (await put(callers, others)).status == 200
        assert (await callers.call("ann", "GetItem", GET)).error == DENIED
        found = await callers.call("root", "GetResourcePolicy", {"ResourceArn": ARN})
        assert found.body["Policy"] == others


async def test_conditions_of_a_resource_policy_see_the_request():
    async with calling() as (callers, _):
        own = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": "${aws:username}"}}
        assert (await put(callers, document({"Action": "*", "Condition": own}))).status == 200
        assert (await callers.call("ann", "GetItem", GET)).status == 200
        of_bob = {"TableName": "Notes", "Key": key("bob", "1")}
        assert (await callers.call("ann", "GetItem", of_bob)).error == DENIED


async def test_policies_are_kept_over_a_restart():
    async with memory_store() as store:
        for is_restarted in (False, True):
            async with running_database(store) as database:
                callers = Callers(database)
                callers.add("root", policy({}))
                if not is_restarted:
                    await callers.call("root", "CreateTable", CREATE)
                    assert (await put(callers, READS)).status == 200
                    continue
                found = await callers.call("root", "GetResourcePolicy", {"ResourceArn": ARN})
                assert found.body["Policy"] == READS
