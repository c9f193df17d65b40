"""A limit on the memory of large requests, over all connections.

A request reserves its whole size before its body is read, and releases it when it is answered. A
request with a reservation can therefore always be read to its end. A compressed request reserves
its compressed size and the largest size to which it may decompress.

A client that announces a large request and sends little would block the others. So while any
request waits, each request with a reservation must arrive at a minimum average rate after a grace
period, or its connection is closed. Only the time in which a request waits counts. Without waiting
requests, slow clients are not limited. The connection of a client that keeps the rate is never
closed.

The first waiting request waits at most for the grace period, for the largest request at the minimum
rate, and for the answers to complete requests. By then, every request with a reservation is
answered or closed, and no other request is admitted before the first waiting one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from dynactor.model.limits import KIB

# <= size of a request, with its head, that needs no reservation.
SMALL_REQUEST_BYTES: Final = 64 * KIB
_CHECKS_PER_GRACE: Final = 4


class Reservation:
    """The reservation of one request; ``granted`` completes when the body may be read.

    The reader updates ``arrived_bytes``, and sets ``is_whole`` when the request is complete.
    """

    __slots__ = ("arrived_bytes", "close", "granted", "granted_at", "is_whole", "size_bytes")

    def __init__(self, size_bytes: int, close: Callable[[], None]) -> None:
        self.size_bytes = size_bytes
        self.close = close
        self.granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.granted_at = 0.0
        self.arrived_bytes = 0
        self.is_whole = False


class RequestMemory:
    """Admits requests in order, and closes slow ones while others wait.

    Invariants: ``_taken_bytes`` is the sum over ``_granted``, at most ``_most_bytes`` unless a
    single request is larger. The first waiting request does not fit. The next check is scheduled
    exactly while a request waits.
    """

    def __init__(
        self, most_bytes: int, *, grace_seconds: float, least_bytes_per_second: float
    ) -> None:
        self._most_bytes = most_bytes
        self._grace_seconds = grace_seconds
        self._least_bytes_per_second = least_bytes_per_second
        self._check_seconds = grace_seconds / _CHECKS_PER_GRACE
        self._taken_bytes = 0
        self._waiting: dict[Reservation, None] = {}
        self._granted: dict[Reservation, None] = {}
        # The total time in which a request has waited, up to the last check. Time is counted in
        # checks, so that no client counts as late after the server itself was suspended.
        self._waited_seconds = 0.0
        self._next_check: asyncio.TimerHandle | None = None

    @property
    def waiting_count(self) -> int:
        """Number of requests that wait for memory."""
        return len(self._waiting)

    def reserve(self, size_bytes: int, close: Callable[[], None]) -> Reservation:
        """Reserve memory for a request; the caller awaits ``granted``.

        ``close`` closes the request's connection. It may be called several times.
        """
        reservation = Reservation(size_bytes, close)
        self._waiting[reservation] = None
        self._grant()
        return reservation

    def release(self, reservation: Reservation) -> None:
        """Release a reservation, or stop waiting for it."""
        if reservation in self._waiting:
            del self._waiting[reservation]
        else:
            del self._granted[reservation]
            self._taken_bytes -= reservation.size_bytes
        assert self._taken_bytes >= 0
        self._grant()

    def _grant(self) -> None:
        while self._waiting:
            reservation = next(iter(self._waiting))
            # A request that is larger than the limit is admitted if it is the only one.
            if self._taken_bytes and self._taken_bytes + reservation.size_bytes > self._most_bytes:
                break
            del self._waiting[reservation]
            self._granted[reservation] = None
            self._taken_bytes += reservation.size_bytes
            reservation.granted_at = self._waited_seconds
            # The request may have been canceled without having called ``release`` yet.
            if not reservation.granted.done():
                reservation.granted.set_result(None)
        self._watch()

    def _watch(self) -> None:
        """Schedule the next check if a request waits."""
        if not self._waiting:
            if self._next_check is not None:
                self._next_check.cancel()
                self._next_check = None
        elif self._next_check is None:
            loop = asyncio.get_running_loop()
            self._next_check = loop.call_later(self._check_seconds, self._check)

    def _check(self) -> None:
        self._waited_seconds += self._check_seconds
        for reservation in list(self._granted):
            if self._is_late(reservation):
                reservation.close()
        self._next_check = None
        self._watch()

    def _is_late(self, reservation: Reservation) -> bool:
        if reservation.is_whole:
            return False
        earned_seconds = reservation.arrived_bytes / self._least_bytes_per_second
        return self._waited_seconds - reservation.granted_at > self._grace_seconds + earned_seconds
