"""Callers with policies, who sign their requests to a database in the test's own process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from dynactor.actors.catalog.database import Database
from dynactor.api.access.access_control import AccessControl
from dynactor.api.access.sender import Client
from dynactor.api.http.protocol import Answer, Protocol, Request
from dynactor.api.http.signature import AccessKey, Signatures, authorization
from dynactor.api.registry import NOT_IMPLEMENTED, OPERATIONS
from dynactor.model.access.decision import Grants
from dynactor.model.access.policy import Policy
from dynactor.model.access.principal import user
from tests.support.clients.clients import JSON_1_0
from tests.support.clients.wire import decode, encode

ACCOUNT = "000000000000"
DENIED = "AccessDeniedException"


class Reply(NamedTuple):
    """The status and the body of an answer."""

    status: int
    body: dict[str, Any]

    @property
    def error(self) -> str:
        """The error's name; empty for success."""
        return str(self.body.get("__type", "")).rpartition("#")[2]

    @property
    def message(self) -> str:
        """The error's message."""
        return str(self.body.get("message", self.body.get("Message", "")))


class Callers:
    """A server in front of a database, and users with policies."""

    def __init__(self, database: Database) -> None:
        self._keys: dict[str, AccessKey] = {}
        self._grants: dict[str, Grants] = {}
        self.access_control = AccessControl(self._grants)
        self._signatures = Signatures(())
        self._protocol = Protocol(
            database,
            OPERATIONS.values(),
            NOT_IMPLEMENTED,
            self._signatures,
            access_control=self.access_control,
        )

    def add(self, name: str, *policies: Policy, tags: Mapping[str, str] | None = None) -> None:
        """Add a user, or give a user other policies."""
        key = AccessKey(f"AKIA{name}", f"secret of {name}")
        self._keys[name] = key
        self._grants[key.access_key_id] = Grants(user(name, ACCOUNT, tags or {}), policies)
        self._signatures.replace(tuple(self._keys.values()))

    async def call(
        self,
        name: str,
        operation: str,
        request: Any,
        *,
        headers: Sequence[tuple[str, str]] = (),
        client: Client = Client("127.0.0.1"),  # noqa: B008 - it is frozen
    ) -> Reply:
        """Run an operation as a user."""
        service = "DynamoDB" if operation not in STREAM_OPERATIONS else "DynamoDBStreams"
        target = f"{service}_20120810.{operation}"
        body = encode(request)
        signed = {"host": "localhost", "x-amz-target": target, **dict(headers)}
        signed |= authorization(self._keys[name], "us-east-1", signed, body, datetime.now(UTC))
        answer = self._protocol.answer(
            Request(
                target,
                JSON_1_0,
                signed["authorization"],
                "",
                "localhost",
                "",
                "",
                body,
                headers=signed,
                client=client,
            )
        )
        if not isinstance(answer, Answer):
            answer = await answer
        return Reply(answer.status, decode(answer.body) if answer.body else {})


STREAM_OPERATIONS = frozenset({"DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"})
