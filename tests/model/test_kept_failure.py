"""A failure inside of a task group comes out as it is."""

from __future__ import annotations

import anyio
import pytest

from dynactor.model.kept_failure import KeptFailure


async def fail_beside(ended: list[str]) -> None:
    """Fail within two groups whose tasks end as usual."""
    kept = KeptFailure()
    stopped = anyio.Event()

    async def serve() -> None:
        await stopped.wait()
        ended.append("as usual")

    async with anyio.create_task_group() as outer, anyio.create_task_group() as inner:
        outer.start_soon(serve)
        inner.start_soon(serve)
        with kept:
            try:
                raise ValueError("broken")
            finally:
                stopped.set()
    kept.raise_again()


async def test_a_failure_is_raised_outside_of_all_groups_without_canceling_their_tasks():
    ended: list[str] = []
    with pytest.raises(ValueError, match="broken"):
        await fail_beside(ended)
    assert ended == ["as usual"] * 2


async def test_a_cancellation_is_not_kept():
    kept = KeptFailure()
    with anyio.CancelScope() as scope:
        with kept:
            scope.cancel()
            await anyio.sleep_forever()
        raise AssertionError("the block was canceled")
    kept.raise_again()
    assert scope.cancelled_caught


async def test_a_block_that_succeeds_raises_nothing():
    kept = KeptFailure()
    with kept:
        pass
    kept.raise_again()
    assert not kept.is_failed
