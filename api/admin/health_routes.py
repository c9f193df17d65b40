"""``GET /health`` and ``GET /ready``, for supervisors and load balancers.

``/health`` answers 200 while the process is alive. ``/ready`` answers 503 before the server
listens, while it stops, and while its store refuses writes. A node of a cluster that
is not the home is ready while it can forward requests.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from dynactor.api.http.protocol import Protocol
from dynactor.storage.store_figures import StoreFigures

if TYPE_CHECKING:
    from dynactor.api.nodes.node import Node

HEALTH_PATH: Final = "/health"
READY_PATH: Final = "/ready"


def answer(
    path: str, protocol: Protocol, figures: Callable[[], StoreFigures], node: Node | None = None
) -> tuple[HTTPStatus, str]:
    """The status and the text for one of the two paths."""
    if path == HEALTH_PATH:
        return HTTPStatus.OK, "healthy"
    if not protocol.is_serving:
        return HTTPStatus.SERVICE_UNAVAILABLE, "not ready: no requests are accepted"
    if node is not None and node.readiness:
        return HTTPStatus.SERVICE_UNAVAILABLE, f"not ready: {node.readiness}"
    refusal = figures().refusal
    if refusal:
        return HTTPStatus.SERVICE_UNAVAILABLE, f"not ready: the store refuses writes ({refusal})"
    if node is not None and node.leadership is None:
        home = node.state.home
        if home is None:
            return HTTPStatus.OK, "ready: requests wait for another node to become the home"
        return HTTPStatus.OK, f"ready: requests are forwarded to {home}"
    return HTTPStatus.OK, "ready"
