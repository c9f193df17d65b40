"""Callers with policies, who sign their requests to a database in the test's own process."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

from dynactor.actors.database.database import Database
from dynactor.api.access.access_control import AccessControl
from dynactor.api.access.access_explanation import RESPONSE_HEADER
from dynactor.api.access.identities import Identities, IdentityRegistry, Role
from dynactor.api.access.sender import NO_CLIENT, Client
from dynactor.api.http.protocol import Answer, Protocol, Request
from dynactor.api.keys.session_tokens import TOKEN_HEADER, SessionTokens
from dynactor.api.keys.signature import AccessKey, Signatures, authorization
from dynactor.api.registry import NOT_IMPLEMENTED, OPERATIONS
from dynactor.api.sts.token_service import TokenService
from dynactor.model.access.decision import Grants
from dynactor.model.access.policy import Policy
from dynactor.model.access.principal import user
from tests.support.clients.clients import JSON_1_0
from tests.support.clients.wire import decode, encode

ACCOUNT = "000000000000"
DENIED = "AccessDeniedException"


class Reply(NamedTuple):
    """The status and the body of an answer, and the header that explains the decision."""

    status: int
    body: dict[str, Any]
    explanation: str | None = None

    @property
    def error(self) -> str:
        """The error's name; empty for success."""
        return str(self.body.get("__type", "")).rpartition("#")[2]

    @property
    def message(self) -> str:
        """The error's message."""
        return str(self.body.get("message", self.body.get("Message", "")))


class Form(NamedTuple):
    """The status of an answer of STS, and the texts of its elements by name."""

    status: int
    fields: dict[str, str]


_FORM = "application/x-www-form-urlencoded; charset=utf-8"
_ELEMENT = re.compile(r"<(\w+)>([^<]+)</")


class Callers:
    """A server in front of a database, and users with policies."""

    def __init__(self, database: Database) -> None:
        self._keys: dict[str, AccessKey] = {}
        self._grants: dict[str, Grants] = {}
        self.roles: dict[str, Role] = {}
        self.tokens = tokens = SessionTokens(b"key of the tests")
        self.registry = IdentityRegistry(Identities(self._grants, self.roles), tokens, ACCOUNT)
        self._signatures = Signatures((), tokens)
        self._tokens: dict[str, dict[str, str]] = {}
        self._protocol = Protocol(
            database,
            OPERATIONS.values(),
            NOT_IMPLEMENTED,
            self._signatures,
            access_control=AccessControl(self.registry),
            token_service=TokenService(tokens, self.registry, self._signatures, ACCOUNT),
        )

    def check_with(self, access_control: AccessControl) -> None:
        """Check requests in another way."""
        self._protocol.access_control = access_control

    def add(self, name: str, *policies: Policy, tags: Mapping[str, str] | None = None) -> None:
        """Add a user, or give a user other policies."""
        key = AccessKey(f"AKIA{name}", f"secret of {name}")
        self.keep(name, key)
        self._grants[key.access_key_id] = Grants(user(name, ACCOUNT, tags or {}), policies)
        self._signatures.replace(
            tuple(one for one in self._keys.values() if one.access_key_id in self._grants)
        )

    def keep(self, name: str, key: AccessKey, token: str | None = None) -> None:
        """Let a name stand for a key, which may be temporary."""
        self._keys[name] = key
        self._tokens[name] = {} if token is None else {TOKEN_HEADER: token}

    async def sts(self, name: str, action: str, **fields: str) -> Form:
        """Run an operation of STS as a user; return the status and the fields of the answer."""
        body = urlencode({"Action": action, "Version": "2011-06-15", **fields}).encode()
        answer = await self._send(name, "", body, _FORM, service="sts")
        return Form(answer.status, dict(_ELEMENT.findall(answer.body.decode())))

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
        answer = await self._send(
            name, target, encode(request), JSON_1_0, headers=headers, client=client
        )
        body = decode(answer.body) if answer.body else {}
        return Reply(answer.status, body, answer.explanations.get(RESPONSE_HEADER))

    async def _send(
        self,
        name: str,
        target: str,
        body: bytes,
        content_type: str,
        *,
        headers: Sequence[tuple[str, str]] = (),
        client: Client = NO_CLIENT,
        service: str = "dynamodb",
    ) -> Answer:
        signed = {"host": "localhost", **dict(headers)}
        if target:
            signed["x-amz-target"] = target
        signed |= self._tokens[name]
        moment = datetime.now(UTC)
        signed |= authorization(
            self._keys[name], "us-east-1", signed, body, moment, service=service
        )
        answer = self._protocol.answer(
            Request(
                target,
                content_type,
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
        return answer if isinstance(answer, Answer) else await answer


STREAM_OPERATIONS = frozenset({"DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"})
