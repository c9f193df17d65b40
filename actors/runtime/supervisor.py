"""Actors, and the supervisor that restarts them.

A crash of one actor never stops other actors. The supervisor refuses the messages in progress and
restarts the actor, which loads its state again. After too many crashes in a short time the actor is
abandoned: its messages are refused, and the server continues.

An actor whose commit fails at a guard (``Fenced``) is stopped at once and not restarted, because
its work has another owner now. An actor that fails because the store can't be reached
(``Unavailable``) is restarted without a limit.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Protocol, TypeVarTuple

import anyio
import structlog
from anyio.abc import TaskGroup

from dynactor.actors.runtime.cancellation import is_cancellation
from dynactor.actors.runtime.fencing import is_fenced, is_unavailable
from dynactor.actors.runtime.mailbox import Envelope, Mailbox
from dynactor.model.errors import InternalServerError
from dynactor.model.pauses import RESTART_SECONDS, UNREACHABLE_SECONDS

RESTARTS: Final = 5
RESTART_WINDOW_SECONDS: Final = 10.0

Ts = TypeVarTuple("Ts")

_log = structlog.get_logger("actors")


class _ForeignCancellation(Exception):
    """Work raised ``CancelledError`` although its task was not canceled."""


class Actor(Protocol):
    """The interface of actors for the supervisor."""

    name: str
    mailbox: Mailbox
    # The batch in progress; the supervisor refuses it if the actor crashes.
    in_progress: list[Envelope]

    async def run(self) -> None:
        """Load the state, then work through the mailbox until it is closed and drained."""


class Supervisor:
    """Runs actors in one task group, and handles the crashes of each separately."""

    def __init__(self, task_group: TaskGroup) -> None:
        self._task_group = task_group
        self._running: dict[Actor, asyncio.Future[None]] = {}
        # The scopes of background work, in the order of its start.
        self._background: dict[anyio.CancelScope, None] = {}

    def start(self, actor: Actor) -> None:
        """Run an actor until its mailbox is closed and drained."""
        assert actor not in self._running
        self._running[actor] = asyncio.get_running_loop().create_future()
        self._task_group.start_soon(self._watch, actor, name=actor.name)

    async def stop(self, actor: Actor) -> None:
        """Close an actor's mailbox and wait until the actor has processed it."""
        actor.mailbox.close()
        await self.wait_ended(actor)

    async def wait_ended(self, actor: Actor) -> None:
        """Wait until an actor has ended."""
        ended = self._running.get(actor)
        if ended is not None:
            await asyncio.shield(ended)

    def run_in_background(self, work: Callable[[*Ts], Awaitable[None]], *arguments: *Ts) -> None:
        """Run work in the background, and log it if it fails."""
        scope = anyio.CancelScope()
        self._background[scope] = None
        self._task_group.start_soon(self._run_logged, scope, partial(work, *arguments))

    def keep_in_background(self, work: Callable[[*Ts], Awaitable[None]], *arguments: *Ts) -> None:
        """Run endless work in the background; if it fails, log the error and start it again.

        Work that fails with ``Fenced`` is not started again.
        """
        self.run_in_background(self._restart_forever, partial(work, *arguments))

    def cancel_background(self) -> None:
        """Cancel all background work when the server stops, because the work may take minutes."""
        for scope in self._background:
            scope.cancel()

    async def _run_logged(
        self, scope: anyio.CancelScope, work: Callable[[], Awaitable[None]]
    ) -> None:
        try:
            with scope:
                await _contained(work)
        except Exception:  # noqa: BLE001 - no task waits for this, so it is logged
            _log.exception("background_work_failed")
        finally:
            del self._background[scope]

    async def _restart_forever(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await _contained(work)
            except Exception as error:  # noqa: BLE001 - restarted like an actor
                if is_fenced(error):
                    _log.warning("background_work_fenced", error=str(error))
                    return
                if is_unavailable(error):
                    _log.warning("store_awaited", error=str(error))
                else:
                    _log.exception("background_work_failed")
            # Pause, so that work that fails immediately does not run in a busy loop.
            await anyio.sleep(RESTART_SECONDS)

    async def _watch(self, actor: Actor) -> None:
        crashes: deque[float] = deque(maxlen=RESTARTS)
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    await _contained(actor.run)
                except Exception as error:  # noqa: BLE001 - a crash must not stop other actors
                    if is_fenced(error):
                        _log.warning("actor_fenced", actor=actor.name, error=str(error))
                        await _end(actor, error)
                        return
                    if is_unavailable(error):
                        _log.warning("store_awaited", actor=actor.name, error=str(error))
                        _refuse(actor.in_progress, error)
                        # This is no crash, because the store may be unavailable for hours.
                        await anyio.sleep(UNREACHABLE_SECONDS)
                        continue
                    _log.exception("actor_crashed", actor=actor.name)
                    _refuse(actor.in_progress)
                else:
                    return
                if len(crashes) == RESTARTS and loop.time() - crashes[0] < RESTART_WINDOW_SECONDS:
                    _log.error("actor_abandoned", actor=actor.name)
                    await _end(actor)
                    return
                crashes.append(loop.time())
        finally:
            self._running.pop(actor).set_result(None)


async def _contained(work: Callable[[], Awaitable[None]]) -> None:
    """Turn another task's ``CancelledError`` into an ordinary error; it would end all actors."""
    try:
        await work()
    except asyncio.CancelledError as error:
        if is_cancellation(error):
            raise
        raise _ForeignCancellation("the awaited future was canceled elsewhere") from error


async def _end(actor: Actor, cause: Exception | None = None) -> None:
    """Refuse the messages in progress and in the mailbox, and close the mailbox."""
    actor.mailbox.close()
    _refuse(actor.in_progress, cause)
    _refuse(await actor.mailbox.take(len(actor.mailbox) or 1, 1 << 62), cause)


def _refuse(envelopes: list[Envelope], cause: Exception | None = None) -> None:
    for envelope in envelopes:
        error = InternalServerError("The request failed because of an internal error")
        error.__cause__ = cause
        envelope.refuse(error)
    envelopes.clear()
