"""Forwards requests to the home, and holds them back while there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from dynactor.api.http.protocol import Answer, Protocol, Request
from dynactor.api.nodes.changes import Changes
from dynactor.api.nodes.home_link import AnswerLost, HomeLink, NotSent
from dynactor.api.nodes.node_figures import ForwardingFigures
from dynactor.api.requests.reads import is_read
from dynactor.model.errors import InternalServerError, ThrottlingException
from dynactor.model.limits import MIB

# How long a request waits for a home. After most faults a new home is there within a second, after
# a silent failure of the home's machine within about 7 seconds.
HOME_SECONDS: Final = 10.0
_AGAIN_SECONDS: Final = 0.05
# Further requests get a throttling error.
MOST_REQUESTS: Final = 10_000
MOST_BYTES: Final = 64 * MIB


class Forwarding:
    """Answers the requests that clients send to a node that is not the home.

    A write is forwarded once at most, unless the home certainly has not executed it. The requests
    that wait for a home or for its answer are bounded in number and size.
    """

    def __init__(
        self,
        protocol: Protocol,
        changes: Changes,
        link: Callable[[], HomeLink | None],
        is_home: Callable[[], bool],
    ) -> None:
        self._protocol = protocol
        self._changes = changes
        self._link = link
        self._is_home = is_home
        self._waiting = 0
        self._waiting_bytes = 0
        self._forwarded = 0
        self._failures = {"unknown": 0, "no home": 0, "too many": 0}

    @property
    def figures(self) -> ForwardingFigures:
        """The requests that were forwarded, and those that failed, by reason."""
        return ForwardingFigures(self._forwarded, dict(self._failures))

    async def answer(self, request: Request) -> Answer:
        """Forward a request, as soon as there is a home."""
        size_bytes = len(request.body)
        if self._waiting >= MOST_REQUESTS or self._waiting_bytes + size_bytes > MOST_BYTES:
            self._failures["too many"] += 1
            return self._protocol.refuse(
                ThrottlingException("Too many requests wait for the home of the tables")
            )
        self._waiting += 1
        self._waiting_bytes += size_bytes
        try:
            return await self._answer(request)
        finally:
            self._waiting -= 1
            self._waiting_bytes -= size_bytes

    async def _answer(self, request: Request) -> Answer:
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + HOME_SECONDS
        while True:
            if self._is_home():
                answer = self._protocol.answer(request)
                return answer if isinstance(answer, Answer) else await answer
            link = self._link()
            if link is not None and link.is_open:
                try:
                    answer = await link.ask(request)
                except NotSent:
                    await self._changes.wait(_AGAIN_SECONDS)
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
