"""Executes requests, forwards them to their home, and holds them back while there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, Protocol

from dynactor.api.http.protocol import Answer, Request
from dynactor.api.http.protocol import Protocol as HttpProtocol
from dynactor.api.nodes.changes import Changes
from dynactor.api.nodes.node_figures import ForwardingFigures
from dynactor.api.nodes.node_link import AnswerLost, NodeLink, NotSent
from dynactor.api.nodes.request_tables import RequestTables, find_tables
from dynactor.api.nodes.runner import Runner
from dynactor.api.registry import is_read
from dynactor.model.errors import InternalServerError, ThrottlingException
from dynactor.model.limits import MIB
from dynactor.model.pauses import FORWARD_SECONDS

# How long a request waits for a home. After most faults a new home is there within a second, after
# a silent failure of the home's machine within about 7 seconds.
HOME_SECONDS: Final = 10.0
# Further requests get a throttling error.
MOST_REQUESTS: Final = 10_000
MOST_BYTES: Final = 64 * MIB


class Places(Protocol):
    """Finds the place where a request is executed."""

    def place(self, tables: RequestTables) -> Runner | NodeLink | None:
        """A database of this node, or the link to another node; None if the request waits."""
        ...

    def note_refused(self) -> None:
        """Note that another node is not the home of some tables any more."""
        ...


class Forwarding:
    """Answers the requests that clients send to a node of a cluster.

    A write is forwarded once at most, unless the home certainly has not executed it. The requests
    that wait for a home or for its answer are bounded in number and size.
    """

    def __init__(self, protocol: HttpProtocol, changes: Changes, places: Places) -> None:
        self._protocol = protocol
        self._changes = changes
        self._places = places
        self._waiting = 0
        self._waiting_bytes = 0
        self._forwarded = 0
        self._failures = {"unknown": 0, "no home": 0, "too many": 0}

    @property
    def figures(self) -> ForwardingFigures:
        """The requests that were forwarded, and those that failed, by reason."""
        return ForwardingFigures(self._forwarded, dict(self._failures))

    def answer(self, request: Request) -> Answer | Awaitable[Answer]:
        """Execute a request at its home, as soon as there is one."""
        tables = find_tables(request)
        place = self._places.place(tables)
        if isinstance(place, Runner):
            return place.answer(request, tables)
        return self.forward(request, tables)

    async def forward(self, request: Request, tables: RequestTables) -> Answer:
        """Execute a request that this node may have to forward."""
        size_bytes = len(request.body)
        if self._waiting >= MOST_REQUESTS or self._waiting_bytes + size_bytes > MOST_BYTES:
            self._failures["too many"] += 1
            return self._protocol.refuse(
                ThrottlingException("Too many requests wait for the home of the tables")
            )
        self._waiting += 1
        self._waiting_bytes += size_bytes
        try:
            return await self._forward(request, tables)
        finally:
            self._waiting -= 1
            self._waiting_bytes -= size_bytes

    async def _forward(self, request: Request, tables: RequestTables) -> Answer:
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + HOME_SECONDS
        while True:
            place = self._places.place(tables)
            if isinstance(place, Runner):
                answer = place.answer(request, tables)
                return answer if isinstance(answer, Answer) else await answer
            if place is not None and place.is_open:
                try:
                    answer = await place.ask(request)
                except NotSent:
                    self._places.note_refused()
                    await self._changes.wait(FORWARD_SECONDS)
                except AnswerLost:
                    if not is_read(request.target):
                        self._failures["unknown"] += 1
                        return self._protocol.refuse(
                            InternalServerError(
                                "Whether this was written is unknown: the connection to the node "
                                "that executed it broke"
                            )
                        )
                else:
                    self._forwarded += 1
                    return answer
            else:
                await self._changes.wait(give_up_at - loop.time())
            if loop.time() >= give_up_at:
                self._failures["no home"] += 1
                return self._protocol.refuse(
                    InternalServerError(
                        "Nothing was written: no node that could execute this was found in "
                        f"{HOME_SECONDS:.0f} s, try again"
                    )
                )
