"""Deletes the rows of discarded ranges in bounded pieces, beside the other statements.

The commit that discards a range writes it to a table. A range leaves that table with its last rows,
so the work continues after a restart. The owner of the database does the work.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import anyio
import structlog

from dynactor.storage.postgresql.connections import Connections
from dynactor.storage.postgresql.sql import Statements
from dynactor.storage.store import Closed, StoreError

# The rows of a statement; the number follows the time that a statement takes.
_FEWEST_ROWS: Final = 100
_MOST_ROWS: Final = 10_000
_PIECE_SECONDS: Final = 0.1
_RETRY_SECONDS: Final = 1.0

_log = structlog.get_logger("storage")


class Discards:
    """The deletions. ``pieces`` counts the statements that deleted rows."""

    def __init__(self, connections: Connections, statements: Statements, epoch: int) -> None:
        self._connections = connections
        self._statements = statements
        self._epoch = epoch
        self._rows = _FEWEST_ROWS
        self._is_wanted = asyncio.Event()
        self._is_idle = asyncio.Event()
        self._is_closed = False
        self.pieces = 0
        # Ranges may be left from before the start.
        self.begin()

    def begin(self) -> None:
        """Start deleting, because a commit has discarded a range."""
        self._is_idle.clear()
        self._is_wanted.set()

    async def wait_idle(self) -> None:
        """Wait until all rows are deleted.

        Raises:
            Closed: the store was closed first.
        """
        await self._is_idle.wait()
        if self._is_closed:
            raise Closed("the store is closed")

    def close(self) -> None:
        """Stop; the next start continues."""
        self._is_closed = True
        self._is_idle.set()

    async def run(self) -> None:
        """Delete rows whenever there are some to delete, forever."""
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
                await anyio.sleep(_RETRY_SECONDS)
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
            # Leave half of the time to other statements.
            await anyio.sleep(took_seconds)

    async def _delete_piece(self, connection: Any) -> int | None:
        """Delete some rows of the oldest range; return how many, or None if no range is left."""
        deleted: int | None = await connection.fetchval(
            self._statements.discard, self._epoch, self._rows
        )
        return deleted
