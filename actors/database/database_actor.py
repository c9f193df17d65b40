"""The database's actor: carries out changes of tables, one message after another.

The parts of the control plane handle the messages. The actor runs the loop, repeats a message after
a conflict, and adopts the stored catalog again if it may differ from memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Final

import structlog

from dynactor.actors.catalog.tables import Tables
from dynactor.actors.database.parts import PARTS
from dynactor.actors.parts.database_settings import DatabaseSettings
from dynactor.actors.parts.long_work import ContinueWork, LongWork, Work
from dynactor.actors.parts.part import Handlers, Parts
from dynactor.actors.runtime.fencing import is_fenced
from dynactor.actors.runtime.mailbox import Envelope, Mailbox, MailboxClosed, Message
from dynactor.actors.runtime.ref import Ref
from dynactor.actors.table.environment import TableEnvironment
from dynactor.actors.table.messages import KeepStreams, OwnMessage, UrgentMessage
from dynactor.model.errors import DynamoDBError, InternalServerError
from dynactor.model.pauses import CATALOG_SECONDS
from dynactor.storage.catalog import Catalog
from dynactor.storage.store import Conflict, Fenced, StoreError, Unknown
from dynactor.streams.kafka.broker import Broker

_MAILBOX_MESSAGES: Final = 1_000
# Maximum number of repetitions of a message because of a conflict.
_MOST_CONFLICTS: Final = 3
# The answer if a sync failed or the connection was lost during a commit.
_UNKNOWN: Final = "Whether this was changed is unknown"

_log = structlog.get_logger("actors")


class CatchUp(Message[None], frozen=True):
    """Load the catalog again, because the stored one may differ from memory."""


class DatabaseActor:
    """Carries out changes of tables, one after another; only this actor adds and removes tables.

    Others send messages through ``ref``, and read from ``parts``.
    """

    name = "database"

    def __init__(
        self,
        environment: TableEnvironment,
        settings: DatabaseSettings,
        tables: Tables,
        broker: Broker | None,
    ) -> None:
        self.mailbox = Mailbox(_MAILBOX_MESSAGES, copy_messages=settings.copy_messages)
        self.ref = Ref(self.mailbox)
        self.in_progress: list[Envelope] = []
        self._settings = settings
        self.parts = Parts(
            PARTS,
            environment,
            settings,
            tables,
            broker,
            tell=self.tell,
            tell_later=self._tell_later,
        )
        self._owner = self.parts.owner
        self._handlers: Handlers = {**self.parts.handlers, CatchUp: _do_nothing}
        self._long_work = LongWork(lambda message, first: self.tell(message, first=first))
        # Whether an earlier run crashed, so that a change may be incomplete in memory.
        self._crashed = False

    async def run(self) -> None:
        """Work through the mailbox until it is closed and drained."""
        self._owner.is_behind |= self._crashed
        await self._long_work.drop()
        await self._catch_up()
        self._crashed = True
        while batch := await self.mailbox.take(1, 1):
            for envelope in batch:
                self.in_progress = [envelope, *self._long_work.envelopes]
                await self._answer(envelope)
            self.in_progress = self._long_work.envelopes
        await self._long_work.drop()
        self._crashed = False

    async def _answer(self, envelope: Envelope) -> None:
        work: Work | None = Work(envelope)
        if isinstance(envelope.message, ContinueWork):
            work = self._long_work.take(envelope.message)
        if work is None:
            return
        envelope = work.envelope
        was_in_doubt, was_current = self._owner.is_in_doubt, self._owner.is_current
        try:
            reply = await self._work_past_conflicts(work)
            if work.rest is None:
                envelope.answer(reply)
            else:
                self._long_work.keep(work, first=isinstance(envelope.message, UrgentMessage))
        except InternalServerError as error:
            # A partition of the table has replied with the store's error.
            envelope.refuse(error)
            self._try_again(envelope, error)
        except DynamoDBError as error:
            envelope.refuse(error)
        except StoreError as error:
            is_in_doubt = self._owner.is_in_doubt and not was_in_doubt
            is_unknown = isinstance(error, Unknown) or is_in_doubt
            known = _UNKNOWN if is_unknown else "Nothing was changed"
            envelope.refuse(InternalServerError(f"{known}: {error}"))
            self._try_again(envelope, error)
        if not self._owner.is_current:
            # Catch up immediately, because the next change of the catalog may be hours away.
            if isinstance(envelope.message, CatchUp):
                self._tell_later(CATALOG_SECONDS, CatchUp())
            elif was_current:
                self.tell(CatchUp())

    async def _work_past_conflicts(self, work: Work) -> object:
        """Carry out a message, or its next piece; repeat it if the stored catalog differs."""
        message = work.envelope.message
        while True:
            try:
                if await self._catch_up():
                    await work.drop()
                if work.rest is None:
                    reply = self._handlers[type(message)](message)
                    if not isinstance(reply, AsyncGenerator):
                        return await reply
                    work.rest = reply
                await work.do_piece()
            except Fenced:
                raise
            except Conflict:
                await work.drop()
                # Another node may have assigned numbers only.
                if not await self._owner.refresh_head():
                    self._owner.is_behind = True
                if work.conflicts == _MOST_CONFLICTS:
                    raise
                work.conflicts += 1
            else:
                return None

    async def _catch_up(self) -> bool:
        """Load the catalog if it may differ from memory; return whether it was loaded.

        After a commit of unknown outcome, partitions and followers may use a change that is not
        stored. So all tables restart, whatever the outcome was. After ``StoreError`` or
        ``DynamoDBError``, memory may still be behind.
        """
        if self._owner.is_in_doubt:
            # The commit of unknown outcome may still be written.
            await self._owner.settle()
            self._owner.is_behind = True
        if not self._owner.is_behind:
            return False
        await self._long_work.restart()
        await self.adopt()
        self._owner.is_behind = False
        _log.warning("catalog_reloaded")
        return True

    async def adopt(self, loaded: Catalog | None = None) -> None:
        """Adopt the stored catalog, or the loaded one if this database alone changes it."""
        await self.parts.adopt(loaded)

    async def keep_streams(self) -> float:
        """Let the parts do their periodic work; returns the seconds until the next call."""
        try:
            await self.ref.ask(KeepStreams(), always=True)
        except MailboxClosed:
            pass
        except InternalServerError as error:
            _log.warning("log_trimming_delayed", error=str(error))
            return min(CATALOG_SECONDS, self._settings.keep_streams_seconds)
        return self._settings.keep_streams_seconds

    def _try_again(self, envelope: Envelope, error: Exception) -> None:
        """Repeat an own message later, unless the work has another owner now."""
        if not isinstance(envelope.message, OwnMessage):
            return
        if is_fenced(error):
            _log.warning("phase_fenced", error=str(error))
        else:
            _log.warning("catalog_change_delayed", error=str(error))
            self._tell_later(CATALOG_SECONDS, envelope.message)

    def _tell_later(self, seconds: float, message: Message[Any]) -> None:
        if not seconds:
            self.tell(message)
            return
        asyncio.get_running_loop().call_later(seconds, self.tell, message)

    def tell(self, message: Message[Any], *, first: bool = False) -> None:
        """Put a message into the mailbox, even if it is full, and ignore its reply."""
        if not self.mailbox.closed:
            # The actor handles errors of its own messages itself.
            self.ref.tell(message, always=True, first=first)

    async def close(self) -> None:
        """Stop all partitions, after their accepted writes are answered."""
        await self.parts.close()


async def _do_nothing(_message: CatchUp) -> None:
    """Do nothing, because the actor catches up before each message."""
