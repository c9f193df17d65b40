"""Deletes the rows of discarded ranges in bounded pieces, while other statements run.

The commit that discards a range adds it to the table ``discards``. The statement that deletes a
range's last rows removes it from there, so a restarted server continues. Only the owner of the
database deletes them.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import anyio
import structlog

from dynactor.model.pauses import DISCARD_SECONDS
from dynactor.storage.postgresql.connections import Connections
from dynactor.storage.postgresql.sql import Statements
from dynactor.storage.store import Closed, StoreError

# The number of rows that a statement deletes: fewer after a slow statement, more after a fast one.
_FEWEST_ROWS: Final = 100
_MOST_ROWS: Final = 10_000
_PIECE_SECONDS: Final = 0.1

_log = structlog.get_logger("storage")


class Discards:
    """Deletes the rows of discarded ranges. ``pieces`` is the number of statements so far."""

    def __init__(self, connections: Connections, statements: Statements, epoch: int) -> None:
        self._connections = connections
        self._statements = statements
        self._epoch = epoch
        self._rows = _FEWEST_ROWS
        self._is_wanted = asyncio.Event()
        self._is_idle = asyncio.Event()
        self._is_closed = False
        self.pieces = 0
        # An earlier server may have left ranges.
        self.begin()

    def begin(self) -> None:
        """Start deleting; called when a commit has discarded a range."""
        self._is_idle.clear()
        self._is_wanted.set()

    async def wait_idle(self) -> None:
        """Wait until all rows are deleted; raises ``Closed`` if the store was closed first."""
        await self._is_idle.wait()
        if self._is_closed:
            raise Closed("the store is closed")

    def close(self) -> None:
        """Stop; the next start of the server continues."""
        self._is_closed = True
        self._is_idle.set()

    async def run(self) -> None:
        """Delete rows whenever a range is discarded, until the store is closed."""
        while True:
            await self._is_wanted.wait()
            self._is_wanted.clear()
            try:
                await self._delete_all()
            except Closed:
                self.close()
                return
            except StoreError as error:
                _log.warning("discard_delayed", error=str(error))
                self._is_wanted.set()
                await anyio.sleep(DISCARD_SECONDS)
            else:
                if not self._is_wanted.is_set():
                    self._is_idle.set()

    async def _delete_all(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._is_closed:
            began = loop.time()
            if await self._connections.run_once(self._delete_piece) is None:
                return
            self.pieces += 1
            took_seconds = loop.time() - began
            if took_seconds > _PIECE_SECONDS:
                self._rows = max(_FEWEST_ROWS, self._rows // 2)
            else:
                self._rows = min(_MOST_ROWS, self._rows * 2)
            # Pause as long as the statement took, so that other statements get half of the time.
            await anyio.sleep(took_seconds)

    async def _delete_piece(self, connection: Any) -> int | None:
        """Delete some rows of the oldest range; return how many, or None if no range is left."""
        deleted: int | None = await connection.fetchval(
            self._statements.discard, self._epoch, self._rows
        )
        return deleted
