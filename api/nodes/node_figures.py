"""The figures of a node for the metrics."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class ForwardingFigures(Struct, frozen=True):
    """Requests that the home answered, and requests that failed on this node, by reason."""

    forwarded: int
    failures: Mapping[str, int]


class NodeFigures(Struct, frozen=True):
    """The state of a node, for the metrics."""

    is_leader: bool
    members: int
    # How many times this node has become the leader since its start.
    times_leader: int
    forwarding: ForwardingFigures
    # The difference of the node's clock from PostgreSQL's.
    clock_ahead_seconds: float = 0.0
