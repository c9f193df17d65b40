"""Commits of unknown outcome that PostgreSQL may still write, so no table may move.

A doubt ends when a later commit has changed a head that the doubtful commit compares, because
PostgreSQL then refuses it. It also ends when PostgreSQL has no session any more that may run it. So
the sessions are ended. A store with a later epoch has no doubts, because its opening waited for all
earlier commits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Any

import anyio
import structlog

from dynactor.model.pauses import DOUBT_SECONDS
from dynactor.storage.postgresql.commit_call import CommitCall
from dynactor.storage.postgresql.connections import Connections
from dynactor.storage.postgresql.sql import Statements
from dynactor.storage.store import Closed, StoreError

_log = structlog.get_logger("storage")


class _Doubt:
    """A commit of unknown outcome. ``sessions`` are the ids of the sessions that may run it."""

    def __init__(self, call: CommitCall, sessions: Collection[int]) -> None:
        self.call = call
        self.sessions = frozenset(sessions)


class Doubts:
    """The doubts of one store."""

    def __init__(self, connections: Connections, statements: Statements) -> None:
        self._connections = connections
        self._statements = statements
        self._doubts: list[_Doubt] = []
        self._began = asyncio.Event()

    def __len__(self) -> int:
        return len(self._doubts)

    def note(self, call: CommitCall, sessions: Collection[int]) -> None:
        """Record a commit of unknown outcome; without sessions nothing can write it later."""
        if sessions:
            self._doubts.append(_Doubt(call, sessions))
            self._began.set()
            _log.warning("commit_doubt_noticed", sessions=sorted(sessions), doubts=len(self))

    def note_written(self, call: CommitCall) -> None:
        """End the doubts about commits that compare a head that this later commit has changed."""
        if self._doubts:
            self._keep(lambda doubt: not call.supersedes(doubt.call), "a later commit")

    async def run(self) -> None:
        """End the sessions of doubtful commits until the store is closed."""
        while True:
            await self._began.wait()
            self._began.clear()
            while self._doubts:
                try:
                    await self._check()
                except Closed:
                    return
                except StoreError as error:
                    _log.debug("doubts_not_checked", error=str(error))
                if self._doubts:
                    await anyio.sleep(DOUBT_SECONDS)

    async def _check(self) -> None:
        sessions = {each for doubt in self._doubts for each in doubt.sessions}
        left = await self._connections.run(lambda connection: self._end(connection, sessions))
        ended = sessions - left
        self._keep(lambda doubt: not doubt.sessions <= ended, "PostgreSQL has ended its session")

    async def _end(self, connection: Any, sessions: set[int]) -> set[int]:
        """Let PostgreSQL end sessions; return those that it has not ended yet."""
        rows = await connection.fetch(self._statements.end_sessions, sorted(sessions))
        found = {row[0] for row in rows}
        # Behind a pooler, the driver has other numbers of sessions than PostgreSQL.
        return found if connection.get_server_pid() in found else sessions

    def _keep(self, lasts: Callable[[_Doubt], bool], reason: str) -> None:
        before = len(self)
        self._doubts = [doubt for doubt in self._doubts if lasts(doubt)]
        if len(self) < before:
            _log.info("doubt_ended", reason=reason, doubts=len(self))
