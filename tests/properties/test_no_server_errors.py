"""Ten thousand random bodies: each gets a success or one of DynamoDB's errors, never a 5xx."""

from __future__ import annotations

import asyncio
from random import Random
from urllib.parse import urlsplit

import msgspec
import pytest

from dynactor.model import errors
from tests.differential.requests.schemas import SCHEMAS, Schema
from tests.properties.bodies import bodies
from tests.support.clients.clients import WireClient
from tests.support.clients.wire import Connection, Response, request_bytes
from tests.support.tables.tables import unique_name

SEEDS = range(8)
REQUESTS_PER_SEED = 1250

ERRORS = frozenset(
    name
    for name, error in vars(errors).items()
    if isinstance(error, type)
    and issubclass(error, errors.DynamoDBError)
    and error.http_status < 500
)


def fault(response: Response) -> str:
    """The fault of an answer; empty for an answer that DynamoDB could give."""
    if response.status != 200 and not 400 <= response.status < 500:
        return f"status {response.status}"
    try:
        body = msgspec.json.decode(response.body) if response.body else {}
    except msgspec.DecodeError:
        return "no JSON"
    if response.status == 200:
        return ""
    namespace, _, name = body["__type"].partition("#")
    if not namespace.startswith("com.amazon") or name not in ERRORS:
        return f"no error of DynamoDB: {body['__type']}"
    message = body.get("message", body.get("Message"))
    if not message and name not in ("SerializationException", "UnknownOperationException"):
        return "no message"
    return ""


async def send_all(endpoint: str, seed: int, named: dict[str, Schema]) -> list[str]:
    """Send the bodies of a seed over one connection; returns the faulty answers."""
    parts = urlsplit(endpoint)
    assert parts.hostname is not None
    assert parts.port is not None
    connection = await Connection.open(parts.hostname, parts.port)
    found = []
    made = bodies(Random(seed), named, f"Random{seed}x")
    try:
        for number in range(REQUESTS_PER_SEED):
            operation, body = next(made)
            # Replace characters that an HTTP header cannot have.
            target = operation.encode("ascii", "replace").decode()
            response = await connection.send(request_bytes(target, body))
            told = fault(response)
            if told:
                found.append(
                    f"seed {seed}, request {number}: {told}: {operation} {body[:1000]!r} "
                    f"→ {response.body[:500]!r}"
                )
    finally:
        await connection.close()
    return found


@pytest.mark.differs_from_dynamodb_local("it answers 500 to members of a wrong type")
async def test_random_bodies_never_give_a_server_error(endpoint: str, wire: WireClient) -> None:
    named = {unique_name(): schema for schema in SCHEMAS}
    for name, schema in named.items():
        wire("CreateTable", schema.create_table(name, on_demand=True))
    found = await asyncio.gather(*(send_all(endpoint, seed, named) for seed in SEEDS))
    assert [told for one in found for told in one] == []
    assert wire("ListTables", {})["TableNames"]
