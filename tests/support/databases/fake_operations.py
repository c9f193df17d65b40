"""Trivial operations, for tests of the code around operations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any, cast

from msgspec import Meta

from dynactor.actors.database.database import Database
from dynactor.api.access import asks
from dynactor.api.execution.operation import Operation
from dynactor.api.http.protocol import Protocol
from dynactor.api.http.server import listen, serving
from dynactor.api.http.settings import HttpSettings
from dynactor.api.requests import shapes
from dynactor.api.requests.call import Call
from dynactor.api.requests.shapes import Shape
from dynactor.model.errors import ValidationException

NO_DATABASE = cast("Database", None)


class EchoInput(Shape, frozen=True):
    Text: str = ""
    Value: shapes.AttributeValue | None = None
    Limit: Annotated[int, Meta(ge=1, le=100)] | None = None


async def _echo(call: Call[EchoInput]) -> bytes:
    return b'{"Text":"%s"}' % call.request.Text.encode()


async def _refuse(call: Call[EchoInput]) -> bytes:
    raise ValidationException(call.request.Text)


async def _break(call: Call[EchoInput]) -> bytes:
    raise RuntimeError(call.request.Text)


def operation(name: str, handle: Callable[[Call[Any]], Awaitable[bytes] | bytes]) -> Operation:
    """An operation on no table, whose input is an ``EchoInput``."""
    return Operation(EchoInput, handle, asks=asks.no_resource, name=name)


class Gate:
    """An operation ``Wait`` that answers when the test opens the gate."""

    def __init__(self) -> None:
        self.waiting = 0
        self.opened = asyncio.Event()

    async def handle(self, call: Call[EchoInput]) -> bytes:
        self.waiting += 1
        await self.opened.wait()
        return await _echo(call)

    @property
    def operation(self) -> Operation:
        return operation("Wait", self.handle)


ECHO = operation("Echo", _echo)
REFUSE = operation("Refuse", _refuse)
BREAK = operation("Break", _break)


@asynccontextmanager
async def echo_server(
    *operations: Operation, protocol: Protocol | None = None, **settings: Any
) -> AsyncIterator[str]:
    """Serve Echo, Refuse, Break and the given operations on a free port; yield the endpoint.

    ``protocol`` replaces the protocol with these operations.
    """
    if protocol is None:
        protocol = Protocol(NO_DATABASE, (ECHO, REFUSE, BREAK, *operations), frozenset({"Later"}))
    http = HttpSettings(region="local", **settings)
    with listen("127.0.0.1", 0) as listener:
        async with serving(protocol, http, listener) as endpoint:
            yield endpoint
