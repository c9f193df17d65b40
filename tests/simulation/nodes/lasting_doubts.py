"""Availability: a node that reaches PostgreSQL is not in doubt about its commits for long.

A node in doubt gives no table to another node.
"""

from __future__ import annotations

from typing import Final

import anyio

from tests.simulation.nodes.real_nodes import Cluster

# A statement may take some seconds. PostgreSQL ends the sessions of a failed machine after 20 s.
MOST_DOUBT_SECONDS: Final = 25.0
_STEP_SECONDS: Final = 1.0


async def watch_doubts(cluster: Cluster) -> None:
    """Add a violation for each process that is in doubt for too long, until canceled."""
    seconds: dict[int, float] = {}
    while True:
        await anyio.sleep(_STEP_SECONDS)
        doubtful = {
            each.queue: each
            for each in cluster.up()
            if each.node is not None
            and each.node.store_figures.commits_in_doubt
            and not each.is_suspended
            and each.name not in cluster.network.cut
        }
        seconds = {queue: seconds.get(queue, 0.0) + _STEP_SECONDS for queue in doubtful}
        for queue, lasted in seconds.items():
            if lasted == MOST_DOUBT_SECONDS:
                cluster.violations.append(f"{doubtful[queue].name} was in doubt for {lasted} s")
