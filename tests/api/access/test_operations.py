"""Each operation asks for its actions: a policy that allows just them, and one that denies one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dynactor.api.registry import OPERATIONS
from dynactor.model.access.action_table import ACTIONS
from tests.support.access.callers import DENIED, Callers
from tests.support.access.deciding import policy
from tests.support.access.expected_actions import EXPECTED, PREFIX, Expected
from tests.support.databases.databases import running_database

CREATE = {
    "AttributeDefinitions": [
        {"AttributeName": name, "AttributeType": "S"} for name in ("Artist", "Song", "Genre")
    ],
    "KeySchema": [
        {"AttributeName": "Artist", "KeyType": "HASH"},
        {"AttributeName": "Song", "KeyType": "RANGE"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "ByGenre",
            "KeySchema": [{"AttributeName": "Genre", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "BillingMode": "PAY_PER_REQUEST",
}


@asynccontextmanager
async def calling() -> AsyncIterator[Callers]:
    async with running_database() as database:
        callers = Callers(database)
        callers.add("root", policy({}))
        for name in ("Music", "Songs"):
            created = await callers.call("root", "CreateTable", {"TableName": name, **CREATE})
            assert created.status == 200
        yield callers


def test_every_operation_is_tested():
    assert set(EXPECTED) == set(OPERATIONS)


def test_every_action_of_a_rule_is_known_with_its_resource():
    kinds = {"table": "table", "global-table": "global-table", "*": ""}
    for expected in EXPECTED.values():
        for action, resource in expected.actions:
            if action.startswith("s3:"):
                continue
            parts = resource.split("/")
            kind = parts[2] if len(parts) > 2 else kinds[parts[0]]
            resources = ACTIONS[action].resources
            # ListTables and others have no resource in the reference.
            assert kind in resources or not resources, (action, resource)


def arn(resource: str) -> str:
    if resource == "*" or resource.startswith("arn:"):
        return resource
    if resource.startswith("global-table/"):
        return f"arn:aws:dynamodb::000000000000:{resource}"
    return PREFIX + resource


def full(action: str) -> str:
    return action if ":" in action else f"dynamodb:{action}"


def statements(actions: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"Action": full(action), "Resource": arn(resource)} for action, resource in actions]


# Each request is sent several times. Only a missing permission counts.
@pytest.mark.parametrize("operation", sorted(OPERATIONS))
async def test_an_operation_needs_just_its_actions(operation: str):
    async with calling() as callers:
        await check_operation(callers, operation)


async def check_operation(callers: Callers, operation: str):
    request, actions = EXPECTED[operation]
    for missing in range(len(actions)):
        rest = statements(actions[:missing] + actions[missing + 1 :])
        callers.add("app", policy(*rest, {"Action": "sqs:*"}))
        reply = await callers.call("app", operation, request)
        assert (reply.status, reply.error) == (400, DENIED)
        action, resource = actions[missing]
        assert reply.message == (
            "User: arn:aws:iam::000000000000:user/app is not authorized to perform: "
            f"{full(action)} on resource: {arn(resource)} because no identity-based policy "
            f"allows the {full(action)} action"
        )
    for action, resource in actions:
        denied = {"Effect": "Deny", "Action": full(action), "Resource": arn(resource)}
        callers.add("app", policy({}, denied))
        reply = await callers.call("app", operation, request)
        assert reply.message.endswith(
            f"{arn(resource)} with an explicit deny in an identity-based policy"
        )
    callers.add("app", policy(*statements(actions)))
    assert (await callers.call("app", operation, request)).error != DENIED


async def test_a_missing_table_is_refused_like_an_existing_one():
    async with calling() as callers:
        callers.add("app", policy({"Resource": f"{PREFIX}table/Songs"}))
        refusals = [
            (await callers.call("app", "GetItem", {"TableName": name, "Key": {"a": {"S": "a"}}}))
            for name in ("Music", "Nowhere")
        ]
        assert [refused.error for refused in refusals] == [DENIED, DENIED]
        assert refusals[0].message.replace("Music", "Nowhere") == refusals[1].message


async def test_the_arn_of_another_region_names_the_same_table():
    async with calling() as callers:
        callers.add("app", policy({"Resource": f"{PREFIX}table/Songs"}))
        for given in ("arn:aws:dynamodb:eu-west-1:000000000000:table/{}", "{}"):
            for name, error in (("Music", DENIED), ("Songs", "")):
                request = {"TableName": given.format(name)}
                assert (await callers.call("app", "DescribeTable", request)).error == error


def test_a_request_and_its_actions_are_written_once():
    assert all(isinstance(expected, Expected) for expected in EXPECTED.values())
