"""``GET /health`` and ``GET /ready``, for supervisors and load balancers.

``/health`` answers 200 while the process is alive. ``/ready`` answers 503 before the server
listens, while it stops, and while its store refuses writes.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from dynactor.api.http.protocol import Protocol
from dynactor.storage.store import Store

HEALTH_PATH: Final = "/health"
READY_PATH: Final = "/ready"


def answer(path: str, protocol: Protocol, store: Store) -> tuple[HTTPStatus, str]:
    """The status and the text for one of the two paths."""
    if path == HEALTH_PATH:
        return HTTPStatus.OK, "healthy"
    if not protocol.is_serving:
        return HTTPStatus.SERVICE_UNAVAILABLE, "not ready: no requests are accepted"
    refusal = store.figures().refusal
    if refusal:
        return HTTPStatus.SERVICE_UNAVAILABLE, f"not ready: the store refuses writes ({refusal})"
    return HTTPStatus.OK, "ready"
