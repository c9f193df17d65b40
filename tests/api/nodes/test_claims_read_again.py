"""Claims that have not changed wake no task, so a waiting node does not read them all the time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from dynactor.api.nodes.changes import Changes
from dynactor.api.nodes.membership import Membership
from dynactor.model.members import Claim, Claims

TURNS = 5


async def test_only_new_claims_wake_the_tasks_that_wait_for_a_change() -> None:
    stored = Claims(1, {"Thread": Claim(3)})

    async def claims() -> Claims:
        return stored

    table: Any = SimpleNamespace(claims=claims, me=None)
    changes = Changes()
    membership = Membership(table, changes)
    await membership.load_claims()
    waiting = asyncio.ensure_future(changes.wait(60))
    await asyncio.sleep(0)
    await membership.load_claims()
    for _ in range(TURNS):
        await asyncio.sleep(0)
    assert not waiting.done()
    stored = Claims(2, {})
    await membership.load_claims()
    await waiting
    assert membership.claims == {}
