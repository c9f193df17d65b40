"""Doubts: commits of unknown outcome that PostgreSQL may still write, and what ends them."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from dynactor.storage.postgresql.commit_call import CommitCall
from dynactor.storage.postgresql.doubts import Doubts
from dynactor.storage.postgresql.store import OwnedStore, open_postgresql
from dynactor.storage.store import Group, Unknown
from tests.postgresql.sessions import Session, sessions
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.servers.postgresql import Postgresql

HEAD, OTHER = b"\x02a", b"\x02b"
NO_CONNECTIONS: Any = None


def doubts_about(*groups: Group) -> Doubts:
    doubts = Doubts(NO_CONNECTIONS, NO_CONNECTIONS)
    doubts.note(CommitCall(groups), [1])
    assert len(doubts) == 1
    return doubts


async def test_a_later_commit_that_changes_the_same_head_ends_a_doubt():
    doubts = doubts_about(Group(HEAD, b"1", b"2"), Group(OTHER, None, b"1"))
    doubts.note_written(CommitCall([Group(HEAD, b"1", b"3")]))
    assert len(doubts) == 0


async def test_a_later_commit_that_has_found_the_doubtful_one_ends_its_doubt():
    doubts = doubts_about(Group(HEAD, b"1", b"2"))
    doubts.note_written(CommitCall([Group(HEAD, b"2", b"3")]))
    assert len(doubts) == 0


@pytest.mark.parametrize(
    "later",
    [
        Group(b"\x02c", b"1", b"2"),
        # The doubtful commit would still find its head.
        Group(HEAD, b"1", b"1"),
        # A row that is absent may be absent again.
        Group(OTHER, None, b"2"),
    ],
)
async def test_a_doubt_outlasts_commits_that_do_not_change_what_it_compares(later: Group):
    doubts = doubts_about(Group(HEAD, b"1", b"2"), Group(OTHER, None, b"1"))
    doubts.note_written(CommitCall([later]))
    assert len(doubts) == 1


async def test_a_commit_without_lost_sessions_is_not_in_doubt():
    doubts = Doubts(NO_CONNECTIONS, NO_CONNECTIONS)
    doubts.note(CommitCall([Group(HEAD, b"1", b"2")]), [])
    assert len(doubts) == 0


async def lose_a_commit(store: OwnedStore, blocking: Session) -> None:
    """Let a commit wait for another session until the store has given it up."""
    await (await store.commit([Group(HEAD, None, b"1")]))
    await blocking.begin()
    await blocking.commit(Group(HEAD, b"1", b"other"), epoch=store.epoch)
    with pytest.raises(Unknown):
        await (await store.commit([Group(HEAD, b"1", b"2")]))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commits be lost after a short time."""
    monkeypatch.setattr("dynactor.storage.postgresql.commits.STATEMENT_SECONDS", 0.3)
    monkeypatch.setattr("dynactor.storage.postgresql.commits._DOUBT_SECONDS", 0.4)


@pytest.mark.usefixtures("impatient")
async def test_a_doubt_ends_when_postgresql_has_ended_the_sessions_that_may_write_it(
    postgresql: Postgresql,
) -> None:
    url = postgresql.url()
    async with (
        open_postgresql(url, is_shared=True) as store,
        sessions(url, 2) as (blocking, watching),
    ):
        await lose_a_commit(store, blocking)
        assert store.is_in_doubt
        assert store.figures().commits_in_doubt == 1
        with anyio.fail_after(HANG_SECONDS):
            while store.is_in_doubt:
                await anyio.sleep(0.01)
        # The lost commit would have waited for the other session, and is not written now.
        assert store.figures().commits_in_doubt == 0
        await blocking.end("ROLLBACK")
        assert await watching.load(HEAD) == [b"1"]
        await (await store.commit([Group(HEAD, b"1", b"3")]))
        assert await watching.load(HEAD) == [b"3"]
