"""A durable row with the position of a reader of a log or of a table.

The row is the head of its own commits. A reader that writes other rows commits them together with
its checkpoint. After a crash, a reader continues from the stored checkpoint.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final

import structlog

from dynactor.actors.followers.checkpoint import Checkpoint
from dynactor.actors.runtime.commit_retry import (
    commit_past_stalls,
    commit_with_retries,
    is_unknown,
)
from dynactor.storage import key_layout
from dynactor.storage.store import (
    Closed,
    Conflict,
    Fenced,
    Full,
    Group,
    Retry,
    Store,
    Unavailable,
)

_COUNTER_BYTES: Final = 8
_BEGINS: Final = b"begins"

_log = structlog.get_logger("actors")


class CommitOutcome(Enum):
    """The outcome of a commit."""

    STORED = "stored"
    # The store was reopened without the last value, and nothing was written.
    CHANGED = "changed"
    # The reader was stopped while the store refused writes, so the outcome is unknown.
    STOPPED = "stopped"


class StoredCheckpoint:
    """The row of one reader; ``value`` is the stored value at the last read or write here."""

    def __init__(self, store: Store, key: bytes, reader: str) -> None:
        self.value: bytes | None = None
        self._store = store
        self._key = key
        self.reader = reader

    async def load(self) -> bytes | None:
        """Read the stored value; None if there is none."""
        (self.value,) = await self._store.latest.load([self._key])
        return self.value

    async def commit(
        self,
        value: bytes,
        stopped: Future[None],
        puts: Sequence[tuple[bytes, bytes]] = (),
        deletes: Sequence[bytes] = (),
    ) -> CommitOutcome:
        """Commit a value and rows durably, even if writes are refused; raises ``Fenced``."""
        group = Group(self._key, self.value, value, puts, deletes)
        try:
            is_stored = await commit_with_retries(self._store, group, stopped, self.reader)
        except Fenced:
            raise
        except Conflict:
            # An earlier attempt may have been written although its outcome was unknown.
            return CommitOutcome.STORED if await self.load() == value else CommitOutcome.CHANGED
        if not is_stored:
            return CommitOutcome.STOPPED
        self.value = value
        return CommitOutcome.STORED

    async def commit_once(
        self,
        value: bytes,
        puts: Sequence[tuple[bytes, bytes]] = (),
        *,
        range_deletes: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        """Commit a value and rows once; wait until they are durable, but not for a full disk.

        Raises as the store's ``commit``, but no ``Retry``. Load the value to continue.
        """
        group = Group(self._key, self.value, value, puts, range_deletes=range_deletes)
        durable = await commit_past_stalls(self._store, [group])
        await durable
        self.value = value

    async def begin(self, value: bytes, range_deletes: Sequence[tuple[bytes, bytes]]) -> None:
        """Delete the rows of earlier attempts, and commit the first value.

        After a lost connection PostgreSQL may execute a commit late, after its repetition. By then
        the row may be absent or have its old value again. So the deletion expects a value that the
        row never has later. Raises as ``commit_once``.
        """
        if self.value != _BEGINS:
            await self.commit_once(_BEGINS)
        await self.commit_once(value, range_deletes=range_deletes)

    async def commit_later(self, value: bytes, puts: Sequence[tuple[bytes, bytes]]) -> Future[None]:
        """Commit once; the future completes when it is durable. Both raise as ``commit_once``."""
        group = Group(self._key, self.value, value, puts)
        durable = await commit_past_stalls(self._store, [group])
        self.value = value
        return durable

    async def store(self, value: bytes, stopped: Future[None]) -> bool:
        """Store only a value, over any stored one; False if the reader is stopped first."""
        while (outcome := await self.commit(value, stopped)) is CommitOutcome.CHANGED:
            pass
        return outcome is CommitOutcome.STORED

    async def try_store(self, value: bytes) -> bool:
        """Store only a value, if the store accepts it at once; the value becomes durable later."""
        return await try_store(self._store, {self: value})

    def group(self, value: bytes) -> Group:
        """The group that stores a value."""
        return Group(self._key, self.value, value)


async def try_store(store: Store, values: Mapping[StoredCheckpoint, bytes]) -> bool:
    """Store only values in one commit, if accepted at once; durable later. Raises ``Fenced``."""
    try:
        durable = await store.commit([each.group(value) for each, value in values.items()])
    except Fenced:
        raise
    except Conflict:
        # The store was reopened without the last values.
        for each in values:
            await each.load()
        return False
    except (Full, Retry, Unavailable, Closed) as error:
        readers = sorted(each.reader for each in values)
        _log.info("checkpoint_not_stored", readers=readers, error=str(error))
        return False
    for each, value in values.items():
        each.value = await each.load() if is_unknown(durable) else value
    return not is_unknown(durable)


def encode_position(counter: int) -> bytes:
    """The value of a checkpoint of a reader that counts no bytes."""
    return counter.to_bytes(_COUNTER_BYTES, "big")


def first_checkpoints(
    subscriber_id: bytes,
    counters: Mapping[int, int],
    logged_bytes: Mapping[int, int] | None = None,
) -> list[tuple[bytes, bytes]]:
    """The rows of a subscriber that starts after these counters, by partition number.

    ``logged_bytes``: the bytes of the logs' records up to these counters, for a reader that counts
    bytes.
    """
    return [
        (
            key_layout.checkpoint(subscriber_id, number),
            encode_position(counter)
            if logged_bytes is None
            else Checkpoint(counter, logged_bytes[number]).encode(),
        )
        for number, counter in counters.items()
    ]
