"""STS: temporary credentials of users and roles, and their limits."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dynactor.api.access.identities import Role
from dynactor.api.keys.session_tokens import Session
from dynactor.api.keys.signature import AccessKey
from tests.support.access.callers import ACCOUNT, DENIED, Callers, Form
from tests.support.access.deciding import policy
from tests.support.access.tenants import CREATE, POLICY, key
from tests.support.databases.databases import running_database

READER = f"arn:aws:iam::{ACCOUNT}:role/reader"
ASSUME = {"RoleArn": READER, "RoleSessionName": "work"}
GET = {"TableName": "Notes", "Key": key("ann", "1")}


def trusting(*principals: str, action: str = "sts:*", **more: Any) -> Any:
    return policy({"Principal": {"AWS": list(principals)}, "Action": action, **more}, kind="trust")


@asynccontextmanager
async def calling() -> AsyncIterator[Callers]:
    """A table, its owner root, ann without policies, and a role that trusts ann."""
    async with running_database() as database:
        callers = Callers(database)
        callers.add("root", policy({}))
        callers.add("ann")
        reads = policy({"Action": ["dynamodb:GetItem", "dynamodb:Query"]})
        trust = trusting(f"arn:aws:iam::{ACCOUNT}:user/ann")
        callers.roles["reader"] = Role("reader", trust, (reads,), {}, 7_200)
        assert (await callers.call("root", "CreateTable", CREATE)).status == 200
        yield callers


def use(callers: Callers, name: str, answer: Form) -> None:
    """Let a name stand for the credentials of an answer."""
    assert answer.status == 200, answer
    fields = answer.fields
    key = AccessKey(fields["AccessKeyId"], fields["SecretAccessKey"])
    callers.keep(name, key, fields["SessionToken"])


async def test_the_identity_of_callers():
    async with calling() as callers:
        assert (await callers.sts("ann", "GetCallerIdentity")).fields["Arn"] == (
            f"arn:aws:iam::{ACCOUNT}:user/ann"
        )
        use(callers, "session", await callers.sts("ann", "AssumeRole", **ASSUME))
        identity = (await callers.sts("session", "GetCallerIdentity")).fields
        assert identity["Arn"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/reader/work"
        assert identity["Account"] == ACCOUNT
        assert identity["UserId"].endswith(":work")


async def test_a_session_has_the_permissions_of_its_role():
    async with calling() as callers:
        assert (await callers.call("ann", "GetItem", GET)).error == DENIED
        use(callers, "session", await callers.sts("ann", "AssumeRole", **ASSUME))
        assert (await callers.call("session", "GetItem", GET)).status == 200
        refused = await callers.call("session", "Scan", {"TableName": "Notes"})
        assert refused.message.startswith(
            f"User: arn:aws:sts::{ACCOUNT}:assumed-role/reader/work is not authorized to perform"
        )


async def test_a_session_policy_restricts_the_role():
    async with calling() as callers:
        own = {"Version": "2012-10-17", "Statement": {**POLICY, "Effect": "Allow"}}
        tags = {"Tags.member.1.Key": "tenant", "Tags.member.1.Value": "ann"}
        assumed = await callers.sts("ann", "AssumeRole", **ASSUME, Policy=json.dumps(own), **tags)
        use(callers, "session", assumed)
        assert (await callers.call("session", "GetItem", GET)).status == 200
        refused = await callers.call("session", "GetItem", {**GET, "Key": key("bob", "1")})
        assert "because no session policy allows" in refused.message
        # The session policy allows what the role does not.
        put = {"TableName": "Notes", "Item": key("ann", "1")}
        assert "no identity-based policy" in (await callers.call("session", "PutItem", put)).message


async def test_a_role_trusts_its_callers():
    async with calling() as callers:
        root = f"arn:aws:iam::{ACCOUNT}:root"
        denied = await callers.sts("root", "AssumeRole", **ASSUME)
        assert (denied.status, denied.fields["Code"]) == (403, "AccessDenied")
        missing = await callers.sts("ann", "AssumeRole", **ASSUME | {"RoleArn": f"{READER}2"})
        assert (
            missing.fields["Message"].replace("reader2", "reader").replace("user/ann", "user/root")
            == denied.fields["Message"]
        )
        reader = callers.roles["reader"]
        # A trust policy that names the account leaves the decision to policies of users.
        callers.roles["reader"] = Role("reader", trusting(root), reader.policies)
        assert (await callers.sts("root", "AssumeRole", **ASSUME)).status == 200
        assert (await callers.sts("ann", "AssumeRole", **ASSUME)).status == 403
        condition = {"StringEquals": {"sts:ExternalId": "7"}}
        callers.roles["reader"] = Role("reader", trusting(root, Condition=condition), ())
        assert (await callers.sts("root", "AssumeRole", **ASSUME)).status == 403
        assert (await callers.sts("root", "AssumeRole", **ASSUME, ExternalId="7")).status == 200
        # Tags need an action of their own.
        callers.roles["reader"] = Role("reader", trusting(root, action="sts:AssumeRole"), ())
        tags = {"Tags.member.1.Key": "tenant", "Tags.member.1.Value": "ann"}
        assert (await callers.sts("ann", "AssumeRole", **ASSUME, **tags)).status == 403
        callers.add("root", policy({}), policy({"Effect": "Deny", "Action": "sts:*"}))
        assert (await callers.sts("root", "AssumeRole", **ASSUME)).status == 403


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"DurationSeconds": "899"}, "ValidationError"),
        ({"DurationSeconds": "7201"}, "ValidationError"),
        ({"DurationSeconds": "soon"}, "ValidationError"),
        ({"RoleSessionName": "a"}, "ValidationError"),
        ({"RoleArn": "reader"}, "ValidationError"),
        ({"Policy": "{}"}, "MalformedPolicyDocument"),
        ({"Policy": " " * 2_049}, "ValidationError"),
        ({"PolicyArns.member.1.arn": "x"}, "ValidationError"),
        ({"Tags.member.1.Key": "x"}, "ValidationError"),
        (
            {
                f"Tags.member.{number}.{member}": str(number) * 100
                for number in range(1, 51)
                for member in ("Key", "Value")
            },
            "PackedPolicyTooLarge",
        ),
    ],
)
async def test_requests_are_checked(fields: dict[str, str], code: str):
    async with calling() as callers:
        refused = await callers.sts("ann", "AssumeRole", **ASSUME | fields)
        assert (refused.status, refused.fields["Code"]) == (400, code)


@pytest.mark.parametrize("action", ["AssumeRoleWithWebIdentity", "Nothing", ""])
async def test_other_operations_are_refused(action: str):
    async with calling() as callers:
        refused = await callers.sts("ann", action)
        assert (refused.status, refused.fields["Code"]) == (400, "InvalidAction")


async def test_a_session_token_of_a_user_has_the_permissions_of_the_user():
    async with calling() as callers:
        use(callers, "session", await callers.sts("root", "GetSessionToken"))
        assert (await callers.call("session", "GetItem", GET)).status == 200
        refused = await callers.sts("session", "GetSessionToken")
        assert (refused.status, refused.fields["Code"]) == (403, "AccessDenied")
        callers.add("root")
        callers.registry.replace(callers.registry.identities)
        assert (await callers.call("session", "GetItem", GET)).error == DENIED


async def test_a_session_has_the_user_at_its_start():
    async with calling() as callers:
        callers.roles["second"] = Role("second", trusting(READER), ())
        use(callers, "session", await callers.sts("ann", "AssumeRole", **ASSUME))
        chained = {**ASSUME, "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/second"}
        answer = await callers.sts("session", "AssumeRole", **chained)
        assert answer.status == 200, answer
        fields = answer.fields
        session = callers.tokens.session(fields["SessionToken"], fields["AccessKeyId"], 0)
        assert (session.role, session.user) == ("second", "ann")


async def test_wrong_tokens_are_refused():
    async with calling() as callers:
        assumed = await callers.sts("ann", "AssumeRole", **ASSUME, DurationSeconds="900")
        use(callers, "session", assumed)
        fields = assumed.fields
        good = AccessKey(fields["AccessKeyId"], fields["SecretAccessKey"])
        token = fields["SessionToken"]
        wrong = {
            "none": (good, None),
            "changed": (good, token[:-6] + "AAAAA="),
            "garbage": (good, "x"),
            "of another key": (AccessKey("ASIAOTHER", good.secret_access_key), token),
        }
        for name, (of_caller, given) in wrong.items():
            callers.keep(name, of_caller, given)
            assert (await callers.call(name, "GetItem", GET)).error == (
                "UnrecognizedClientException"
            )
            refused = await callers.sts(name, "GetCallerIdentity")
            assert (refused.status, refused.fields["Code"]) == (403, "InvalidClientTokenId")
        callers.keep("secret", AccessKey(good.access_key_id, "other"), token)
        assert (await callers.call("secret", "GetItem", GET)).error == "InvalidSignatureException"


async def test_a_session_ends_with_its_role():
    async with calling() as callers:
        use(callers, "session", await callers.sts("ann", "AssumeRole", **ASSUME))
        role = callers.roles.pop("reader")
        refused = await callers.call("session", "GetItem", GET)
        assert refused.error == "UnrecognizedClientException"
        callers.roles["reader"] = role
        assert (await callers.call("session", "GetItem", GET)).status == 200


async def test_sessions_expire():
    async with calling() as callers:
        token, secret = callers.tokens.issue(
            Session("ASIAOLD", 1_000_000_000, role="reader", name="work")
        )
        callers.keep("old", AccessKey("ASIAOLD", secret), token)
        assert (await callers.call("old", "GetItem", GET)).error == "ExpiredTokenException"
        refused = await callers.sts("old", "GetCallerIdentity")
        assert (refused.status, refused.fields["Code"]) == (403, "ExpiredToken")


async def test_tag_keys_are_not_case_sensitive():
    async with calling() as callers:
        reads = policy(
            {
                "Action": "dynamodb:GetItem",
                "Condition": {"StringEquals": {"aws:PrincipalTag/tenant": "ann"}},
            }
        )
        trust = trusting(f"arn:aws:iam::{ACCOUNT}:user/ann")
        callers.roles["reader"] = Role("reader", trust, (reads,), {"Tenant": "bob"}, 7_200)
        tags = {"Tags.member.1.Key": "tenant", "Tags.member.1.Value": "ann"}
        use(callers, "session", await callers.sts("ann", "AssumeRole", **ASSUME, **tags))
        # The session's tag replaces the role's.
        assert (await callers.call("session", "GetItem", GET)).status == 200
        for second in ("tenant", "Tenant"):
            twice = {**tags, "Tags.member.2.Key": second, "Tags.member.2.Value": "bob"}
            refused = await callers.sts("ann", "AssumeRole", **ASSUME, **twice)
            assert (refused.status, refused.fields["Code"], refused.fields["Message"]) == (
                400,
                "InvalidParameterValue",
                "Duplicate tag keys found. Please note that Tag keys are case insensitive.",
            )
