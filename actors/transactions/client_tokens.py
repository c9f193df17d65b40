"""Client tokens: a repeated transaction succeeds without being done again.

A token is a row that is committed with its transaction, and is valid for ten minutes of domain
time. Rows are grouped by the ten minutes of their creation. A lookup reads the present and the
previous group, and older groups are deleted whole. It also reads the next group, because the clock
of the node that wrote the row may be ahead of this node's clock.
"""

from __future__ import annotations

from asyncio import Future
from typing import Any, Final

import structlog
from msgspec import Struct, msgpack

from dynactor.actors.runtime.clock import Clock
from dynactor.actors.runtime.commit_retry import commit_past_stalls
from dynactor.model.errors import (
    IdempotentParameterMismatchException,
    InternalServerError,
    TransactionInProgressException,
)
from dynactor.model.limits import CLIENT_TOKEN_SECONDS
from dynactor.storage import key_layout
from dynactor.storage.store import Group, Store, StoreError

_IN_PROGRESS: Final = "The transaction with the given request token is already in progress."
_MISMATCH: Final = (
    "Specified idempotent token was used with different request parameters within the "
    "idempotency window"
)

_NONE: Final = [None] * 3

_log = structlog.get_logger("actors")


class StoredToken(Struct, frozen=True):
    """A token's row: the digest of its request, and the time."""

    digest: bytes
    epoch_seconds: float


_encode = msgpack.Encoder().encode
_decode = msgpack.Decoder(StoredToken).decode


class TokenClaim:
    """A token that is claimed by one request.

    ``is_repeated``: its transaction was done before. ``pending`` completes when the outcome is
    known; None while nothing was sent to a partition.
    """

    def __init__(self, token: str, row: tuple[bytes, bytes], *, is_repeated: bool) -> None:
        self.token = token
        self.row = row
        self.is_repeated = is_repeated
        self.pending: Future[Any] | None = None


class ClientTokens:
    """The tokens of one account.

    Invariant: a token is in ``_running`` from its claim until its row is durable, or will not be
    written.
    """

    def __init__(self, store: Store, clock: Clock, account_id: str) -> None:
        self._store = store
        self._clock = clock
        self._account_id = account_id
        # The digest of each request in flight.
        self._running: dict[str, bytes] = {}

    async def claim(self, token: str, digest: bytes) -> TokenClaim:
        """Claim a token until ``release``.

        Raises ``TransactionInProgressException``, ``IdempotentParameterMismatchException`` after
        another request, or ``InternalServerError`` if the store can't be read.
        """
        running = self._running.get(token)
        if running is not None:
            if running == digest:
                raise TransactionInProgressException(_IN_PROGRESS)
            raise IdempotentParameterMismatchException(_MISMATCH)
        # Claim the token before the first await, so that no other request claims it meanwhile.
        self._running[token] = digest
        try:
            return await self._looked_up(token, digest)
        except BaseException:
            del self._running[token]
            raise

    async def _looked_up(self, token: str, digest: bytes) -> TokenClaim:
        now = self._clock.now_epoch_seconds()
        period = _period(now)
        periods = (period, period - 1, period + 1)
        rows = [key_layout.client_token(at, self._account_id, token) for at in periods]
        try:
            # Nearly every token is new. The view ``latest`` has all durable rows, and is much
            # faster for a missing row, because it needs no exception.
            found = await self._store.latest.load(rows)
            if found != _NONE:
                found = await self._store.durable().load(rows)
        except StoreError as error:
            raise InternalServerError(f"Nothing was written: {error}") from error
        stored = [_decode(value) for value in found if value is not None]
        counting = [one for one in stored if now - one.epoch_seconds < CLIENT_TOKEN_SECONDS]
        if any(one.digest != digest for one in counting):
            raise IdempotentParameterMismatchException(_MISMATCH)
        row = (rows[0], _encode(StoredToken(digest, now)))
        return TokenClaim(token, row, is_repeated=bool(counting))

    def release(self, claim: TokenClaim) -> None:
        """Release the token as soon as the outcome of its transaction is known."""
        pending = claim.pending
        if pending is None or pending.done():
            self._running.pop(claim.token, None)
        else:
            pending.add_done_callback(lambda _: self._running.pop(claim.token, None))

    async def trim(self) -> float:
        """Delete expired tokens; returns the seconds until the next call."""
        before = _period(self._clock.now_epoch_seconds()) - 1
        try:
            (trimmed,) = await self._store.latest.load([key_layout.CLIENT_TOKENS_TRIMMED])
            start, end = key_layout.client_token_range(trimmed, before)
            if await self._store.durable().page(start, end, max_rows=1, max_bytes=1):
                await self._delete(trimmed, start, end)
        except StoreError as error:
            _log.warning("token_trimming_delayed", error=str(error))
        return CLIENT_TOKEN_SECONDS

    async def _delete(self, trimmed: bytes | None, start: bytes, end: bytes) -> None:
        group = Group(key_layout.CLIENT_TOKENS_TRIMMED, trimmed, end, discards=[(start, end)])
        durable = await commit_past_stalls(self._store, [group])
        await durable


def _period(epoch_seconds: float) -> int:
    return int(epoch_seconds // CLIENT_TOKEN_SECONDS)
