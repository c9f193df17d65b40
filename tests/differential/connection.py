"""A keep-alive connection to a server, sending bodies as they are."""

from __future__ import annotations

import json
from http.client import HTTPConnection, HTTPException
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.differential.request import Request

_TIMEOUT_SECONDS = 10
# Open servers and DynamoDB Local accept any credentials, but want some.
_HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "Authorization": (
        "AWS4-HMAC-SHA256 Credential=fake/20260101/us-east-1/dynamodb/aws4_request, "
        "SignedHeaders=host, Signature=abc"
    ),
    "X-Amz-Date": "20260101T000000Z",
}


class Answer(NamedTuple):
    """Status and body; a body that is not JSON is its text."""

    status: int
    body: Any


class Connection:
    """One connection; requests go one after another."""

    def __init__(self, endpoint: str) -> None:
        parts = urlsplit(endpoint)
        assert parts.hostname is not None
        self._connection = HTTPConnection(
            parts.hostname, parts.port or 80, timeout=_TIMEOUT_SECONDS
        )

    def send(self, request: Request) -> Answer:
        """Send a request and wait for its answer."""
        headers = _HEADERS | {"X-Amz-Target": f"DynamoDB_20120810.{request.operation}"}
        try:
            self._connection.request("POST", "/", request.body.encode(), headers)
            response = self._connection.getresponse()
            text = response.read().decode()
        except (TimeoutError, ConnectionError, HTTPException) as error:
            # No answer is an answer to compare, too; the next request opens a new connection.
            self._connection.close()
            return Answer(0, f"no answer: {type(error).__name__}")
        try:
            return Answer(response.status, json.loads(text))
        except ValueError:
            return Answer(response.status, text)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
