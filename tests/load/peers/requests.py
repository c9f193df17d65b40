"""Requests to any of the servers, each on a new connection, because moto closes connections."""

from __future__ import annotations

from typing import Any

from tests.load.peers.servers import Peer
from tests.support.clients.wire import Answer, Connection


class Refused(Exception):
    """A server refused a request."""

    def __init__(self, operation: str, answer: Answer) -> None:
        message = answer.body.get("message", answer.body.get("Message", ""))
        super().__init__(f"{operation} is refused: {answer.error}: {message}")


async def ask(
    peer: Peer, operation: str, body: dict[str, Any], service: str = "DynamoDB"
) -> Answer:
    """The answer to a request."""
    host, _, port = peer.endpoint.removeprefix("http://").partition(":")
    connection = await Connection.open(host, int(port))
    try:
        return await connection.call(operation, body, service)
    finally:
        await connection.close()


async def call(
    peer: Peer, operation: str, service: str = "DynamoDB", **body: Any
) -> dict[str, Any]:
    """The answer to a request that has to succeed.

    Raises:
        Refused: the server refused the request.
    """
    answer = await ask(peer, operation, body, service)
    if answer.status != 200:
        raise Refused(operation, answer)
    return answer.body


async def make_table(peer: Peer, **definition: Any) -> None:
    """Create a table, and wait until it is active.

    Raises:
        Refused: see ``call``.
    """
    await call(peer, "CreateTable", **definition)
    table: dict[str, Any] = {}
    while table.get("TableStatus") != "ACTIVE":
        answer = await call(peer, "DescribeTable", TableName=definition["TableName"])
        table = answer["Table"]
