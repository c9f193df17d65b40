"""A fake PostgreSQL server that executes the statements of ``storage/postgresql`` in memory.

Sessions have transactions, row locks and advisory locks. A statement that needs a lock of another
session waits. A commit may take time between its checks and its end, and other sessions then wait
for its rows. A statement is executed in the order in which it arrives on its session.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, NamedTuple

import asyncpg
from msgspec import Struct

from dynactor.storage.postgresql.sql import (
    ACCEPTED,
    COMMIT_SECONDS,
    CONFLICT,
    FENCED,
    FIRST_SHARE_SLOT,
    INSERT_COLLISION,
    LEADER_SLOT,
    OWNED_BY_ANOTHER,
    READ_BY_ANOTHER,
    SLOT_SHIFT,
    WRITTEN_BEFORE,
)
from dynactor.storage.store import LOCK_SECONDS

_VERSION_BYTES: Final = 8
# The commits that a new owner does not wait for end so much later.
_LATE_SECONDS: Final = 1.0
# PostgreSQL ends a transaction that waits for locks in a circle. Here a long wait counts as one.
DEADLOCK_SECONDS: Final = 5.0
_DEADLOCK: Final = "40P01"
_LOCK_TIMEOUT: Final = "55P03"
_FAILED_TRANSACTION: Final = "25P02"
# The longest key that is stored unchanged; the fake stores no longer ones.
_KEY_BYTES: Final = 2_600


class Statement(NamedTuple):
    """A statement in place of its SQL. ``epoch`` and ``slot`` are those of the caller."""

    kind: str
    epoch: int = 0
    slot: int = LEADER_SLOT
    is_reverse: bool = False


class Refused(asyncpg.PostgresError):  # type: ignore[misc]  # the driver has no types
    """The error that a statement ends with."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__(f"refused with {sqlstate}")
        self.sqlstate = sqlstate


class _Wait(Exception):
    """The statement needs a lock of another session."""


class MemberRow(Struct):
    """A row of the table of nodes."""

    name: str
    incarnation: str
    address: str
    version: str
    beat: int = 0
    epoch: int = 0
    is_leaving: bool = False
    share: int = 0


class _Snapshot(NamedTuple):
    keys: list[bytes]
    values: dict[bytes, bytes]
    epochs: dict[int, int]


class Commit(NamedTuple):
    """The writes of an accepted commit statement. A value of None deletes the row."""

    epoch: int
    batch: bytes
    heads: frozenset[bytes]
    ranges: list[tuple[bytes, bytes]]
    discards: list[tuple[bytes, bytes]]
    rows: dict[bytes, bytes | None]
    raises: list[bytes]


class _Arguments(NamedTuple):
    """The arguments of a commit statement, see ``storage/postgresql/commit_call.py``."""

    checks: list[Any]
    inserts: list[Any]
    puts: list[Any]
    deletes: list[Any]
    ranges: list[Any]
    raises: list[Any]

    @property
    def guards(self) -> list[bytes]:
        """The rows that the commit compares, and does not change."""
        return [key for _, _, is_head, key, _ in self.checks if not is_head]

    @property
    def locked(self) -> list[bytes]:
        """The rows that the commit locks against all others."""
        return [
            *(key for _, _, is_head, key, _ in self.checks if is_head),
            *(each[3] for each in (*self.inserts, *self.puts)),
            *(key for _, _, key in self.deletes),
            *(key for _, key in self.raises),
        ]

    def commit(self, epoch: int, batch: bytes, passed: set[int]) -> Commit:
        """The writes of the calls that were not refused."""
        written = [each for each in (*self.inserts, *self.puts) if each[1] in passed]
        rows: dict[bytes, bytes | None] = {
            each[3]: each[4] or b"" for each in self.inserts if each[1] in passed
        }
        rows |= {key: None for _, call, key in self.deletes if call in passed}
        rows |= {each[3]: each[4] for each in self.puts if each[1] in passed}
        assert all(len(key) <= _KEY_BYTES for key in rows)
        return Commit(
            epoch,
            batch,
            frozenset(each[3] for each in written if each[2]),
            [(low, high) for _, low, high, _, _, is_discard in self.ranges if not is_discard],
            [(low, high) for _, low, high, _, _, is_discard in self.ranges if is_discard],
            rows,
            [key for call, key in self.raises if call in passed],
        )


class Session:
    """A session of a client. ``ended`` is called once when the server has ended it."""

    def __init__(self, number: int, node: str) -> None:
        self.number = number
        self.node = node
        self.is_open = True
        self.ended: Callable[[], None] = lambda: None
        self.in_transaction = False
        self.has_failed = False
        self.is_snapshot = False
        # After this time without a statement the session ends.
        self.idle_seconds: float | None = None
        self.idle_timer: asyncio.TimerHandle | None = None
        # When its commit began, by the loop's clock.
        self.committing_since = 0.0
        self.snapshot: _Snapshot | None = None
        self.pending: list[Commit] = []
        self.exclusive: set[bytes] = set()
        self.shared: set[bytes] = set()


class FakePostgresql:
    """The rows, the nodes and the members; see the module.

    Planted faults change whether commits and reads compare the epoch, and whether a new owner waits
    for the commits in flight.
    """

    guards_commits = True
    guards_reads = True
    waits_for_commits = True

    def __init__(self, ended_commit: Callable[[Commit], None] = lambda _: None) -> None:
        """``ended_commit`` is called just before the writes of a commit become visible."""
        self.keys: list[bytes] = []
        self.values: dict[bytes, bytes] = {}
        self._batches: dict[bytes, bytes] = {}
        # The epochs of the slots, and the sessions that hold their locks.
        self.epochs: dict[int, int] = {LEADER_SLOT: 0}
        self.locks: dict[int, Session] = {}
        self.members: dict[str, MemberRow] = {}
        self._discards: list[tuple[bytes, bytes]] = []
        # All open sessions.
        self._sessions: list[Session] = []
        self._exclusive: dict[bytes, Session] = {}
        self._shared: dict[bytes, list[Session]] = {}
        # The sessions with a commit in flight, and the one that waits for all of them, or that
        # keeps new ones out.
        self._committing: list[Session] = []
        self._barrier: Session | None = None
        self._waiting: list[_Waiting] = []
        self._is_waking = False
        self._ended_commit = ended_commit
        # The pause of a commit between its checks and its end.
        self.pause: Callable[[], float] = lambda: 0.0

    # -- sessions -----------------------------------------------------------------------------

    def begin(self, session: Session) -> None:
        """Begin a session."""
        self._sessions.append(session)

    def run(
        self, session: Session, statement: Statement | str, arguments: tuple[Any, ...], done: _Done
    ) -> None:
        """Execute a statement; ``done`` gets its rows or its error."""
        if not session.is_open:
            return
        if session.idle_timer is not None:
            session.idle_timer.cancel()
            session.idle_timer = None
        self._try(_Waiting(session, statement, arguments, done))

    def end(self, session: Session) -> None:
        """End a session: roll back its transaction, and release its locks."""
        if not session.is_open:
            return
        session.is_open = False
        self._sessions = [each for each in self._sessions if each is not session]
        self._waiting = [each for each in self._waiting if each.session is not session]
        self.locks = {slot: each for slot, each in self.locks.items() if each is not session}
        self._end_transaction(session)
        session.ended()

    def _try(self, waiting: _Waiting) -> bool:
        session = waiting.session
        try:
            rows = self._execute(waiting)
        except _Wait:
            if waiting.timer is None:
                loop = asyncio.get_running_loop()
                seconds = COMMIT_SECONDS if waiting.is_for_commits else DEADLOCK_SECONDS
                waiting.timer = loop.call_later(seconds, self._give_up, waiting)
                self._waiting.append(waiting)
            return False
        except Refused as error:
            self._settle(waiting)
            if session.in_transaction:
                session.has_failed = True
                self._release(session)
            self._arm(session)
            waiting.done(error)
            return True
        self._settle(waiting)
        if rows is not None:
            self._arm(session)
            waiting.done(rows)
        return True

    def _settle(self, waiting: _Waiting) -> None:
        if waiting.timer is not None:
            waiting.timer.cancel()
            self._waiting = [each for each in self._waiting if each is not waiting]

    def _give_up(self, waiting: _Waiting) -> None:
        if all(each is not waiting for each in self._waiting):
            return
        self._settle(waiting)
        session = waiting.session
        if self._barrier is session and not session.in_transaction:
            self._barrier = None
        if session.in_transaction:
            session.has_failed = True
        self._release(session)
        waiting.done(Refused(_LOCK_TIMEOUT if waiting.is_for_commits else _DEADLOCK))

    def _arm(self, session: Session) -> None:
        if session.idle_seconds is not None and session.in_transaction:
            loop = asyncio.get_running_loop()
            session.idle_timer = loop.call_later(session.idle_seconds, self.end, session)

    def _wake(self) -> None:
        """Try the waiting statements again soon, in their order."""
        if self._waiting and not self._is_waking:
            self._is_waking = True
            asyncio.get_running_loop().call_soon(self._retry)

    def _retry(self) -> None:
        self._is_waking = False
        for waiting in list(self._waiting):
            if any(each is waiting for each in self._waiting):
                self._try(waiting)

    # -- statements ---------------------------------------------------------------------------

    def _execute(self, waiting: _Waiting) -> list[Any] | None:
        """Execute a statement; None if it ends later."""
        session, statement, arguments, _ = waiting.parts
        if isinstance(statement, str):
            return self._control(session, statement)
        if session.has_failed:
            raise Refused(_FAILED_TRANSACTION)
        execute = getattr(self, f"_{statement.kind}")
        if statement.kind == "commit":
            return self._commit(waiting)
        rows: list[Any] = execute(session, statement, *arguments)
        return rows

    def _control(self, session: Session, text: str) -> list[Any]:
        if text.startswith("BEGIN"):
            session.in_transaction = True
            session.has_failed = False
            session.is_snapshot = "REPEATABLE READ" in text
            _, has_timeout, milliseconds = text.partition("session_timeout = ")
            session.idle_seconds = int(milliseconds) / 1_000 if has_timeout else None
        elif text == "COMMIT":
            if not session.has_failed:
                for commit in session.pending:
                    self._apply(commit)
            self._end_transaction(session)
        else:
            assert text == "ROLLBACK", text
            self._end_transaction(session)
        return []

    def _end_transaction(self, session: Session) -> None:
        session.in_transaction = session.has_failed = session.is_snapshot = False
        session.idle_seconds = None
        if session.idle_timer is not None:
            session.idle_timer.cancel()
            session.idle_timer = None
        session.snapshot = None
        session.pending = []
        self._release(session)

    def _release(self, session: Session) -> None:
        """Release the locks of a transaction."""
        for key in session.exclusive:
            del self._exclusive[key]
        for key in session.shared:
            self._shared[key].remove(session)
            if not self._shared[key]:
                del self._shared[key]
        session.exclusive, session.shared = set(), set()
        self._committing = [each for each in self._committing if each is not session]
        if self._barrier is session:
            self._barrier = None
        self._wake()

    # -- reads --------------------------------------------------------------------------------

    def _state(self, session: Session, statement: Statement) -> _Snapshot:
        """The state that a statement reads."""
        state = session.snapshot or _Snapshot(self.keys, self.values, self.epochs)
        if session.is_snapshot and session.snapshot is None:
            state = session.snapshot = _Snapshot(
                self.keys.copy(), self.values.copy(), self.epochs.copy()
            )
        if self.guards_reads and state.epochs[statement.slot] > statement.epoch:
            raise Refused(READ_BY_ANOTHER)
        return state

    def _load(self, session: Session, statement: Statement, *keys: list[bytes]) -> list[Any]:
        values = self._state(session, statement).values
        # The order of the keys must not depend on hashes.
        return [(key, values[key]) for each in keys for key in sorted(each) if key in values]

    def _page(
        self,
        session: Session,
        statement: Statement,
        low: bytes,
        high: bytes,
        limit: int,
        max_bytes: int,
    ) -> list[Any]:
        state = self._state(session, statement)
        return [
            (key, state.values[key], None)
            for key in _page(state, low, high, limit, max_bytes, is_reverse=statement.is_reverse)
        ]

    def _first_rows(
        self,
        session: Session,
        statement: Statement,
        low_keys: list[bytes],
        high_keys: list[bytes],
        limit: int,
    ) -> list[Any]:
        state = self._state(session, statement)
        return [
            (place, key, state.values[key], None)
            for place, (low, high) in enumerate(zip(low_keys, high_keys, strict=True), 1)
            for key in _page(state, low, high, limit, 1 << 40, is_reverse=statement.is_reverse)
        ]

    def _load_with_page(
        self,
        session: Session,
        statement: Statement,
        low: bytes,
        high: bytes,
        limit: int,
        max_bytes: int,
        *keys: list[bytes],
    ) -> list[Any]:
        state = self._state(session, statement)
        page = _page(state, low, high, limit, max_bytes, is_reverse=False)
        values = state.values
        return [
            *(
                (key, values[key], None, False)
                for each in keys
                for key in sorted(each)
                if key in values
            ),
            *((key, values[key], None, True) for key in page),
        ]

    def _lock(self, session: Session, _: Statement, keys: list[bytes]) -> list[Any]:
        there = [key for key in keys if key in self.values]
        self._take(session, there, ())
        return [(1,)] * len(there)

    # -- commits ------------------------------------------------------------------------------

    def _commit(self, waiting: _Waiting) -> list[Any] | None:
        session, _, arguments, _ = waiting.parts
        epoch, batch, _, said, *columns = arguments
        call = _Arguments(
            *(
                list(zip(*columns[at : at + width], strict=True))
                for at, width in ((0, 5), (5, 6), (11, 6), (17, 3), (20, 6), (26, 2))
            )
        )
        self._own(session, epoch)
        inserted = [each[3] for each in call.inserts]
        try:
            self._take(session, call.locked, call.guards)
        except _Wait:
            if waiting.waited_for is None:
                waiting.waited_for = frozenset(key for key in inserted if key in self._exclusive)
            raise
        said = self._verdicts(call, batch, list(said))
        passed = {number for number, verdict in enumerate(said, 1) if verdict == ACCEPTED}
        if not passed:
            self._finish(session)
            return [(said,)]
        commit = call.commit(epoch, batch, passed)
        waited_for = waiting.waited_for or frozenset()
        if any(each[3] in self.values for each in call.inserts if each[1] in passed) or (
            not waited_for.isdisjoint(self.values)
        ):
            self._finish(session)
            raise Refused(INSERT_COLLISION)
        if session.in_transaction:
            session.pending.append(commit)
            return [(said,)]
        pause = self.pause()
        if not pause:
            self._apply(commit)
            self._finish(session)
            return [(said,)]
        asyncio.get_running_loop().call_later(pause, self._end_commit, waiting, commit, said)
        return None

    def _verdicts(self, call: _Arguments, batch: bytes, said: list[int]) -> list[int]:
        for _, number, is_head, key, value in call.checks:
            is_mine = is_head and self._batches.get(key) == batch
            if self.values.get(key) != value or is_mine:
                verdict = WRITTEN_BEFORE if is_mine else CONFLICT if is_head else FENCED
                said[number - 1] = max(said[number - 1], verdict)
        return said

    def _end_commit(
        self, waiting: _Waiting, commit: Commit, said: list[int], *, is_late: bool = False
    ) -> None:
        """End a commit that has taken some time."""
        session = waiting.session
        if not (is_late or self.waits_for_commits or commit.epoch in self.epochs.values()):
            # A new owner did not wait for it. This shows when the owner has read the rows.
            end = partial(self._end_commit, waiting, commit, said, is_late=True)
            asyncio.get_running_loop().call_later(_LATE_SECONDS, end)
        elif session.is_open:
            self._apply(commit)
            self._finish(session)
            waiting.done([(said,)])

    def _finish(self, session: Session) -> None:
        """End the transaction of a single statement."""
        if not session.in_transaction:
            self._release(session)

    def _own(self, session: Session, epoch: int) -> None:
        if all(each is not session for each in self._committing):
            if self._barrier is not None and self._barrier is not session:
                raise _Wait
            self._committing.append(session)
            session.committing_since = asyncio.get_running_loop().time()
        if self.guards_commits and epoch not in self.epochs.values():
            self._finish(session)
            raise Refused(OWNED_BY_ANOTHER)

    def _take(self, session: Session, exclusive: Iterable[bytes], shared: Iterable[bytes]) -> None:
        """Lock rows for a session; all or none."""
        exclusive, shared = set(exclusive), set(shared)
        for key in exclusive | shared:
            if self._exclusive.get(key, session) is not session:
                raise _Wait
        for key in exclusive:
            if any(each is not session for each in self._shared.get(key, ())):
                raise _Wait
        for key in exclusive - session.exclusive:
            self._exclusive[key] = session
        session.exclusive |= exclusive
        for key in shared - session.exclusive - session.shared:
            self._shared.setdefault(key, []).append(session)
            session.shared.add(key)

    def _apply(self, commit: Commit) -> None:
        self._ended_commit(commit)
        for low, high in commit.ranges:
            for key in self.keys_between(low, high):
                self._delete(key)
        self._discards += commit.discards
        for key, value in commit.rows.items():
            if value is None:
                self._delete(key)
            else:
                self._put(key, value)
                if key in commit.heads:
                    self._batches[key] = commit.batch
                else:
                    self._batches.pop(key, None)
        for key in commit.raises:
            version = int.from_bytes(self.values.get(key, b""), "big") + 1
            self._put(key, version.to_bytes(_VERSION_BYTES, "big"))

    def _put(self, key: bytes, value: bytes) -> None:
        if key not in self.values:
            insort(self.keys, key)
        self.values[key] = value

    def _delete(self, key: bytes) -> None:
        if self.values.pop(key, None) is not None:
            del self.keys[bisect_left(self.keys, key)]
            self._batches.pop(key, None)

    def keys_between(self, low: bytes, high: bytes) -> list[bytes]:
        """The keys of a range."""
        return self.keys[bisect_left(self.keys, low) : bisect_left(self.keys, high)]

    def _discard(self, session: Session, _: Statement, epoch: int, most: int) -> list[Any]:
        self._own(session, epoch)
        self._finish(session)
        if not self._discards:
            return [(None,)]
        low, high = self._discards[0]
        keys = self.keys_between(low, high)[:most]
        for key in keys:
            self._delete(key)
        if len(keys) < most:
            del self._discards[0]
        return [(len(keys),)]

    # -- ownership ----------------------------------------------------------------------------

    def _try_lock(self, session: Session, statement: Statement) -> list[Any]:
        holder = self.locks.setdefault(statement.slot, session)
        return [(holder is session,)]

    def _epoch(self, _: Session, statement: Statement) -> list[Any]:
        return [(self.epochs[statement.slot],)]

    def _owner(self, *_: object) -> list[Any]:
        return [{"name": "another", "started_at": datetime.fromtimestamp(0, UTC)}]

    def _wait_for_commits(self, session: Session, _: Statement) -> list[Any]:
        session.idle_seconds = LOCK_SECONDS
        if self._barrier is not None and self._barrier is not session:
            raise _Wait
        self._barrier = session
        if self.waits_for_commits and any(each is not session for each in self._committing):
            raise _Wait
        return [()]

    def _take_over(self, _: Session, statement: Statement, name: str) -> list[Any]:
        del name
        # No other statement of the transaction can fail, so its change is shown at once.
        self.epochs[statement.slot] += 1
        return [(self.epochs[statement.slot],)]

    def _share_slots(self, *_: object) -> list[Any]:
        return [(slot,) for slot in sorted(self.epochs) if slot >= FIRST_SHARE_SLOT]

    def _add_share(self, *_: object) -> list[Any]:
        slot = max(max(self.epochs) + 1, FIRST_SHARE_SLOT)
        self.epochs[slot] = slot << SLOT_SHIFT
        return []

    def _share_epochs(self, *_: object) -> list[Any]:
        return [(each,) for slot, each in self.epochs.items() if slot >= FIRST_SHARE_SLOT]

    def _try_lock_share(self, session: Session, _: Statement, slot: int) -> list[Any]:
        # The lock would end with the transaction, which does nothing else with the slot's lock.
        return [(self.locks.get(slot, session) is session,)]

    def _fence_share(self, _: Session, statement: Statement, slot: int, share: int) -> list[Any]:
        if self.epochs[slot] == share and self.epochs[statement.slot] == statement.epoch:
            self.epochs[slot] += 1
        return []

    def _fence_shares(self, *_: object) -> list[Any]:
        for slot in self.epochs:
            self.epochs[slot] += slot >= FIRST_SHARE_SLOT
        return []

    def _end_sessions(self, session: Session, _: Statement, numbers: list[int]) -> list[Any]:
        there = [each for each in self._sessions if each.number in numbers]
        for each in there:
            asyncio.get_running_loop().call_soon(self.end, each)
        return [(each.number, True) for each in there] + [(session.number, None)]

    def _end_slow_commits(self, session: Session, _: Statement) -> list[Any]:
        slow_since = asyncio.get_running_loop().time() - COMMIT_SECONDS
        slow = [
            each
            for each in self._committing
            if each is not session and each.committing_since < slow_since
        ]
        for each in slow:
            asyncio.get_running_loop().call_soon(self.end, each)
        return [(len(slow),)]

    def _sizes(self, *_: object) -> list[Any]:
        return [(0, 0)]

    # -- members ------------------------------------------------------------------------------

    def _join(
        self, _: Session, __: Statement, name: str, incarnation: str, address: str, version: str
    ) -> list[Any]:
        row = self.members.get(name)
        if row is not None and row.address != address:
            return []
        self.members[name] = MemberRow(name, incarnation, address, version)
        return [(name, self._end_owner(row))]

    def _beat(
        self,
        _: Session,
        __: Statement,
        name: str,
        incarnation: str,
        epoch: int,
        is_leaving: bool,
        share: int,
        version_key: bytes,
        share_slot: int,
    ) -> list[Any]:
        row = self.members.get(name)
        is_renewed = row is not None and row.incarnation == incarnation
        common = {
            "clock": time.time(),
            "owned_epoch": self.epochs[LEADER_SLOT],
            "is_renewed": is_renewed,
            "claims_version": self.values.get(version_key),
            "share_epoch": self.epochs.get(share_slot) if share else None,
        }
        # The statement's snapshot shows the rows before its own update.
        rows = [
            common
            | {
                "name": member.name,
                "incarnation": member.incarnation,
                "beat": member.beat,
                "address": member.address,
                "version": member.version,
                "is_leader": member.epoch == self.epochs[LEADER_SLOT] > 0,
                "is_leaving": member.is_leaving,
                "share": member.share,
            }
            for _, member in sorted(self.members.items())
        ]
        if row is not None and is_renewed:
            row.beat += 1
            row.epoch, row.is_leaving, row.share = epoch, is_leaving, share
        return rows or [common | {"name": None}]

    def _claims(
        self, _: Session, __: Statement, low: bytes, high: bytes, version: bytes
    ) -> list[Any]:
        keys = [*self.keys_between(low, high), *([version] if version in self.values else ())]
        return [(key, self.values[key]) for key in keys]

    def _remove(
        self, _: Session, __: Statement, name: str, incarnation: str, beat: int
    ) -> list[Any]:
        row = self.members.get(name)
        if row is None or (row.incarnation, row.beat) != (incarnation, beat):
            return []
        del self.members[name]
        return [(self._end_owner(row),)]

    def _end_owner(self, row: MemberRow | None) -> int:
        """End the session of a home, whose row is no more; return the number of sessions."""
        if row and row.epoch == self.epochs[LEADER_SLOT] and LEADER_SLOT in self.locks:
            self.end(self.locks[LEADER_SLOT])
            return 1
        return 0

    def _is_owned(self, *_: object) -> list[Any]:
        return [(LEADER_SLOT in self.locks,)]

    def _leave(self, _: Session, __: Statement, name: str, incarnation: str) -> list[Any]:
        row = self.members.get(name)
        if row is not None and row.incarnation == incarnation:
            del self.members[name]
        return []


class _Waiting:
    """A statement that is executed, or that waits for a lock."""

    def __init__(
        self, session: Session, statement: Statement | str, arguments: tuple[Any, ...], done: _Done
    ) -> None:
        self.session = session
        self.done = done
        self.parts = (session, statement, arguments, done)
        self.timer: asyncio.TimerHandle | None = None
        # The keys that other sessions were inserting when a commit began to wait.
        self.waited_for: frozenset[bytes] | None = None

    @property
    def is_for_commits(self) -> bool:
        """Whether it is a new owner's that waits for the commits in flight."""
        return isinstance(self.parts[1], Statement) and self.parts[1].kind == "wait_for_commits"


_Done = Callable[[list[Any] | Exception], None]


def _page(
    state: _Snapshot, low: bytes, high: bytes, limit: int, max_bytes: int, *, is_reverse: bool
) -> Iterator[bytes]:
    keys = state.keys[bisect_left(state.keys, low) : bisect_left(state.keys, high)]
    size_bytes = 0
    for key in reversed(keys) if is_reverse else keys:
        if limit <= 0 or size_bytes >= max_bytes:
            return
        yield key
        limit -= 1
        size_bytes += len(key) + len(state.values[key])


class FakeStatements:
    """Stands in for ``Statements``; the attributes are statements without SQL."""

    def __init__(self, schema: str, epoch: int = 0, slot: int = LEADER_SLOT) -> None:
        del schema
        self._epoch, self._slot = epoch, slot
        for kind in (
            "commit",
            "discard",
            "try_lock",
            "epoch",
            "owner",
            "wait_for_commits",
            "take_over",
            "share_slots",
            "add_share",
            "share_epochs",
            "try_lock_share",
            "fence_share",
            "fence_shares",
            "end_sessions",
            "end_slow_commits",
            "sizes",
        ):
            setattr(self, kind, Statement(kind, epoch, slot))

    def load(self, tables: tuple[int, ...]) -> Statement:
        """See ``Statements``."""
        del tables
        return Statement("load", self._epoch, self._slot)

    def lock(self, table: int) -> Statement:
        """See ``Statements``."""
        del table
        return Statement("lock", self._epoch, self._slot)

    def load_with_page(self, tables: tuple[int, ...], of_page: int) -> Statement:
        """See ``Statements``."""
        del tables, of_page
        return Statement("load_with_page", self._epoch, self._slot)

    def page(self, table: int, *, reverse: bool) -> Statement:
        """See ``Statements``."""
        del table
        return Statement("page", self._epoch, self._slot, reverse)

    def first_rows(self, table: int, *, reverse: bool) -> Statement:
        """See ``Statements``."""
        del table
        return Statement("first_rows", self._epoch, self._slot, reverse)


class FakeMemberStatements:
    """Stands in for ``MemberStatements``."""

    def __init__(self, schema: str) -> None:
        del schema
        for kind in ("join", "beat", "claims", "remove", "is_owned", "leave"):
            setattr(self, kind, Statement(kind))
