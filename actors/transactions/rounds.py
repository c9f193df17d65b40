"""Rounds: transactions that are ready at the same time are committed together.

If no round is running, a ready transaction leads one, for all that are ready then or a few turns of
the event loop later. Transactions that become ready later wait for the next round. Each partition
is asked once to join, for all transactions of the round that it has prepared, and hands over one
group. One commit of all groups is the decision. Many transactions therefore need hardly more joins,
messages and commits than one. The transactions of a round share no item, because each has claimed
its items. Each gets its own outcome: if they can't be joined or committed together, they are tried
one by one.

There is one round at a time, so a deadlock is impossible.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, Literal, Protocol, TypeAlias

from dynactor.actors.partition.item_locks import Join, Joined, Resolve
from dynactor.actors.partition.partition import BATCH_BYTES, BATCH_MESSAGES, UNKNOWN
from dynactor.actors.runtime.commit_retry import commit_past_stalls, is_unknown
from dynactor.actors.runtime.replies import PartitionMoved, ignore_result, results, wait_done
from dynactor.actors.table.table import Table
from dynactor.actors.transactions.client_tokens import TokenClaim
from dynactor.model.errors import DynamoDBError, InternalServerError
from dynactor.model.writes.transaction import Action
from dynactor.storage.store import Conflict, Fenced, Group, Store, StoreError

# Maximum number of turns of the event loop that a round waits for transactions in preparation.
_MOST_TURNS: Final = 16
_RESTARTED: Final = "Nothing was written: a partition restarted meanwhile, try again"
_OTHER_OWNER: Final = "Nothing was written: the data have another owner now, try again"


# How a transaction ended. "refused": the server failed, so the units are given back.
Ending: TypeAlias = Literal["committed", "refused", "cancelled"]


# Maximum number of attempts of a round that conflicts, for example with a change of a table.
_MOST_CONFLICTS: Final = 4


class _RoundConflict(Exception):
    """The commit of a round conflicts. Nothing was written."""

    def __init__(self, conflict: Conflict) -> None:
        super().__init__(str(conflict))
        self.conflict = conflict


class PreparedPart(Protocol):
    """A partition that has accepted its part of a transaction."""

    table: Table
    number: int
    actions: list[Action]
    size_bytes: int

    def release(self, transaction_id: bytes, *, gives_back: bool) -> None:
        """Tell the partition that the transaction is not committed."""


class Candidate:
    """A transaction that all its partitions have accepted.

    Until it ends, it has claimed ``items``, which have the ids of their tables. If ``is_taken``, a
    round has taken the transaction and will end it. If ``is_left``, its own task has left
    ``decide`` and will not end it.
    """

    __slots__ = (
        "claim",
        "is_decided",
        "is_left",
        "is_taken",
        "items",
        "prepared",
        "transaction_id",
        "wakeup",
    )

    def __init__(
        self,
        transaction_id: bytes,
        prepared: Sequence[PreparedPart],
        claim: TokenClaim | None,
        items: set[tuple[int, bytes]],
    ) -> None:
        self.transaction_id = transaction_id
        self.prepared = prepared
        self.claim = claim
        self.items = items
        self.is_taken = False
        self.is_left = False
        self.is_decided = False
        # Completes when the transaction is durable, or when it must lead a round.
        self.wakeup: Future[None] = asyncio.get_running_loop().create_future()

    def take(self) -> None:
        """Join a round: the token stays claimed from now on, even if the task is canceled."""
        self.is_taken = True
        if self.claim is not None:
            self.claim.pending = asyncio.get_running_loop().create_future()

    def put_back(self) -> None:
        """Leave the round, which was canceled."""
        self.is_taken = False
        self._free_token()

    def refuse(self, error: DynamoDBError | PartitionMoved) -> None:
        """End the transaction: it can't be committed or is prepared again, or it is unknown."""
        self.is_decided = True
        self._free_token()
        if not self.wakeup.done():
            self.wakeup.set_exception(error)
            # The transaction's task may be canceled.
            ignore_result(self.wakeup)

    def settle(self) -> None:
        """End the transaction: its commit is durable."""
        self._free_token()
        self.wake()

    def wake(self) -> None:
        """Wake the transaction's task."""
        if not self.wakeup.done():
            self.wakeup.set_result(None)

    def _free_token(self) -> None:
        pending = None if self.claim is None else self.claim.pending
        if pending is not None:
            pending.set_result(None)


class Over(Protocol):
    """A callback for each transaction that a round has finished."""

    def __call__(self, candidate: Candidate, ending: Ending) -> None: ...  # noqa: D102 - of the class


class _JoiningPartition:
    """A partition in a round."""

    __slots__ = ("joined", "number", "rows", "table", "transaction_ids")

    def __init__(self, table: Table, number: int) -> None:
        self.table = table
        self.number = number
        self.transaction_ids: list[bytes] = []
        self.rows: list[tuple[bytes, bytes]] = []
        self.joined: Future[Joined | None] | None = None

    def join(self, round_id: bytes) -> Future[Joined | None]:
        message = Join(round_id, tuple(self.transaction_ids), tuple(self.rows))
        self.joined = self.table.join(self.number, message)
        return self.joined

    def resolve(self, round_id: bytes, *, committed: bool) -> None:
        """Tell the partition the outcome, if it has joined."""
        joined = self.joined
        # A partition that has not joined yet sees that the request was canceled.
        if joined is None or joined.cancel():
            return
        if not joined.cancelled() and not joined.exception() and joined.result() is not None:
            self.table.resolve(self.number, Resolve(round_id, committed))


class Rounds:
    """The rounds of one database.

    Invariants: ``_ready`` holds the transactions that are in no round. The first of them leads the
    next round. There is a leader as long as a transaction is ready.
    """

    def __init__(
        self,
        store: Store,
        next_id: Callable[[], bytes],
        wait: Callable[[], Awaitable[None]],
        over: Over,
    ) -> None:
        """``wait`` is called between the steps; for tests."""
        self._store = store
        self._next_id = next_id
        self._wait = wait
        self._over = over
        self._ready: dict[bytes, Candidate] = {}
        self._leader: Candidate | None = None
        # Number of transactions that wait for their partitions, and may soon be ready.
        self.preparing = 0

    async def decide(self, candidate: Candidate) -> None:
        """Have a transaction committed; return when it is durable.

        A transaction whose task is canceled meanwhile is not committed, unless a round has taken
        it. Raises ``InternalServerError``, with an unknown outcome only if the message says so.
        After ``ResourceNotFoundException``, as a table is being deleted, or ``PartitionMoved``,
        nothing was written.
        """
        self._ready[candidate.transaction_id] = candidate
        try:
            if self._leader is None:
                self._leader = candidate
            else:
                await candidate.wakeup
            if self._leader is candidate:
                candidate.wakeup = asyncio.get_running_loop().create_future()
                await self._lead()
                self._hand_over()
                await candidate.wakeup
        finally:
            candidate.is_left = True
            self._ready.pop(candidate.transaction_id, None)
            if self._leader is candidate:
                self._hand_over()

    def _hand_over(self) -> None:
        """Make another transaction lead the next round, if any is ready."""
        self._leader = None
        for candidate in self._ready.values():
            if not candidate.wakeup.cancelled():
                self._leader = candidate
                candidate.wake()
                return

    async def _lead(self) -> None:
        await self._gather()
        round_ = self._take()
        try:
            await self._decide(round_)
        finally:
            self._put_back([each for each in round_ if not each.is_decided])

    async def _gather(self) -> None:
        """Wait some turns of the event loop for transactions that are almost ready.

        A round costs hardly more for many transactions than for one, so waiting pays.
        """
        for _ in range(_MOST_TURNS):
            # Let ready tasks run; this does not wait.
            await asyncio.sleep(0)
            if not self.preparing:
                return

    def _take(self) -> list[Candidate]:
        """The transactions of the next round: all that are ready, up to the limits of a batch."""
        taken: list[Candidate] = []
        actions = size_bytes = 0
        for candidate in self._ready.values():
            actions += sum(len(each.actions) for each in candidate.prepared)
            size_bytes += sum(each.size_bytes for each in candidate.prepared)
            if taken and (actions > BATCH_MESSAGES or size_bytes > BATCH_BYTES):
                break
            taken.append(candidate)
        for candidate in taken:
            candidate.take()
            del self._ready[candidate.transaction_id]
        return taken

    def _put_back(self, left: Sequence[Candidate]) -> None:
        """The leader of their round was canceled: the other transactions are ready again."""
        if not left:
            return
        for candidate in left:
            candidate.put_back()
            # A transaction whose task is still in ``decide`` is ended by that task.
            if candidate.is_left:
                self._over(candidate, "cancelled")
        still = (each for each in left if not each.is_left)
        self._ready = {each.transaction_id: each for each in still} | self._ready

    async def _decide(self, candidates: Sequence[Candidate]) -> None:
        try:
            await self._decide_past_conflicts(candidates)
        except (DynamoDBError, PartitionMoved) as error:
            if len(candidates) == 1:
                candidates[0].refuse(error)
                self._over(candidates[0], "refused")
            else:
                for candidate in candidates:
                    await self._decide([candidate])

    async def _decide_past_conflicts(self, candidates: Sequence[Candidate]) -> None:
        """Repeat a round after a conflict: the partitions may still hold its locks."""
        conflict: Conflict | None = None
        for _ in range(_MOST_CONFLICTS):
            try:
                await self._decide_together(candidates)
            except _RoundConflict as error:
                conflict = error.conflict
            else:
                return
        raise InternalServerError(_RESTARTED) from conflict

    async def _decide_together(self, candidates: Sequence[Candidate]) -> None:
        round_id = self._next_id()
        partitions = _partitions(candidates)
        ending: Ending | None = None
        try:
            groups = await _joined([each.join(round_id) for each in partitions])
            await self._wait()
            durable = await self._commit(groups)
            # If the outcome is unknown already, the partitions must not build on the commit.
            ending = "cancelled" if is_unknown(durable) else "committed"
            for candidate in candidates:
                candidate.is_decided = True
            durable.add_done_callback(partial(_settle, candidates))
            await self._wait()
        finally:
            for each in partitions:
                each.resolve(round_id, committed=ending == "committed")
            if ending is not None:
                for candidate in candidates:
                    self._over(candidate, ending)

    async def _commit(self, groups: list[Group]) -> Future[None]:
        """Commit the groups together; this commit is the decision."""
        try:
            return await commit_past_stalls(self._store, groups)
        except Fenced as error:
            raise InternalServerError(_OTHER_OWNER) from error
        except Conflict as error:
            raise _RoundConflict(error) from error
        except StoreError as error:
            raise InternalServerError(f"Nothing was written: {error}") from error


def _partitions(candidates: Sequence[Candidate]) -> list[_JoiningPartition]:
    found: dict[int, _JoiningPartition] = {}
    for candidate in candidates:
        # The token is written with one of its transaction's groups.
        rows = [] if candidate.claim is None else [candidate.claim.row]
        for prepared in candidate.prepared:
            joining = found.get(prepared.number)
            if joining is None:
                joining = found[prepared.number] = _JoiningPartition(
                    prepared.table, prepared.number
                )
            joining.transaction_ids.append(candidate.transaction_id)
            joining.rows += rows
            rows = []
    return list(found.values())


async def _joined(replies: Sequence[Future[Joined | None]]) -> list[Group]:
    """The groups that the partitions have handed over."""
    await wait_done(replies)
    groups = [joined.group for joined in results(replies) if joined is not None]
    if len(groups) < len(replies):
        raise InternalServerError(_RESTARTED)
    return groups


def _settle(candidates: Sequence[Candidate], durable: Future[Any]) -> None:
    """Settle the transactions of a round, or refuse them if the outcome is unknown."""
    failure = durable.exception()
    for candidate in candidates:
        if failure is None:
            candidate.settle()
        else:
            error = InternalServerError(f"{UNKNOWN}: {failure}")
            error.__cause__ = failure
            candidate.refuse(error)
