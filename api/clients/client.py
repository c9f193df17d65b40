"""A client of DynamoDB's API, for commands that use a running server.

The client signs with the key in the environment, like AWS's own tools. Without a key it sends a
placeholder, which is enough for a server that accepts any signature.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import msgspec
from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientSession,
    NonHttpUrlClientError,
    TCPConnector,
)

from dynactor.api.clients.caller_scope import caller_scope
from dynactor.api.clients.reach import CannotCall, no_address, not_reached
from dynactor.api.clients.trusted_authorities import tls_context
from dynactor.api.http.protocol import JSON_1_0
from dynactor.api.keys.access_keys import own_access_key
from dynactor.api.keys.signature import authorization
from dynactor.api.requests import maintenance_header
from dynactor.api.requests.operation import DYNAMODB

_UNSIGNED: Final = (
    "AWS4-HMAC-SHA256 Credential={}/20260101/{}/dynamodb/aws4_request, SignedHeaders=host, "
    "Signature=none"
)
# Types of errors after which the same request may succeed.
TRANSIENT: Final = frozenset(
    {
        "InternalServerError",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "ThrottlingException",
    }
)
_ASKS_TO_SIGN: Final = frozenset(
    {
        "IncompleteSignatureException",
        "InvalidSignatureException",
        "MissingAuthenticationTokenException",
        "UnrecognizedClientException",
    }
)
# These operations succeed with an empty body.
_UNANSWERED: Final = frozenset({"TagResource", "UntagResource"})
_ATTEMPTS: Final = 8
_FIRST_PAUSE_SECONDS: Final = 0.05

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class RequestFailed(Exception):
    """The server's error: its type without the namespace, and its message."""

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(f"{error_type}: {message}")
        self.error_type = error_type
        self.message = message


class Client:
    """Calls operations at one endpoint."""

    def __init__(
        self,
        endpoint: str,
        session: ClientSession,
        region: str | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._endpoint = endpoint
        self._session = session
        self._access_key = own_access_key(environment)
        self._session_token = environment.get("AWS_SESSION_TOKEN")
        self._scope = caller_scope(region, environment)

    async def call(
        self, operation: str, request: dict[str, Any], service: str = DYNAMODB
    ) -> dict[str, Any]:
        """The answer to a request; retries transient errors, such as throttling.

        Raises:
            RequestFailed: the server answered with an error.
            CannotCall: the server did not answer.
        """
        pause_seconds = _FIRST_PAUSE_SECONDS
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._call_once(operation, request, service)
            except RequestFailed as error:
                if error.error_type not in TRANSIENT:
                    raise
            await anyio.sleep(pause_seconds)
            pause_seconds *= 2
        return await self._call_once(operation, request, service)

    async def _call_once(
        self, operation: str, request: dict[str, Any], service: str
    ) -> dict[str, Any]:
        body = _encode(request)
        with _reaching(self._endpoint):
            async with self._session.post(
                self._endpoint,
                data=body,
                headers=self._headers(f"{service}.{operation}", body),
                allow_redirects=False,
            ) as response:
                status, body = response.status, await response.read()
        try:
            answer = {} if operation in _UNANSWERED and not body else _decode(body)
        except msgspec.DecodeError:
            raise CannotCall(
                f"{self._endpoint} is not DynamoDB: invalid answer with HTTP status {status}"
            ) from None
        if status != 200:  # noqa: PLR2004 - HTTP's
            error_type = str(answer.get("__type", status)).rpartition("#")[2]
            if self._access_key is None and error_type in _ASKS_TO_SIGN:
                raise CannotCall(
                    f"{self._endpoint} needs signed requests: set AWS_ACCESS_KEY_ID and "
                    "AWS_SECRET_ACCESS_KEY"
                )
            raise RequestFailed(error_type, answer.get("message", answer.get("Message", "")))
        return answer

    def _headers(self, target: str, body: bytes) -> dict[str, str]:
        headers = {"content-type": JSON_1_0, "x-amz-target": target, **maintenance_header.HEADER}
        if self._access_key is None:
            scope = self._scope
            unsigned = _UNSIGNED.format(scope.access_key_id, scope.region)
            return headers | {"authorization": unsigned}
        # The Host header has no user name and no password.
        headers["host"] = urlsplit(self._endpoint).netloc.rpartition("@")[2]
        if self._session_token:
            headers["x-amz-security-token"] = self._session_token
        now = datetime.now(UTC)
        return headers | authorization(self._access_key, self._scope.region, headers, body, now)


@contextmanager
def _reaching(endpoint: str) -> Iterator[None]:
    """Convert errors of the connection within the context.

    Raises:
        CannotCall: the server is unreachable or does not answer.
    """
    try:
        yield
    except (ValueError, NonHttpUrlClientError):
        raise no_address(endpoint) from None
    except ClientConnectorError as error:
        raise not_reached(endpoint, error.strerror or str(error)) from None
    except (ClientError, TimeoutError) as error:
        raise CannotCall(f"No answer from {endpoint}: {error}") from None


@asynccontextmanager
async def open_client(
    endpoint: str, region: str | None = None, environment: Mapping[str, str] = os.environ
) -> AsyncIterator[Client]:
    """A client whose connections stay open within the context.

    ``environment`` has the access key and the default region in AWS's variables.
    """
    connector = TCPConnector(ssl=tls_context()) if endpoint.startswith("https:") else None
    async with ClientSession(connector=connector) as session:
        yield Client(endpoint, session, region, environment)
