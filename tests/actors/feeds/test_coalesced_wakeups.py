"""Followers without a backlog continue in the same tick, right after changes are durable."""

from __future__ import annotations

import asyncio

import pytest

from dynactor.actors.feeds.coalesced_wakeups import (
    _LONGEST_SECONDS,
    _SHORTEST_SECONDS,
    CoalescedWakeups,
)


class Time:
    """The loop's time, which the test advances."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 1_000.0
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: self.seconds)


async def test_all_waiters_continue_with_the_next_changes(monkeypatch):
    Time(monkeypatch)
    wakeups = CoalescedWakeups()
    waiting = [wakeups.wait() for _ in range(3)]
    assert not any(each.done() for each in waiting)
    wakeups.changed()
    assert all(each.done() for each in waiting)


async def test_changes_soon_after_a_tick_wait_for_more_changes(monkeypatch):
    time = Time(monkeypatch)
    wakeups = CoalescedWakeups()
    first = wakeups.wait()
    wakeups.changed()
    assert first.done()
    second = wakeups.wait()
    time.seconds += _SHORTEST_SECONDS / 2
    wakeups.changed()
    assert not second.done()
    time.seconds += _SHORTEST_SECONDS
    wakeups.changed()
    assert second.done()


async def test_a_wait_ends_soon_without_changes(monkeypatch):
    time = Time(monkeypatch)
    wakeups = CoalescedWakeups()
    waiting = [wakeups.wait(), wakeups.wait()]
    time.seconds += _LONGEST_SECONDS
    assert await asyncio.wait_for(asyncio.gather(*waiting), 60) == [None, None]


async def test_a_canceled_wait_does_not_disturb_others(monkeypatch):
    Time(monkeypatch)
    wakeups = CoalescedWakeups()
    gone, waiting = wakeups.wait(), wakeups.wait()
    gone.cancel()
    wakeups.changed()
    assert waiting.done()
    assert not waiting.cancelled()
