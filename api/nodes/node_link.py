"""The port to the home of the tables, over which a node forwards requests."""

from __future__ import annotations

from typing import Protocol

from dynactor.api.http.protocol import Answer, Request
from dynactor.api.nodes.frames import NodeMessage


class NotSent(Exception):
    """The home has not got the request, or has refused it, so nothing was written."""


class AnswerLost(Exception):
    """The connection ended after the request was sent, so its outcome is unknown."""


class NodeLink(Protocol):
    """The connections to one node.

    ``failure`` is the reason why the connections ended, or could not be made; otherwise it is
    empty. ``is_refused``: the node's last answer was that it is not the leader.
    """

    address: str
    is_open: bool
    failure: str
    is_refused: bool

    async def ask(self, message: Request | NodeMessage) -> Answer:
        """Forward a request, or send a message; return the other node's answer.

        Raises:
            NotSent, AnswerLost: see there.
        """
        ...

    async def run(self) -> None:
        """Keep the connections open until the task is canceled."""
        ...
