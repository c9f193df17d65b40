"""A server with a console in the test's own process, and the requests of its pages."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from dynactor.api.admin_api.callers import CallerRules
from dynactor.api.admin_port.listener import Administered, serving_admin
from dynactor.api.http.browser_access import Access
from dynactor.api.http.protocol import Protocol
from dynactor.api.http.server import listen
from dynactor.api.keys.signature import Signatures
from dynactor.api.registry import NOT_IMPLEMENTED, OPERATIONS
from tests.support.clients.clients import TARGET_PREFIX
from tests.support.databases.databases import running_database

TABLE = {
    "TableName": "Thread",
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}
CHANGE = {"X-Dynactor-Admin": "1"}


class Page:
    """A page of the console in a browser; ``token`` is empty before the user has signed in."""

    def __init__(self, session: aiohttp.ClientSession, protocol: Protocol, token: str) -> None:
        self.session = session
        self.protocol = protocol
        self.token = token

    async def ask(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, Any, aiohttp.ClientResponse]:
        """Send a request as the page does; an argument replaces one of its headers."""
        sent = CHANGE | {"X-Dynactor-Console": self.token}
        sent |= {name.replace("_", "-"): text for name, text in headers.items()}
        async with self.session.request(method, path, json=body, headers=sent) as response:
            text = await response.text()
            is_json = "json" in response.headers.get("Content-Type", "")
            return response.status, json.loads(text) if is_json else text, response

    async def perform(self, operation: str, body: Any, **headers: str) -> tuple[int, Any]:
        """Perform an operation of DynamoDB as the page does."""
        target = TARGET_PREFIX + operation
        status, answer, _ = await self.ask(
            "POST", "/console/dynamodb", body, X_Amz_Target=target, **headers
        )
        return status, answer


@asynccontextmanager
async def opened_page(
    signatures: Signatures | None = None, *, secret: str | None = None, **options: Any
) -> AsyncIterator[Page]:
    """A page of a server with a table; ``options`` are those of ``Administered``."""
    options = {
        "console": "full",
        "endpoint": "http://localhost:8000",
        "callers": CallerRules(secret),
        **options,
    }
    async with running_database() as database:
        protocol = Protocol(database, OPERATIONS.values(), NOT_IMPLEMENTED, signatures)
        administered = Administered(
            database._store.figures, protocol, checks_keys=signatures is not None, **options
        )
        with listen("127.0.0.1", 0) as listener:
            async with (
                serving_admin(administered, Access(host_names=frozenset()), listener) as address,
                aiohttp.ClientSession(
                    address, cookie_jar=aiohttp.CookieJar(unsafe=True)
                ) as session,
            ):
                yield Page(session, protocol, await token_of_page(session))


async def token_of_page(session: aiohttp.ClientSession) -> str:
    """The token in the page that a browser gets now; empty if it has to sign in."""
    async with session.get("/") as response:
        found = re.search(r'name="dynactor-token" content="([0-9a-f]*)"', await response.text())
    return found[1] if found else ""
