"""A client of DynamoDB's API, for commands that use a running server.

The client signs with the key in the environment, like AWS's own tools. Without a key it sends a
placeholder, which is enough for a server that accepts any signature.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from itertools import count
from typing import Any, Final, Protocol
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
from dynactor.api.clients.reach import CallFailed, CannotCall, no_address, not_reached
from dynactor.api.clients.trusted_authorities import tls_context
from dynactor.api.http.protocol import JSON_1_0
from dynactor.api.keys.access_keys import own_access_key
from dynactor.api.keys.signature import AccessKey, authorization
from dynactor.api.requests import maintenance_header
from dynactor.api.requests.call import DYNAMODB, DYNAMODB_STREAMS
from dynactor.model.back_off import BackOff

# Signs if the environment has no key.
_PLACEHOLDER: Final = "none"
# Types of errors after which the same request may succeed.
_TRANSIENT: Final = frozenset(
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
# AWS's error for a shard that too many readers read, or a stream that is described too often. For
# operations on tables, it is the error of a quota.
_STREAM_LIMIT: Final = "LimitExceededException"
STREAMS_OPERATIONS: Final = frozenset({"DescribeStream", "GetRecords", "GetShardIterator"})

# Number of attempts before a caller gets the error, or a patient caller shows that it waits.
_ATTEMPTS: Final = 8
_FIRST_PAUSE_SECONDS: Final = 0.05
_LONGEST_PAUSE_SECONDS: Final = 10.0
# A request of a broken connection may still run. The pause lets it end before its repetition.
_AWAY_SECONDS: Final = 1.0

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class RequestFailed(CallFailed):
    """The server's error: its type without the namespace, and its message."""

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(f"{error_type}: {message}")
        self.error_type = error_type
        self.message = message


class Endpoint(Protocol):
    """Calls operations of DynamoDB and of DynamoDB Streams."""

    async def call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request; raises ``RequestFailed``, or ``CannotCall`` without any."""


class RetryingEndpoint:
    """Repeats requests after transient errors, such as throttling."""

    def __init__(
        self,
        endpoint: Endpoint,
        pause: Callable[[float], Awaitable[None]] = anyio.sleep,
        say: Callable[[str], None] | None = None,
    ) -> None:
        """With ``say``, which shows a line, requests wait as long as the server is away.

        Such requests must have the same effect when they are repeated.
        """
        self._endpoint = endpoint
        self._pause = pause
        self._say = say
        self._is_waiting = False

    async def call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request; raises as ``Endpoint``."""
        back_off = BackOff(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS)
        for attempt in count(1):
            least_seconds = 0.0
            try:
                answer = await self._endpoint.call(operation, request)
            except CannotCall as error:
                if self._say is None:
                    raise
                reason, least_seconds = str(error), _AWAY_SECONDS
            except RequestFailed as error:
                is_last = self._say is None and attempt == _ATTEMPTS
                if is_last or not _is_transient(operation, error.error_type):
                    raise
                reason = str(error)
            else:
                break
            if self._say and not self._is_waiting and (least_seconds or attempt >= _ATTEMPTS):
                self._is_waiting = True
                self._say(f"waiting: {reason}")
            await self._pause(back_off.pause_seconds(least_seconds))
        if self._say and self._is_waiting:
            self._is_waiting = False
            self._say("continuing")
        return answer


def _is_transient(operation: str, error_type: str) -> bool:
    """Whether the same request may succeed later."""
    if error_type == _STREAM_LIMIT:
        return operation in STREAMS_OPERATIONS
    return error_type in _TRANSIENT


class SigningClient:
    """Calls operations at one host, once."""

    def __init__(
        self,
        endpoint: str,
        session: ClientSession,
        region: str | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._endpoint = endpoint
        self._session = session
        self._scope = scope = caller_scope(region, environment)
        own_key = own_access_key(environment)
        self._has_key = own_key is not None
        self._access_key = own_key or AccessKey(scope.access_key_id, _PLACEHOLDER)
        self._session_token = environment.get("AWS_SESSION_TOKEN")

    async def call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request; raises as ``Endpoint``."""
        service = DYNAMODB_STREAMS if operation in STREAMS_OPERATIONS else DYNAMODB
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
            if not self._has_key and error_type in _ASKS_TO_SIGN:
                raise CannotCall(
                    f"{self._endpoint} needs signed requests: set AWS_ACCESS_KEY_ID and "
                    "AWS_SECRET_ACCESS_KEY"
                )
            raise RequestFailed(error_type, answer.get("message", answer.get("Message", "")))
        return answer

    def _headers(self, target: str, body: bytes) -> dict[str, str]:
        headers = {"content-type": JSON_1_0, "x-amz-target": target, **maintenance_header.HEADER}
        # The Host header has no user name and no password.
        headers["host"] = urlsplit(self._endpoint).netloc.rpartition("@")[2]
        if self._has_key and self._session_token:
            headers["x-amz-security-token"] = self._session_token
        now = datetime.now(UTC)
        return headers | authorization(self._access_key, self._scope.region, headers, body, now)


@contextmanager
def _reaching(endpoint: str) -> Iterator[None]:
    """Convert errors of the connection within the context to ``CannotCall``."""
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
) -> AsyncIterator[SigningClient]:
    """A client whose connections stay open within the context.

    ``environment`` has the access key and the default region in AWS's variables.
    """
    connector = TCPConnector(ssl=tls_context()) if endpoint.startswith("https:") else None
    async with ClientSession(connector=connector) as session:
        yield SigningClient(endpoint, session, region, environment)
