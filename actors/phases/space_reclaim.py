"""Reclaims the disk space of deleted ranges, which may take minutes.

The commit that deletes a range also writes a row, which is deleted when the range's space is
reclaimed. So after a stop or crash the next start continues.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import structlog

from dynactor.actors.parts.long_work import Pieces
from dynactor.actors.parts.part import Part, Parts
from dynactor.actors.table.messages import OwnMessage
from dynactor.model.limits import MIB
from dynactor.storage import key_layout
from dynactor.storage.catalog import Catalog
from dynactor.storage.row_pages import rows_in
from dynactor.storage.store import Closed, Full, Retry, Row, StoreError, Unknown

# Deleted ranges of at least this size are compacted at once.
LARGE_BYTES: Final = 16 * MIB

# The start of a range, and its end, which is excluded.
_Range: TypeAlias = tuple[bytes, bytes]

_log = structlog.get_logger("actors")


class EndReclaim(OwnMessage, frozen=True):
    """The disk space of this range is reclaimed."""

    start: bytes
    end: bytes


class SpaceReclaimer(Part):
    """Reclaims one range after another, in the background."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self.handlers = {EndReclaim: self._end}
        # Ranges in the order of the requests.
        self._waiting: dict[_Range, None] = {}
        self._current: _Range | None = None
        # Ranges to retry: the disk was too full, or the store was not ready.
        self._postponed: dict[_Range, None] = {}

    async def adopt(self, _loaded: Catalog) -> None:
        """Continue with all pending ranges, at the leader."""
        if not self._settings.is_leader:
            return
        async for row in rows_in(self._store.latest, *key_layout.RECLAIMS):
            key_range = key_layout.reclaim_start(row.key), row.value
            if key_range != self._current:
                self.begin(key_range)

    def begin(self, key_range: _Range) -> None:
        """Reclaim a range's space in the background; the range's deletion must be durable."""
        self._postponed.pop(key_range, None)
        if not self._waiting and self._current is None:
            self._supervisor.run_in_background(self._work)
        self._waiting[key_range] = None

    def keep(self, now_epoch_seconds: float) -> Pieces:
        """Retry the ranges that the store refused."""
        for key_range in list(self._postponed):
            self.begin(key_range)
        return super().keep(now_epoch_seconds)

    async def _end(self, message: EndReclaim) -> None:
        """Delete the row of a range, unless the range was deleted and is to be reclaimed again.

        After ``StoreError``, nothing was changed.
        """
        key_range = message.start, message.end
        is_requested = key_range == self._current or key_range in {*self._waiting, *self._postponed}
        if not is_requested:
            await self._owner.change(
                deletes=[key_layout.reclaim(message.start)], raises_version=False
            )

    async def _work(self) -> None:
        while self._waiting:
            self._current = next(iter(self._waiting))
            del self._waiting[self._current]
            try:
                await self._reclaim(self._current)
            finally:
                self._current = None

    async def _reclaim(self, key_range: _Range) -> None:
        try:
            await self._store.reclaim(*key_range)
        except Closed:
            # The next start of the server continues the work.
            return
        except StoreError as error:
            _log.warning("space_reclaim_delayed", error=str(error))
            if isinstance(error, Full | Retry | Unknown):
                self._postponed[key_range] = None
            return
        self._parts.tell(EndReclaim(*key_range))


def reclaim_row(key_range: _Range) -> Row:
    """The row to put in the commit that deletes a range to reclaim."""
    start, end = key_range
    return Row(key_layout.reclaim(start), end)
