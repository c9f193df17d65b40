"""Clients for tests: one of plain HTTP that sends any request, and clients of boto3."""

from __future__ import annotations

import http.client
import time
from contextlib import closing
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import boto3
import msgspec
from botocore.config import Config

REGION = "us-east-1"
TARGET_PREFIX = "DynamoDB_20120810."
STREAMS_TARGET_PREFIX = "DynamoDBStreams_20120810."
JSON_1_0 = "application/x-amz-json-1.0"
# Servers close idle connections, and a fixture's client may be idle for minutes between tests.
_IDLE_SECONDS = 20
# By default a server accepts any credentials, but refuses a request without a signature.
AUTHORIZATION = (
    "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=host, Signature=0123456789abcdef"
)
SDK_ARGUMENTS = {
    "region_name": REGION,
    "aws_access_key_id": "test",
    "aws_secret_access_key": "test",
}


class Answer(NamedTuple):
    """The answer to one request."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return msgspec.json.decode(self.body)


class Refusal(NamedTuple):
    """An error: its type without the namespace, and its message."""

    type: str
    message: str | None


class WireClient:
    """Sends any requests, valid or not, over one keep-alive connection."""

    def __init__(self, endpoint: str, target_prefix: str = TARGET_PREFIX) -> None:
        self._target_prefix = target_prefix
        parts = urlsplit(endpoint)
        assert parts.hostname is not None
        self.host = parts.hostname
        self.port = parts.port or 80
        self._connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        self._used_at_seconds = time.monotonic()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def send(
        self,
        operation: str,
        body: bytes | str | dict[str, Any],
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send one request and return its answer. A header with an empty value is omitted."""
        if isinstance(body, dict):
            body = msgspec.json.encode(body)
        defaults = {
            "Content-Type": JSON_1_0,
            "X-Amz-Target": self._target_prefix + operation,
            "Authorization": AUTHORIZATION,
            "X-Amz-Date": "20260101T000000Z",
        }
        merged = {name: text for name, text in (defaults | (headers or {})).items() if text}
        return self.request("POST", "/", body, merged)

    def request(
        self, method: str, path: str, body: bytes | str | None, headers: dict[str, str]
    ) -> Answer:
        """Send one HTTP request."""
        data = body.encode() if isinstance(body, str) else body
        if time.monotonic() - self._used_at_seconds > _IDLE_SECONDS:
            # ``http.client`` opens the connection again for the next request.
            self._connection.close()
        self._used_at_seconds = time.monotonic()
        self._connection.request(method, path, data, headers)
        with closing(self._connection.getresponse()) as response:
            return Answer(response.status, response.headers, response.read())

    def __call__(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """Send one request that must succeed, and return its decoded body."""
        answer = self.send(operation, request)
        assert answer.status == 200, answer.body
        return answer.json if answer.body else {}

    def refused(self, operation: str, request: bytes | str | dict[str, Any]) -> Refusal:
        """Send one request that must be refused with status 400, and return the error."""
        answer = self.send(operation, request)
        assert answer.status == 400, (answer.status, answer.body[:1000])
        return refusal(answer)


def refusal(answer: Answer) -> Refusal:
    """The error in an answer. Some errors have the member ``message``, others ``Message``."""
    error = answer.json
    return Refusal(error["__type"].partition("#")[2], error.get("message", error.get("Message")))


def boto3_client(endpoint: str, service: str = "dynamodb", **config: Any) -> Any:
    """A boto3 client without retries, so that a test sees the answer to each request."""
    settings = Config(retries={"mode": "standard", "total_max_attempts": 1}, **config)
    return boto3.client(service, endpoint_url=endpoint, config=settings, **SDK_ARGUMENTS)


def boto3_resource(endpoint: str) -> Any:
    """A boto3 resource, created as users do."""
    return boto3.resource("dynamodb", endpoint_url=endpoint, **SDK_ARGUMENTS)
