"""Tenants share a table, and policies with leading keys keep them apart.

By default the test sends a few hundred requests. ``--rounds 100`` sends 100,000.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.support.access.callers import DENIED, Callers
from tests.support.access.deciding import policy
from tests.support.access.tenants import (
    ARN,
    CREATE,
    IDS,
    POLICY,
    SECRET,
    TENANTS,
    TenantRequests,
    item,
)
from tests.support.access.tenants_over_http import check
from tests.support.databases.databases import running_database

FEW = 200
PER_ROUND = 1_000


async def test_a_tenant_reaches_no_item_of_another(rounds: int | None):
    random = Random(23)
    async with running_database(copy_messages=False) as database:
        callers = Callers(database)
        callers.add("root", policy({}))
        for number, tenant in enumerate(TENANTS):
            callers.add(f"user{number}", policy(POLICY), tags={"tenant": tenant})
        assert (await callers.call("root", "CreateTable", CREATE)).status == 200
        for tenant in TENANTS:
            for note_id in IDS:
                request = {"TableName": "Notes", "Item": item(tenant, note_id)}
                await callers.call("root", "PutItem", request)
        outcomes: Counter[tuple[str, bool]] = Counter()
        for _ in range(FEW if rounds is None else rounds * PER_ROUND):
            number = random.randrange(len(TENANTS))
            tenant = TENANTS[number]
            drawn = TenantRequests(tenant, random).draw()
            before = None if rounds is not None else await items(callers)
            reply = await callers.call(f"user{number}", drawn.operation, drawn.request)
            is_allowed = check(tenant, drawn, reply)
            assert before is None or is_allowed or await items(callers) == before
            outcomes[drawn.operation, is_allowed] += 1
        for one in await items(callers):
            assert one.get("text", one["tenant"])["S"].removeprefix(SECRET) == one["tenant"]["S"]
        # Both outcomes were met in every operation on items.
        for operation in ("GetItem", "Query", "TransactWriteItems", "ExecuteStatement"):
            assert outcomes[operation, True] > 2
            assert outcomes[operation, False] > 2


async def items(callers: Callers) -> list[Any]:
    found: list[Any] = (await callers.call("root", "Scan", {"TableName": "Notes"})).body["Items"]
    return found


async def test_a_scan_passes_leading_keys_if_the_policy_allows_scans():
    """ForAllValues is true without values, as on AWS, so a tenant must not have Scan."""
    async with running_database() as database:
        callers = Callers(database)
        callers.add("root", policy({}))
        await callers.call("root", "CreateTable", CREATE)
        without_null = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": "ann"}}
        actions = ["dynamodb:Scan", "dynamodb:PartiQLSelect"]
        callers.add("ann", policy({"Action": actions, "Condition": without_null}))
        statement = {"Statement": "SELECT * FROM Notes"}
        for operation, request in (
            ("Scan", {"TableName": "Notes"}),
            ("ExecuteStatement", statement),
        ):
            assert (await callers.call("ann", operation, request)).status == 200
        no_scans = {
            "Effect": "Deny",
            "Action": "dynamodb:PartiQLSelect",
            "Condition": {"Bool": {"dynamodb:FullTableScan": "true"}},
        }
        callers.add("ann", policy({"Action": actions, "Condition": without_null}, no_scans))
        assert (await callers.call("ann", "ExecuteStatement", statement)).error == DENIED


async def test_stream_operations_have_no_leading_keys():
    """A policy that allows stream operations shows a tenant the changes of all tenants."""
    async with running_database() as database:
        callers = Callers(database)
        callers.add("root", policy({}))
        await callers.call("root", "CreateTable", CREATE)
        streams = (await callers.call("root", "ListStreams", {})).body["Streams"]
        request = {"StreamArn": streams[0]["StreamArn"]}
        callers.add("ann", policy(POLICY), tags={"tenant": "ann"})
        assert (await callers.call("ann", "DescribeStream", request)).error == DENIED
        keys = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": "ann"}}
        allowing = {"Action": "dynamodb:*", "Resource": f"{ARN}/stream/*", "Condition": keys}
        callers.add("ann", policy(POLICY, allowing), tags={"tenant": "ann"})
        assert (await callers.call("ann", "DescribeStream", request)).status == 200


@pytest.mark.parametrize("own", ["tenant IN ['ann', 'eve']", "(tenant = 'ann' OR tenant = 'ann')"])
async def test_a_check_in_a_transaction_returns_no_item_of_another_tenant(own: str):
    """The keys of the policy are those of the item that the check reads."""
    async with running_database() as database:
        callers = Callers(database)
        callers.add("root", policy({}))
        callers.add("ann", policy(POLICY), tags={"tenant": "ann"})
        await callers.call("root", "CreateTable", CREATE)
        await callers.call("root", "PutItem", {"TableName": "Notes", "Item": item("bob", "1")})
        checked = f"{own} AND tenant = 'bob' AND id = '1' AND day = 'sun'"
        check = {
            "Statement": f"EXISTS(SELECT * FROM Notes WHERE {checked})",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        reply = await callers.call("ann", "ExecuteTransaction", {"TransactStatements": [check]})
        assert reply.error == DENIED
