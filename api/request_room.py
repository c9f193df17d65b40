"""Room for large requests: how much of them is in memory at a time, over all connections.

Whoever begins to read one enters with its whole size, before its body is read, and leaves when it
is answered: so whoever is in can be read to the end, and nobody waits for one that is not.
"""

from __future__ import annotations

import asyncio
from typing import Final

from model.limits import KIB

# <= of a request, with its head, that needs no room.
SMALL_REQUEST_BYTES: Final = 64 * KIB


class Place:
    """The place of one request; ``let_in`` completes when it may be read."""

    __slots__ = ("let_in", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.let_in: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class RequestRoom:
    """Lets requests in, in their order.

    Invariants: ``_taken_bytes`` are those of all who are in, and no more than the room has, unless
    a single one is larger. The first who waits does not fit in.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._taken_bytes = 0
        self._waiting: dict[Place, None] = {}

    def enter(self, size_bytes: int) -> Place:
        """A place for a request of that size; it may have to be waited for."""
        place = Place(size_bytes)
        self._waiting[place] = None
        self._let_in()
        return place

    def leave(self, place: Place) -> None:
        """Give a place up, or no longer wait for it."""
        if place in self._waiting:
            del self._waiting[place]
        else:
            self._taken_bytes -= place.size_bytes
        assert self._taken_bytes >= 0
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting:
            place = next(iter(self._waiting))
            # A request that is larger than the room must be read as well.
            if self._taken_bytes and self._taken_bytes + place.size_bytes > self._most_bytes:
                return
            del self._waiting[place]
            self._taken_bytes += place.size_bytes
            # Whoever was cancelled has yet to leave.
            if not place.let_in.done():
                place.let_in.set_result(None)
