"""A limit on the memory of large requests, over all connections.

A request reserves its whole size before its body is read, and releases it when it is answered. A
request with a reservation can therefore always be read to its end. A compressed request reserves
its compressed size and the largest size to which it may decompress.

A client that announces a large request and sends little would block the others. So while a request
waits, each request with a reservation must arrive at a minimum average rate after a grace period,
or its connection is closed. Only time in which a request waits counts: without waiting requests a
slow client is not limited, and a client that keeps the rate is never closed.

The first waiting request is admitted after at most the grace period, the time of the largest
request at the minimum rate, and the time to answer complete requests. By then every other request
is complete or closed, and none passes the first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from dynactor.model.limits import KIB

# <= of a request, with its head, that needs no reservation.
SMALL_REQUEST_BYTES: Final = 64 * KIB
_LOOKS_PER_GRACE: Final = 4


class Place:
    """The reservation of one request; ``let_in`` completes when the body may be read.

    The reader updates ``arrived_bytes``, and sets ``is_whole`` when the request is complete.
    """

    __slots__ = ("arrived_bytes", "is_whole", "let_in", "let_in_at", "put_out", "size_bytes")

    def __init__(self, size_bytes: int, put_out: Callable[[], None]) -> None:
        self.size_bytes = size_bytes
        self.put_out = put_out
        self.let_in: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.let_in_at = 0.0
        self.arrived_bytes = 0
        self.is_whole = False


class RequestRoom:
    """Admits requests in order, and closes slow ones while others wait.

    Invariants: ``_taken_bytes`` is the sum over ``_within``, at most ``_most_bytes`` unless a
    single request is larger. The first waiting request does not fit. The next look is scheduled
    exactly while a request waits.
    """

    def __init__(
        self, most_bytes: int, *, grace_seconds: float, least_bytes_per_second: float
    ) -> None:
        self._most_bytes = most_bytes
        self._grace_seconds = grace_seconds
        self._least_bytes_per_second = least_bytes_per_second
        self._look_seconds = grace_seconds / _LOOKS_PER_GRACE
        self._taken_bytes = 0
        self._waiting: dict[Place, None] = {}
        self._within: dict[Place, None] = {}
        # How long requests have waited, up to the last check. Time is counted in checks, so that
        # no client is late while the server itself is suspended.
        self._waited_seconds = 0.0
        self._next_look: asyncio.TimerHandle | None = None

    @property
    def waiting_count(self) -> int:
        """Number of requests that wait for memory."""
        return len(self._waiting)

    def enter(self, size_bytes: int, put_out: Callable[[], None]) -> Place:
        """Reserve memory for a request; the caller awaits ``let_in``.

        ``put_out`` closes the request's connection. It may be called several times.
        """
        place = Place(size_bytes, put_out)
        self._waiting[place] = None
        self._let_in()
        return place

    def leave(self, place: Place) -> None:
        """Release a reservation, or stop waiting for it."""
        if place in self._waiting:
            del self._waiting[place]
        else:
            del self._within[place]
            self._taken_bytes -= place.size_bytes
        assert self._taken_bytes >= 0
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting:
            place = next(iter(self._waiting))
            # A request that is larger than the limit must be read too.
            if self._taken_bytes and self._taken_bytes + place.size_bytes > self._most_bytes:
                break
            del self._waiting[place]
            self._within[place] = None
            self._taken_bytes += place.size_bytes
            place.let_in_at = self._waited_seconds
            # A cancelled request has not called ``leave`` yet.
            if not place.let_in.done():
                place.let_in.set_result(None)
        self._watch()

    def _watch(self) -> None:
        """Schedule the next look if a request waits."""
        if not self._waiting:
            if self._next_look is not None:
                self._next_look.cancel()
                self._next_look = None
        elif self._next_look is None:
            loop = asyncio.get_running_loop()
            self._next_look = loop.call_later(self._look_seconds, self._look)

    def _look(self) -> None:
        self._waited_seconds += self._look_seconds
        for place in list(self._within):
            if self._is_late(place):
                place.put_out()
        self._next_look = None
        self._watch()

    def _is_late(self, place: Place) -> bool:
        if place.is_whole:
            return False
        earned_seconds = place.arrived_bytes / self._least_bytes_per_second
        return self._waited_seconds - place.let_in_at > self._grace_seconds + earned_seconds
