"""A latency counts from the scheduled time of the request, even if the server stalls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest

from dynactor.load.results.histogram import Histogram
from dynactor.load.run.loops import OpenLoop
from dynactor.load.run.recorder import Recorder
from dynactor.load.work.pacing import Pacing


class FakeClient:
    """Keeps its requests until the test answers them."""

    def __init__(self) -> None:
        self.operation = ""
        self.due_at = 0.0
        self.sent_at: float | None = None

    def start(self, operation: str, dialogue: float, due_at: float) -> None:
        assert self.sent_at is None, "one request at a time"
        self.operation, self.due_at, self.sent_at = operation, due_at, dialogue


class FakeClients:
    def __init__(self, count: int) -> None:
        self.clients = [FakeClient() for _ in range(count)]
        self.loop: object = None


class Driven:
    """An open loop on the test's clock; the test answers the requests."""

    def __init__(self, rate: float, clients: int) -> None:
        self.now = 0.0
        self.wakes_at = 0.0
        self.clients = FakeClients(clients)
        self.recorder = Recorder(by_due_time=True)
        self.recorder.window = (0.0, 10.0)
        self.loop = OpenLoop(
            self.clients,
            lambda: ("get", self.now),
            self.recorder,
            Pacing(rate),
            clock=lambda: self.now,
            timer=self._timer,
        )
        self.loop.start(0.0)

    def _timer(self, callback: Callable[[], None]) -> Driven:
        self._ring = callback
        return self

    def set(self, at: float) -> None:
        self.wakes_at = at

    def close(self) -> None:
        self.wakes_at = float("inf")

    def go_to(self, moment: float) -> None:
        while self.wakes_at <= moment:
            self.now = self.wakes_at
            self._ring()
        self.now = moment

    def answer(self) -> None:
        """Answer the oldest request in flight."""
        client = min(
            (each for each in self.clients.clients if each.sent_at is not None), key=_sent_at
        )
        client.sent_at = None
        self.loop.freed(client, "")

    @property
    def under_way(self) -> int:
        return sum(client.sent_at is not None for client in self.clients.clients)

    @property
    def latencies(self) -> Histogram:
        return Histogram(self.recorder.measured()["get"].latencies)


def _sent_at(client: FakeClient) -> float:
    assert client.sent_at is not None
    return client.sent_at


def test_requests_are_sent_when_they_are_due_whether_or_not_others_are_answered():
    driven = Driven(rate=100, clients=50)
    driven.go_to(0.105)
    assert driven.under_way == 11


def test_requests_delayed_by_a_stalled_server_count_from_their_scheduled_time():
    driven = Driven(rate=100, clients=1)
    # The server answers nothing for a second, and then all requests.
    driven.go_to(1.0)
    for _ in range(100):
        driven.answer()
    latencies = driven.latencies
    assert latencies.total == 100
    # The sent request waited a second, and so did, nearly, those that could not be sent.
    assert latencies.maximum == pytest.approx(1_000_000, rel=0.002)
    assert latencies.percentile(50) == pytest.approx(500_000, rel=0.03)
    assert latencies.percentile(1) == pytest.approx(10_000, rel=0.03)


def test_a_request_is_late_by_the_generators_fault_only_if_a_connection_was_free():
    driven = Driven(rate=100, clients=1)
    # The first request is sent on time. The generator wakes up late for those of 10 and 20 ms, when
    # no connection is free, so they wait for the server's answer.
    driven.now = 0.025
    driven._ring()
    for _ in range(3):
        driven.answer()
    assert dict(driven.recorder.lateness) == {0: 1}
    driven.now = 0.0325
    driven._ring()
    assert dict(driven.recorder.lateness) == {0: 1, 2_500: 1}


async def test_the_latency_of_an_unsent_request_lasts_to_the_end_of_the_run():
    driven = Driven(rate=10, clients=1)
    driven.go_to(0.95)
    stopping = asyncio.ensure_future(driven.loop.stop())
    await asyncio.sleep(0)
    driven.answer()
    await stopping
    waits = sorted(driven.recorder.unsent.elements())
    assert waits == pytest.approx([50_000 + 100_000 * number for number in range(9)], abs=1)


def test_requests_are_due_at_the_rate_after_the_ramp():
    pacing = Pacing(1_000, ramp_seconds=2)
    due = [pacing.due_seconds(number) for number in range(3_000)]
    # The ramp is a triangle under the rate, so it sends half of the requests.
    assert sum(moment < 2 for moment in due) == 1_000
    assert sum(moment < 1 for moment in due) == 250
    assert sum(2 <= moment < 3 for moment in due) == 1_000
    assert all(one <= other for one, other in pairwise(due))


def test_the_requests_of_several_workers_are_evenly_interleaved():
    whole = [Pacing(100, 1).due_seconds(number) for number in range(300)]
    shares = [Pacing(100, 1, worker, 3).due_seconds(n) for worker in range(3) for n in range(100)]
    assert sorted(shares) == whole
