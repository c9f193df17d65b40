"""A synchronous standby takes the place of a primary that is killed, or that answers no more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from dynactor.storage.store import CannotOpen, Group, Unknown
from tests.postgresql.audited_writers import AuditedWriters
from tests.support.servers.postgresql import Pair, Postgresql, running_pair
from tests.support.stores.store import postgresql_store

_WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@pytest.fixture
def pair() -> Iterator[Pair]:
    """A primary and its synchronous standby."""
    with running_pair() as pair:
        yield pair


@pytest.fixture
def _short_time_outs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up a statement without an answer after a second."""
    for module in ("commits", "connections", "ownership", "views"):
        monkeypatch.setattr(f"dynactor.storage.postgresql.{module}.STATEMENT_SECONDS", 1.0)


async def test_nothing_acknowledged_is_lost_by_failovers(pair: Pair) -> None:
    async with postgresql_store(pair.primary.url()) as store:
        writers = AuditedWriters(store)
        async with asyncio.TaskGroup() as group:
            group.create_task(writers.run())
            for _ in range(3):
                await writers.wait_written(100)
                await asyncio.to_thread(pair.fail_over)
                await writers.wait_written(100)
                await asyncio.to_thread(pair.add_standby)
            writers.stop()
        assert await writers.violations() == []
        assert writers.outcomes["conflict"] <= writers.outcomes["unknown"]
        assert store.figures().refusal == ""


@pytest.mark.usefixtures("_short_time_outs")
async def test_a_first_host_that_does_not_answer_is_passed(pair: Pair) -> None:
    url = pair.primary.url()
    async with postgresql_store(url) as store:
        await store.commit([Group(b"\x02", None, b"1")])
        # The paused primary accepts connections, and never answers.
        pair.primary.pause()
        await asyncio.to_thread(pair.standby.promote)
        try:
            await (await store.commit([Group(b"\x02", b"1", b"2")]))
            assert await store.latest.load([b"\x02"]) == [b"2"]
        finally:
            pair.primary.resume()


async def test_a_standby_alone_is_refused_with_a_sentence(pair: Pair) -> None:
    standby = pair.standby
    url = standby.url().replace(standby.hosts, f"127.0.0.1:{standby.port}")
    with pytest.raises(CannotOpen, match="takes no writes, because it is a standby or read-only"):
        async with postgresql_store(url):
            pass


async def test_a_commit_whose_wait_for_the_standby_is_canceled_is_unknown(pair: Pair) -> None:
    async with postgresql_store(pair.primary.url()) as store:
        await store.commit([Group(b"\x02", None, b"1")])
        pair.standby.pause()
        try:
            commit = asyncio.create_task(store.commit([Group(b"\x02", b"1", b"2")]))
            process = await asyncio.to_thread(waiting, pair.primary)
            await asyncio.to_thread(pair.primary.sql, f"SELECT pg_cancel_backend({process})")
            with pytest.raises(Unknown, match="has not waited for its standby"):
                await (await commit)
        finally:
            pair.standby.resume()


def waiting(server: Postgresql) -> str:
    """The process that waits for the standby."""
    while not (process := server.sql(_WAITING)):
        continue
    return process


async def test_messages_of_a_talkative_session_are_no_warnings(pair: Pair) -> None:
    pair.primary.sql("CREATE ROLE chatty LOGIN SUPERUSER")
    pair.primary.sql("ALTER ROLE chatty SET client_min_messages = debug5")
    url = pair.primary.url().replace("postgres@", "chatty@")
    async with postgresql_store(url) as store:
        await (await store.commit([Group(b"\x02", None, b"1")]))
        assert await store.latest.load([b"\x02"]) == [b"1"]
