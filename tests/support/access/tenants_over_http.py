"""Tenants who share a table of a server, and the requests that they sign and send to it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, Final
from urllib.parse import urlsplit

from dynactor.api.keys.signature import AccessKey, authorization
from tests.support.access.callers import DENIED, Reply
from tests.support.access.tenants import (
    CREATE,
    IDS,
    POLICY,
    SECRET,
    TENANTS,
    TenantRequest,
    TenantRequests,
    item,
)
from tests.support.clients.wire import Connection, decode, encode

_CONNECTIONS: Final = 6
# The tags in a credentials file have no blanks around them.
_TENANTS: Final = tuple(tenant for tenant in TENANTS if tenant == tenant.strip())
_ROOT: Final = AccessKey("AKIDROOT", "secret of root")


def check(tenant: str, drawn: TenantRequest, reply: Reply) -> bool:
    """Check that a request reached no item of another tenant; return whether it was allowed."""
    is_allowed = not drawn.is_of_all and drawn.tenants == {tenant}
    assert (reply.error != DENIED) is is_allowed, (tenant, drawn, reply)
    text = json.dumps(reply.body, ensure_ascii=False)
    seen = [other for other in TENANTS if f'"{SECRET}{other}"' in text]
    assert set(seen) <= {tenant}, (tenant, drawn, reply)
    return is_allowed


def access_options(directory: Path) -> tuple[str, ...]:
    """The options of a server whose users are the tenants, as in the guide; makes their files."""
    policies, keys = directory / "policies", directory / "keys"
    policies.mkdir()
    for name, statement in (("tenant", POLICY), ("root", {"Action": "*", "Resource": "*"})):
        document = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", **statement}}
        (policies / f"{name}.json").write_text(json.dumps(document))
    profiles = [("root", _ROOT, "root", "")]
    for number, tenant in enumerate(_TENANTS):
        profiles.append((f"user{number}", _key(number), "tenant", f"tags = tenant={tenant}\n"))
    keys.touch(0o600)
    keys.write_text(
        "".join(
            f"[{name}]\naws_access_key_id = {key.access_key_id}\n"
            f"aws_secret_access_key = {key.secret_access_key}\npolicies = {policy}\n{tags}"
            for name, key, policy, tags in profiles
        )
    )
    return ("--credentials-file", str(keys), "--policy-dir", str(policies))


async def send_requests(endpoint: str, count: int, seed: int = 23) -> Counter[tuple[str, bool]]:
    """Send drawn requests of all tenants, and check each; count them by operation and decision."""
    outcomes: Counter[tuple[str, bool]] = Counter()

    async def send(number: int) -> None:
        random = Random(seed * _CONNECTIONS + number)
        async with _client(endpoint) as client:
            for _ in range(count // _CONNECTIONS):
                user = random.randrange(len(_TENANTS))
                drawn = TenantRequests(_TENANTS[user], random).draw()
                reply = await client.call(_key(user), drawn.operation, drawn.request)
                outcomes[drawn.operation, check(_TENANTS[user], drawn, reply)] += 1

    async with _client(endpoint) as root:
        await _fill(root)
    async with asyncio.TaskGroup() as tasks:
        for number in range(_CONNECTIONS):
            tasks.create_task(send(number))
    # The server has closed the first connection if it was idle for long.
    async with _client(endpoint) as root:
        found = (await root.call(_ROOT, "Scan", {"TableName": CREATE["TableName"]})).body["Items"]
    for one in found:
        assert one.get("text", one["tenant"])["S"].removeprefix(SECRET) == one["tenant"]["S"]
    return outcomes


async def _fill(root: _Client) -> None:
    assert (await root.call(_ROOT, "CreateTable", CREATE)).status == 200
    described: dict[str, Any] = {}
    while described.get("Table", {}).get("TableStatus") != "ACTIVE":
        described = (await root.call(_ROOT, "DescribeTable", {"TableName": "Notes"})).body
    for tenant in _TENANTS:
        for note_id in IDS:
            put = {"TableName": CREATE["TableName"], "Item": item(tenant, note_id)}
            assert (await root.call(_ROOT, "PutItem", put)).status == 200


def _key(number: int) -> AccessKey:
    return AccessKey(f"AKIDUSER{number}", f"secret of user {number}")


class _Client:
    """A connection that signs its requests."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def call(self, key: AccessKey, operation: str, request: Any) -> Reply:
        service = "DynamoDBStreams" if operation == "ListStreams" else "DynamoDB"
        body = encode(request)
        headers = {
            "host": "localhost",
            "content-type": "application/x-amz-json-1.0",
            "x-amz-target": f"{service}_20120810.{operation}",
        }
        headers |= authorization(key, "us-east-1", headers, body, datetime.now(UTC))
        lines = "".join(f"{name}: {text}\r\n" for name, text in headers.items())
        head = f"POST / HTTP/1.1\r\n{lines}content-length: {len(body)}\r\n\r\n"
        answer = await self._connection.send(head.encode() + body)
        return Reply(answer.status, decode(answer.body) if answer.body else {})


@asynccontextmanager
async def _client(endpoint: str) -> AsyncIterator[_Client]:
    parts = urlsplit(endpoint)
    assert parts.hostname
    assert parts.port
    connection = await Connection.open(parts.hostname, parts.port)
    try:
        yield _Client(connection)
    finally:
        await connection.close()
