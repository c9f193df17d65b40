"""Commits: waiting calls share a statement, which is one transaction.

The statement skips calls whose heads or guards have changed. If the connection breaks, PostgreSQL
may or may not commit the statement, so the same statement is sent again. The first statement
stores a random batch id in its heads. The second one finds the id if the first was committed.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections import deque
from collections.abc import Callable, Sequence
from math import ceil
from secrets import token_bytes
from time import perf_counter_ns
from typing import Any, Final

import anyio
import structlog
from anyio.abc import TaskGroup

from dynactor.model.latency_histogram import LatencyHistogram
from dynactor.model.pauses import CONNECT_SECONDS
from dynactor.storage.postgresql.commit_call import Arrays, CommitCall
from dynactor.storage.postgresql.connections import (
    RETRY_SECONDS,
    STATEMENT_SECONDS,
    Connections,
)
from dynactor.storage.postgresql.doubts import Doubts
from dynactor.storage.postgresql.errors import (
    FAILURES,
    InsertCollision,
    Lost,
    terminable,
    translate,
)
from dynactor.storage.postgresql.sql import (
    ACCEPTED,
    CONFLICT,
    FENCED,
    WRITTEN_BEFORE,
    Statements,
)
from dynactor.storage.store import Conflict, Fenced, Retry, StoreError, Unavailable, Unknown

_STATEMENTS: Final = 4
# Statements run at the same time while they have at most this many rows together. Beyond that,
# calls wait and share the next statement: it takes PostgreSQL a third less time for each row.
_ROWS_IN_PARALLEL: Final = 24
_CALLS_AT_ONCE: Final = 64
_BYTES_AT_ONCE: Final = 4 * 1024 * 1024
_BATCH_BYTES: Final = 16
# Time limit of a range delete, which may delete all rows of a table.
_RANGE_SECONDS: Final = 3_600.0
# Time limit for finding out whether a statement of unknown outcome was written.
_DOUBT_SECONDS: Final = 30.0
_INSERT_ATTEMPTS: Final = 3
# The function of PostgreSQL that warns when a wait for the standby was canceled.
_WAIT_FOR_STANDBY: Final = "SyncRepWaitForLSN"

_log = structlog.get_logger("storage")


class Pending:
    """A waiting call, and its outcome: None if it was written, otherwise the error."""

    def __init__(self, call: CommitCall) -> None:
        self.call = call
        self.outcome: asyncio.Future[StoreError | None] = asyncio.get_running_loop().create_future()

    def end(self, error: StoreError | None) -> None:
        """Set the outcome, which wakes the caller."""
        if not self.outcome.done():
            self.outcome.set_result(error)


class _Attempt:
    """The attempts to run a statement. ``lost``: the sessions that may still run it."""

    def __init__(self) -> None:
        self.batch = token_bytes(_BATCH_BYTES)
        self.lost: list[int] = []

    @property
    def in_doubt(self) -> bool:
        """Whether the statement was sent, and its outcome is unknown."""
        return bool(self.lost)


class CommitRunner:
    """Runs commits. ``ended`` is called after each statement, with its error or None."""

    def __init__(
        self,
        tasks: TaskGroup,
        connections: Connections,
        statements: Statements,
        epoch: int,
        *,
        latency: LatencyHistogram,
        doubts: Doubts,
        ended: Callable[[StoreError | None], None],
    ) -> None:
        self._tasks = tasks
        self._connections = connections
        self._query = statements.commit
        self._epoch = epoch
        self._latency = latency
        self._doubts = doubts
        self._ended = ended
        self._waiting: deque[Pending] = deque()
        self._in_flight = 0
        self._rows_in_flight = 0
        self._is_scheduled = False
        self._idle: asyncio.Future[None] | None = None

    async def commit(self, call: CommitCall) -> StoreError | None:
        """Write a call. Return the error if the call was refused, or if its outcome is unknown.

        The commit continues if the caller is canceled, and the cancellation is delivered
        afterwards. Otherwise the caller would report an unknown outcome as "nothing was written".
        """
        loop = asyncio.get_running_loop()
        pending = Pending(call)
        self._waiting.append(pending)
        if not self._is_scheduled and self._may_start():
            self._is_scheduled = True
            loop.call_soon(self._start)
        return await _outcome(pending)

    async def commit_in(self, connection: Any, call: CommitCall) -> Future[None]:
        """Write a call in a transaction that has locked its heads, and commit the transaction.

        If the connection breaks, the call is repeated without the locks, like other calls. After
        ``StoreError`` nothing was written.
        """
        pending = Pending(call)
        self._in_flight += 1
        self._tasks.start_soon(self._write_in, connection, pending)
        return completed(await _outcome(pending))

    def _decide(self, pending: Pending, attempt: _Attempt, error: StoreError | None) -> None:
        """Set the outcome of a call."""
        if error is None:
            self._doubts.note_written(pending.call)
        elif isinstance(error, Unknown):
            self._doubts.note(pending.call, attempt.lost)
        pending.end(error)

    async def _write_in(self, connection: Any, pending: Pending) -> None:
        attempt = _Attempt()
        arguments = Arrays([pending.call]).arguments(self._epoch, attempt.batch)
        try:
            (said,) = await self._send(connection, attempt, arguments, ends_transaction=True)
        except FAILURES as failure:
            error = translate(failure)
            if isinstance(error, Lost):
                await self._write([pending], attempt)
            else:
                pending.end(error)
        except StoreError as error:
            pending.end(error)
        else:
            self._decide(pending, attempt, _verdict(said, in_doubt=False))
        finally:
            self._end_statement()

    async def wait_idle(self) -> None:
        """Wait until every call has its outcome."""
        if self._in_flight or self._waiting:
            if self._idle is None:
                self._idle = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._idle)

    def _start(self) -> None:
        self._is_scheduled = False
        while self._waiting and self._may_start():
            most_calls = len(self._waiting)
            if sum(call.call.rows for call in self._waiting) <= _ROWS_IN_PARALLEL:
                # Divide the calls among the free statements. If they shared one statement, the
                # server would be idle until its end, and then all partitions would be busy at once.
                most_calls = ceil(most_calls / (_STATEMENTS - self._in_flight))
            calls = self._take(most_calls)
            rows = sum(call.call.rows for call in calls)
            self._in_flight += 1
            self._rows_in_flight += rows
            self._tasks.start_soon(self._write_and_start_next, calls, rows)

    def _may_start(self) -> bool:
        if self._in_flight >= _STATEMENTS:
            return False
        rows = self._rows_in_flight
        return not rows or rows + self._waiting[0].call.rows <= _ROWS_IN_PARALLEL

    def _take(self, most_calls: int) -> list[Pending]:
        """The calls of the next statement: they share no key, and a call with ranges is alone."""
        taken = [self._waiting.popleft()]
        if taken[0].call.has_ranges:
            return taken
        keys = set(taken[0].call.keys)
        size_bytes = taken[0].call.size_bytes
        while self._waiting and len(taken) < min(most_calls, _CALLS_AT_ONCE):
            call = self._waiting[0].call
            size_bytes += call.size_bytes
            if call.has_ranges or size_bytes > _BYTES_AT_ONCE or not keys.isdisjoint(call.keys):
                break
            keys |= call.keys
            taken.append(self._waiting.popleft())
        return taken

    async def _write_and_start_next(self, calls: list[Pending], rows: int) -> None:
        try:
            await self._write(calls, _Attempt())
        finally:
            self._rows_in_flight -= rows
            self._end_statement()

    def _end_statement(self) -> None:
        self._in_flight -= 1
        self._start()
        if not self._in_flight and self._idle is not None:
            self._idle.set_result(None)
            self._idle = None

    async def _write(self, calls: Sequence[Pending], attempt: _Attempt) -> None:
        for _ in range(_INSERT_ATTEMPTS):
            try:
                verdicts = await self._verdicts(calls, attempt)
            except InsertCollision:
                # The other session has committed its row by now, or has rolled it back.
                if len(calls) > 1:
                    for call in calls:
                        await self._write([call], attempt)
                    return
            else:
                for call, verdict in zip(calls, verdicts, strict=True):
                    self._decide(call, attempt, verdict)
                return
        refusal = Retry("other sessions insert the same rows")
        self._decide(calls[0], attempt, _unknown() if attempt.in_doubt else refusal)

    async def _verdicts(
        self, calls: Sequence[Pending], attempt: _Attempt
    ) -> Sequence[StoreError | None]:
        """The outcomes of the calls; raises ``InsertCollision`` if another row was inserted."""
        loop = asyncio.get_running_loop()
        arrays = Arrays(call.call for call in calls)
        arguments = arrays.arguments(self._epoch, attempt.batch)
        seconds = _RANGE_SECONDS if arrays.deletes_ranges else STATEMENT_SECONDS
        give_up_at = loop.time() + RETRY_SECONDS
        while True:
            began = perf_counter_ns()
            lost = len(attempt.lost)
            try:
                said = await self._connections.run_once(
                    lambda connection: self._send(connection, attempt, arguments), seconds
                )
            except InsertCollision:
                raise
            except (Unavailable, Retry) as error:
                if attempt.in_doubt and not lost:
                    give_up_at = loop.time() + _DOUBT_SECONDS
                    _log.warning("commit_repeated", reason=str(error.__cause__ or error))
                is_final = isinstance(error, Retry) and not attempt.in_doubt
                if is_final or loop.time() >= give_up_at:
                    self._ended(error)
                    return [_unknown() if attempt.in_doubt else error] * len(calls)
            except StoreError as error:
                self._ended(error)
                return [_unknown() if attempt.in_doubt else error] * len(calls)
            else:
                self._latency.observe(perf_counter_ns() - began)
                self._ended(None)
                return [_verdict(each, in_doubt=attempt.in_doubt) for each in said]
            await anyio.sleep(CONNECT_SECONDS)

    async def _send(
        self,
        connection: Any,
        attempt: _Attempt,
        arguments: Sequence[Any],
        *,
        ends_transaction: bool = False,
    ) -> list[int]:
        session: int = connection.get_server_pid()
        warnings: list[str] = []

        def hear(_connection: Any, message: Any) -> None:
            # The name does not depend on the language of PostgreSQL. Other messages, such as a
            # warning before a wraparound of transaction ids, say nothing about this commit.
            if message.server_source_function == _WAIT_FOR_STANDBY:
                warnings.append(str(message))

        connection.add_log_listener(hear)
        try:
            with terminable(connection):
                said: list[int] = await connection.fetchval(self._query, *arguments)
                if ends_transaction:
                    is_written = all(each in (ACCEPTED, WRITTEN_BEFORE) for each in said)
                    await connection.execute("COMMIT" if is_written else "ROLLBACK")
        except FAILURES as failure:
            if isinstance(translate(failure), Lost):
                attempt.lost.append(session)
            raise
        finally:
            if not connection.is_closed():
                connection.remove_log_listener(hear)
        if warnings:
            # The wait for the standby was canceled, so the standby may lack the commit.
            _log.warning("standby_wait_canceled", reason=warnings[0])
            raise Unknown("PostgreSQL has not waited for its standby")
        return said


async def _outcome(pending: Pending) -> StoreError | None:
    """Wait for the outcome of a call; deliver a cancellation of the caller afterwards."""
    is_cancelled = False
    task = asyncio.current_task()
    assert task is not None
    with anyio.CancelScope(shield=True):
        while not pending.outcome.done():
            try:
                await asyncio.wait([pending.outcome])
            except asyncio.CancelledError:
                is_cancelled = True
                task.uncancel()
    if is_cancelled:
        task.cancel()
    return pending.outcome.result()


def completed(error: StoreError | None) -> Future[None]:
    """The future of a commit with this outcome; raises ``StoreError`` if nothing was written."""
    written: Future[None] = asyncio.get_running_loop().create_future()
    if error is None:
        written.set_result(None)
    elif isinstance(error, Unknown):
        # Don't raise the error of the call: such an error would mean that nothing was written.
        written.set_exception(error)
        # Read the exception, because asyncio logs exceptions that no caller reads.
        written.exception()
    else:
        raise error
    return written


def _verdict(said: int, *, in_doubt: bool) -> StoreError | None:
    if said in (ACCEPTED, WRITTEN_BEFORE):
        return None
    if in_doubt:
        # The first attempt was refused, or it was written and another owner then changed the row.
        return _unknown()
    if said == FENCED:
        return Fenced("a guard does not have its value")
    assert said == CONFLICT
    return Conflict("a head is not the expected one")


def _unknown() -> Unknown:
    return Unknown("the connection to PostgreSQL broke during the commit")
