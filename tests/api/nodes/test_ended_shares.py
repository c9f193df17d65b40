"""A node learns from its renewals that the leader has taken its tables."""

from __future__ import annotations

from dynactor.api.nodes.changes import Changes
from dynactor.api.nodes.membership import Membership
from tests.support.environment.simulated_loop import simulated
from tests.support.servers.simulated_cluster import FakeDatabase, FakeMembers

SLOT = 3
SHARE = (SLOT << 32) + 1


@simulated
async def test_a_renewal_shows_that_the_share_of_the_node_has_ended() -> None:
    database = FakeDatabase()
    membership = Membership(FakeMembers(database, "n1"), Changes())
    await membership.join()
    database.shares[SLOT] = membership.share = SHARE
    await membership.renew()
    assert membership.ended_share == 0
    database.shares[SLOT] += 1
    await membership.renew()
    assert membership.ended_share == SHARE
    # The next share of the node has another epoch.
    membership.share = database.shares[SLOT]
    await membership.renew()
    assert membership.ended_share == SHARE
