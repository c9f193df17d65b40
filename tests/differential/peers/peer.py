"""A client of one of the two servers, which puts the server's region into the ARNs of requests."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from tests.differential.requests.request import Request
from tests.support.clients.clients import WireClient
from tests.support.tables.tables import unique_name

# In the body of a request, the placeholder for the prefix of the server's ARNs.
ARN_PREFIX = "arn:aws:dynamodb:REGION:ACCOUNT:"
_PROBE = unique_name("ArnProbe")
_TABLE_CHANGES = frozenset(("CreateTable", "UpdateTable", "DeleteTable"))


class Answer(NamedTuple):
    """The status and the decoded body, or the text of a body that is not JSON."""

    status: int
    body: Any


class Peer:
    """A server and one keep-alive connection to it."""

    def __init__(self, endpoint: str) -> None:
        self._client = WireClient(endpoint)
        self._arn_prefix = self._find_arn_prefix()

    def _find_arn_prefix(self) -> str:
        described = self._client(
            "CreateTable",
            {
                "TableName": _PROBE,
                "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
        self._wait_until_settled(_PROBE)
        self._client("DeleteTable", {"TableName": _PROBE})
        self._wait_until_settled(_PROBE)
        arn: str = described["TableDescription"]["TableArn"]
        return arn.partition("table/")[0]

    def send(self, request: Request) -> Answer:
        """Send a request and return its answer.

        After a change of a table, wait until it is complete.
        """
        body = request.body.replace(ARN_PREFIX, self._arn_prefix)
        answer = self._client.send(request.operation, body)
        if answer.status == 200 and request.operation in _TABLE_CHANGES:
            (described,) = answer.json.values()
            self._wait_until_settled(described["TableName"])
        try:
            return Answer(answer.status, msgspec.json.decode(answer.body) if answer.body else {})
        except msgspec.DecodeError:
            return Answer(answer.status, answer.body.decode(errors="replace"))

    def _wait_until_settled(self, table: str) -> None:
        """Poll until the table is ACTIVE or deleted, because transitions have no fixed duration."""
        while True:
            answer = self._client.send("DescribeTable", {"TableName": table})
            if answer.status != 200 or answer.json["Table"]["TableStatus"] == "ACTIVE":
                return

    def close(self) -> None:
        """Close the connection."""
        self._client.close()
