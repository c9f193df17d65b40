"""Room for large requests: how much of them is in memory at a time, over all connections.

Whoever begins to read one enters with its whole size, before its body is read, and leaves when it
is answered: so whoever is in can be read to the end, and nobody waits for one that is not. The size
of a packed one is what it may become with what it is.

A client that announces much and sends little would hold its place for nothing. So while others
wait, whoever is in has to send at a least pace, on the average since it was let in, behind a time
of grace; or it is put out. That is enough. Only time in which somebody waits is counted: where
there is room for all, a slow client has its time. Nobody who keeps the pace is ever put out. And
whoever is the first to wait is let in after the grace, what the largest request takes at that pace,
and what the server itself takes to answer those who are all there: by then each of the others is
there or put out, whatever they do, and nobody passes by whoever is the first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from dynactor.model.limits import KIB

# <= of a request, with its head, that needs no room.
SMALL_REQUEST_BYTES: Final = 64 * KIB
_LOOKS_PER_GRACE: Final = 4


class Place:
    """The place of one request; ``let_in`` completes when it may be read.

    Whoever reads it keeps ``arrived_bytes``, and says when the request ``is_whole``.
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
    """Lets requests in, in their order, and puts those out who keep others waiting.

    Invariants: ``_taken_bytes`` are those of all who are ``_within``, and no more than the room
    has, unless a single one is larger. The first who waits does not fit in. While somebody waits
    there is a next look, and only then.
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
        # For how long anybody has waited, up to the last look. It is counted in looks: while the
        # server itself stands still, nobody is late for it.
        self._waited_seconds = 0.0
        self._next_look: asyncio.TimerHandle | None = None

    @property
    def waiting_count(self) -> int:
        """How many requests wait for room."""
        return len(self._waiting)

    def enter(self, size_bytes: int, put_out: Callable[[], None]) -> Place:
        """A place for a request of that size; it may have to be waited for.

        ``put_out`` is to have it given up soon; it may be called again until then.
        """
        place = Place(size_bytes, put_out)
        self._waiting[place] = None
        self._let_in()
        return place

    def leave(self, place: Place) -> None:
        """Give a place up, or no longer wait for it."""
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
            # A request that is larger than the room must be read as well.
            if self._taken_bytes and self._taken_bytes + place.size_bytes > self._most_bytes:
                break
            del self._waiting[place]
            self._within[place] = None
            self._taken_bytes += place.size_bytes
            place.let_in_at = self._waited_seconds
            # Whoever was cancelled has yet to leave.
            if not place.let_in.done():
                place.let_in.set_result(None)
        self._watch()

    def _watch(self) -> None:
        """Look again soon, if anybody waits."""
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
