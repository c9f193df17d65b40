"""Two or three sessions on PostgreSQL in fixed orders: lock waits, late commits, conflicts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import anyio
import asyncpg
import pytest

from dynactor.storage.postgresql.sql import ACCEPTED, CONFLICT, FENCED, WRITTEN_BEFORE
from dynactor.storage.store import LOCK_SECONDS, Conflict, Group, Unknown
from tests.postgresql.sessions import Session, sessions
from tests.support.servers.postgresql import Postgresql
from tests.support.stores.store import postgresql_store

# One head is in the table of heads; the others are in the table of rows, with a short and a long
# key.
HEADS = [b"\x02head", b"head", b"head" * 1_000]
CLAIM = b"\x01claim"


@pytest.fixture
async def three(postgresql: Postgresql) -> AsyncIterator[list[Session]]:
    async with sessions(postgresql.url()) as three:
        yield three


def change(head: bytes, before: bytes | None, after: bytes, *rows: bytes, **more: object) -> Group:
    """A group that changes a head, and puts rows whose values are the head's new value."""
    return Group(head, before, after, puts=[(row, after) for row in rows], **more)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("ended", ["COMMIT", "ROLLBACK"])
async def test_a_commit_waits_for_a_head_that_another_session_changes(
    three: list[Session], head: bytes, ended: str
) -> None:
    first, second, _ = three
    assert await first.commit(change(head, None, b"0")) == [ACCEPTED]
    await first.begin()
    assert await first.commit(change(head, b"0", b"1", b"a")) == [ACCEPTED]
    await second.start(change(head, b"0", b"2", b"b"))
    await first.end(ended)
    is_moved = ended == "COMMIT"
    assert await second.finish() == [CONFLICT if is_moved else ACCEPTED]
    expected = [b"1", b"1", None] if is_moved else [b"2", None, b"2"]
    assert await second.load(head, b"a", b"b") == expected


@pytest.mark.parametrize("head", HEADS)
async def test_a_statement_fails_if_another_session_creates_its_head(
    three: list[Session], head: bytes
) -> None:
    first, second, _ = three
    await first.begin()
    assert await first.commit(change(head, None, b"1", b"a")) == [ACCEPTED]
    await second.start(change(head, None, b"2", b"b"), change(b"other", None, b"2", b"c"))
    await first.end()
    with pytest.raises(asyncpg.PostgresError) as raised:
        await second.finish()
    assert raised.value.sqlstate == "DY001"
    assert await second.load(head, b"a", b"b", b"other", b"c") == [b"1", b"1", None, None, None]
    # The engine then repeats each group in a call of its own.
    assert await second.commit(change(head, None, b"2", b"b")) == [CONFLICT]


@pytest.mark.parametrize("head", HEADS)
async def test_a_head_is_created_after_another_session_rolled_it_back(
    three: list[Session], head: bytes
) -> None:
    first, second, _ = three
    await first.begin()
    assert await first.commit(change(head, None, b"1", b"a")) == [ACCEPTED]
    await second.start(change(head, None, b"2", b"b"))
    await first.end("ROLLBACK")
    assert await second.finish() == [ACCEPTED]
    assert await second.load(head, b"a", b"b") == [b"2", None, b"2"]


async def test_a_claim_does_not_change_during_a_commit_that_it_guards(three: list[Session]) -> None:
    home, other, _ = three
    await home.commit(change(CLAIM, None, b"home"))
    await home.begin()
    guarded = change(b"\x02p", None, b"1", b"a", guards=[(CLAIM, b"home")])
    assert await home.commit(guarded) == [ACCEPTED]
    await other.start(change(CLAIM, b"home", b"other"))
    await home.end()
    assert await other.finish() == [ACCEPTED]
    late = change(b"\x02p", b"1", b"2", b"b", guards=[(CLAIM, b"home")])
    assert await home.commit(late) == [FENCED]
    assert await home.load(CLAIM, b"a", b"b") == [b"other", b"1", None]


async def test_a_guarded_row_is_not_put_during_a_commit_that_requires_its_absence(
    three: list[Session],
) -> None:
    home, other, _ = three
    await home.commit(change(b"\x02owner", None, b"home", CLAIM))
    await home.begin()
    await home.commit(change(b"\x02p", None, b"1", b"a", guards=[(CLAIM, b"home")]))
    # The claim is put as a plain row here, and that statement takes a weaker lock than one on a
    # head.
    await other.start(change(b"\x02owner", b"home", b"other", CLAIM))
    await home.end()
    assert await other.finish() == [ACCEPTED]


@pytest.mark.parametrize("ended", ["COMMIT", "ROLLBACK"])
async def test_a_commit_waits_for_a_claim_that_another_session_changes(
    three: list[Session], ended: str
) -> None:
    home, other, _ = three
    await home.commit(change(CLAIM, None, b"home"))
    await other.begin()
    await other.commit(change(CLAIM, b"home", b"other"))
    await home.start(change(b"\x02p", None, b"1", b"a", guards=[(CLAIM, b"home")]))
    await other.end(ended)
    assert await home.finish() == [FENCED if ended == "COMMIT" else ACCEPTED]


async def test_commits_under_one_claim_do_not_wait_for_each_other(three: list[Session]) -> None:
    first, second, _ = three
    await first.commit(change(CLAIM, None, b"home"))
    await first.begin()
    await first.commit(change(b"\x02p", None, b"1", guards=[(CLAIM, b"home")]))
    assert await second.commit(change(b"\x02q", None, b"1", guards=[(CLAIM, b"home")])) == [
        ACCEPTED
    ]
    await first.end()


async def test_a_token_is_written_once(three: list[Session]) -> None:
    first, second, _ = three
    token = b"\x0atoken"

    def transaction(head: bytes, name: bytes) -> Group:
        return Group(head, None, name, puts=[(token, name)], guards=[(token, None)])

    await first.begin()
    assert await first.commit(transaction(b"\x02p", b"first")) == [ACCEPTED]
    await second.start(transaction(b"\x02q", b"second"))
    await first.end()
    with pytest.raises(asyncpg.PostgresError, match="DY001"):
        await second.finish()
    assert await second.commit(transaction(b"\x02q", b"second")) == [FENCED]
    assert await second.load(token, b"\x02q") == [b"first", None]


async def test_a_row_that_must_be_absent_is_not_created_during_the_commit(
    three: list[Session],
) -> None:
    first, second, _ = three
    await first.begin()
    guarded = change(b"\x02p", None, b"1", b"a", guards=[(b"row", None)])
    assert await first.commit(guarded) == [ACCEPTED]
    await second.start(change(b"\x02q", None, b"2", b"row"))
    await first.end()
    assert await second.finish() == [ACCEPTED]
    assert await first.load(b"row", b"a") == [b"2", b"1"]


async def test_a_deleted_range_includes_a_row_committed_while_the_delete_waited(
    three: list[Session],
) -> None:
    first, second, _ = three
    head = b"\x02p"
    await first.commit(change(head, None, b"0", b"k1"))
    await first.begin()
    await first.commit(change(head, b"0", b"1", b"k2"))
    # The second session first waits for the lock of the head. Its delete must then see the new row.
    await second.start(Group(head, b"1", b"2", range_deletes=[(b"k", b"l")]))
    await first.end()
    assert await second.finish() == [ACCEPTED]
    assert await first.load(head, b"k1", b"k2") == [b"2", None, None]


async def test_after_a_wait_only_the_refused_group_is_omitted(three: list[Session]) -> None:
    first, second, _ = three
    for head in (b"\x02a", b"\x02b", b"\x02c"):
        await first.commit(change(head, None, b"0"))
    await first.begin()
    await first.commit(change(b"\x02b", b"0", b"1"))
    await second.start(
        change(b"\x02a", b"0", b"2", b"ra"),
        change(b"\x02b", b"0", b"2", b"rb"),
        change(b"\x02c", b"0", b"2", b"rc"),
    )
    await first.end()
    assert await second.finish() == [ACCEPTED, CONFLICT, ACCEPTED]
    assert await first.load(b"ra", b"rb", b"rc", b"\x02b") == [b"2", None, b"2", b"1"]


async def test_heads_are_locked_in_the_order_of_their_keys(three: list[Session]) -> None:
    first, second, third = three
    heads = [b"\x02a", b"\x02b", b"\x02c"]
    for head in heads:
        await first.commit(change(head, None, b"0"))
    await first.begin()
    await first.commit(change(b"\x02a", b"0", b"1"))
    # Both calls name the heads in reverse order. The second call waits for the lowest head, so it
    # holds no lock that the third call needs.
    await second.start(*(change(head, b"0", b"2") for head in reversed(heads)))
    assert await third.commit(change(b"\x02c", b"0", b"3"), change(b"\x02b", b"0", b"3")) == [
        ACCEPTED,
        ACCEPTED,
    ]
    await first.end()
    assert await second.finish() == [CONFLICT] * 3


async def test_a_server_that_takes_over_waits_for_commits_and_refuses_later_ones(
    three: list[Session],
) -> None:
    old, new, _ = three
    await old.begin()
    assert await old.commit(change(b"\x02p", None, b"1")) == [ACCEPTED]
    statements = new._statements
    await new.begin()
    locked = new.connection.execute(statements.wait_for_commits)
    waiting = asyncio.ensure_future(locked)
    new._calling = waiting
    await new.wait_blocked()
    await old.end()
    await waiting
    assert await new.connection.fetchval(statements.take_over, "new") == 1
    await new.end()
    with pytest.raises(asyncpg.PostgresError) as raised:
        await old.commit(change(b"\x02p", b"1", b"2"))
    assert raised.value.sqlstate == "DY002"
    assert await new.commit(change(b"\x02p", b"1", b"2"), epoch=1) == [ACCEPTED]


async def test_commits_wait_for_a_paused_server_that_takes_over_only_for_some_time(
    three: list[Session],
) -> None:
    paused, other, _ = three
    await paused.begin()
    await paused.connection.execute(paused._statements.wait_for_commits)
    with anyio.fail_after(LOCK_SECONDS + 20):
        assert await other.commit(change(b"\x02p", None, b"1")) == [ACCEPTED]


async def test_a_repeated_statement_finds_that_it_was_committed_before(
    three: list[Session],
) -> None:
    first, second, third = three
    call = change(b"\x02p", None, b"1", b"a")
    await first.begin()
    assert await first.commit(call, batch=b"ours") == [ACCEPTED]
    # The first connection is lost before PostgreSQL has committed its statement.
    await second.start(call, batch=b"ours")
    await first.end()
    with pytest.raises(asyncpg.PostgresError, match="DY001"):
        await second.finish()
    assert await second.commit(call, batch=b"ours") == [WRITTEN_BEFORE]
    move = change(b"\x02p", b"1", b"2", b"b")
    await first.begin()
    await first.commit(move, batch=b"next")
    await second.start(move, batch=b"next")
    await first.end()
    assert await second.finish() == [WRITTEN_BEFORE]
    assert await third.commit(move, batch=b"other") == [CONFLICT]


async def test_a_snapshot_does_not_show_a_commit_that_came_later(three: list[Session]) -> None:
    reader, writer, _ = three
    await writer.commit(change(b"\x02p", None, b"1", b"a"))
    await writer.begin()
    await writer.commit(change(b"\x02p", b"1", b"2", b"a"))
    await reader.begin("REPEATABLE READ READ ONLY")
    assert await reader.load(b"a") == [b"1"]
    await writer.end()
    assert await reader.load(b"a") == [b"1"]
    await reader.end()
    assert await reader.load(b"a") == [b"2"]


async def test_locked_heads_show_the_late_commit_that_they_waited_for(
    postgresql: Postgresql,
) -> None:
    url = postgresql.url()
    async with postgresql_store(url) as store, sessions(url, 1) as (session,):
        head = HEADS[0]
        await (await store.commit([change(head, None, b"0", b"a")]))
        await session.begin()
        assert await session.commit(change(head, b"0", b"1", b"a"), epoch=1) == [ACCEPTED]

        async def move() -> None:
            async with store.locked([head]) as locked:
                assert await locked.load([head, b"a"]) == [b"1", b"1"]
                await (await locked.commit([change(head, b"1", b"2", b"b")]))

        moving = asyncio.create_task(move())
        await session.wait_blocking()
        await session.end()
        await moving
        assert await session.load(head, b"a", b"b") == [b"2", b"1", b"2"]


async def test_a_paused_holder_of_locked_heads_writes_nothing(postgresql: Postgresql) -> None:
    url = postgresql.url()
    async with postgresql_store(url) as store, sessions(url, 1) as (session,):
        head = HEADS[0]
        await (await store.commit([change(head, None, b"0", b"a")]))
        async with store.locked([head]) as locked:
            assert await locked.load([head]) == [b"0"]
            # PostgreSQL ends the session of the holder, which does nothing.
            await session.start(change(head, b"0", b"1", b"b"), epoch=1)
            assert await session.finish() == [ACCEPTED]
            # The outcome is unknown if the holder meets the end of its session only now.
            with pytest.raises((Conflict, Unknown)):
                await (await locked.commit([change(head, b"0", b"2", b"c")]))
        assert await session.load(head, b"b", b"c") == [b"1", b"1", None]
