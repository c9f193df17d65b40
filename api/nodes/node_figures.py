"""The figures of a node for the metrics, and its view of the cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct

from dynactor.api.admin_api.nodes_messages import NodesState, NodeState
from dynactor.api.nodes.membership import Membership


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


def nodes_state(membership: Membership) -> NodesState:
    """The cluster, as a node saw it in its last renewal."""
    beat = membership.beat
    members = () if beat is None else beat.members
    leader = next((member.name for member in members if member.is_leader), None)
    tables = Counter(claim.epoch for claim in membership.claims.values())
    return NodesState(
        membership.me.name,
        leader,
        0 if beat is None else beat.owned_epoch,
        [
            NodeState(
                member.name,
                member.address,
                member.version,
                member.is_leader,
                member.is_leaving,
                membership.still_beats(member),
                tables[member.share] if member.share else 0,
            )
            for member in members
        ],
    )
