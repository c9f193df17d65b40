"""Measures the cost of policies for one request: python -m tests.load.security.access_costs.

The policy has ten statements, with leading keys, attributes and a denial.
"""

from __future__ import annotations

import asyncio
from time import process_time
from timeit import Timer
from typing import Any

import msgspec

from dynactor.actors.database.database import Database
from dynactor.api.access.access_control import AccessControl
from dynactor.api.access.identities import Identities, IdentityRegistry
from dynactor.api.access.sender import Client
from dynactor.api.http.protocol import Request
from dynactor.api.keys.session_tokens import SessionTokens
from dynactor.api.registry import OPERATIONS
from dynactor.api.requests.call import Call
from dynactor.model.access.decision import Grants
from dynactor.model.access.principal import user
from tests.support.access.callers import ACCOUNT, Callers
from tests.support.access.deciding import policy
from tests.support.access.tenants import CREATE, POLICY, item, key
from tests.support.databases.databases import running_database

STATEMENTS: list[dict[str, Any]] = [
    *(
        {
            "Action": ["dynamodb:DescribeTable", "dynamodb:List*"],
            "Resource": f"arn:aws:dynamodb:*:*:table/T{number}*",
        }
        for number in range(5)
    ),
    {
        "Effect": "Deny",
        "Action": "dynamodb:Delete*",
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    },
    {
        "Effect": "Deny",
        "Action": "dynamodb:*Item",
        "Condition": {"ForAnyValue:StringLike": {"dynamodb:Attributes": ["secret*", "hidden"]}},
    },
    {
        "Effect": "Deny",
        "Condition": {"NotIpAddress": {"aws:SourceIp": ["10.0.0.0/8", "127.0.0.1"]}},
    },
    {"Action": "dynamodb:Scan", "Condition": {"StringEquals": {"dynamodb:Select": "COUNT"}}},
    POLICY,
]
QUERY = {
    "KeyConditionExpression": "tenant = :t",
    "ExpressionAttributeValues": {":t": {"S": "ann"}},
    "TableName": "Notes",
}
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "GetItem": ("GetItem", {"TableName": "Notes", "Key": key("ann", "1")}),
    "PutItem": ("PutItem", {"TableName": "Notes", "Item": item("ann", "1")}),
    "Query": ("Query", QUERY),
    "BatchGetItem of 100 keys": (
        "BatchGetItem",
        {"RequestItems": {"Notes": {"Keys": [key("ann", str(number)) for number in range(100)]}}},
    ),
}


def microseconds(control: AccessControl, database: Database, operation: str, body: Any) -> float:
    """The processor time of one check."""
    request = msgspec.convert(body, OPERATIONS[operation].input)
    call = Call(database, request, "localhost")
    sender = Request("", "", "", "", "", "", "", b"", client=Client("127.0.0.1"))
    checked = OPERATIONS[operation]
    timer = Timer(lambda: control.check("key", checked, call, sender), timer=process_time)
    return min(timer.repeat(5, 2_000)) / 2_000 * 1e6


async def main() -> None:
    async with running_database() as database:
        callers = Callers(database)
        callers.add("root", policy({}))
        await callers.call("root", "CreateTable", CREATE)
        for title, statements in (("ten statements", STATEMENTS), ("allow everything", [{}])):
            grants = Grants(user("ann", ACCOUNT, {"tenant": "ann"}), [policy(*statements)])
            tokens = SessionTokens(b"key")
            registry = IdentityRegistry(Identities({"key": grants}), tokens, ACCOUNT)
            control = AccessControl(registry)
            for name, (operation, body) in REQUESTS.items():
                print(f"{title}: {name}: {microseconds(control, database, operation, body):.1f} µs")


if __name__ == "__main__":
    asyncio.run(main())
