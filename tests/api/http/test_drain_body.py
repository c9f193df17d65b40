"""Draining the bodies of refused requests: limits of size, number, rate and time."""

from __future__ import annotations

import asyncio

from aiohttp import StreamReader
from aiohttp.base_protocol import BaseProtocol
from aiohttp.web_protocol import RequestPayloadError

from dynactor.api.http.drain_body import BodyDrain
from tests.support.environment.stepped_time import on_stepped_time, pass_seconds, settle

MIB = 1024 * 1024
MOST_SECONDS = 10


def content(size_bytes: int = 0) -> StreamReader:
    """A body with this many bytes available to read."""
    loop = asyncio.get_running_loop()
    protocol = BaseProtocol(loop)
    # A transport that does nothing.
    protocol.connection_made(asyncio.Transport())
    reader = StreamReader(protocol, limit=64 * MIB, loop=loop)
    reader.feed_data(bytes(size_bytes))
    return reader


@on_stepped_time
async def test_all_refused_bodies_share_one_rate():
    drains = BodyDrain(MOST_SECONDS)
    bodies = [content(32 * MIB) for _ in range(4)]
    async with asyncio.TaskGroup() as tasks:
        for body in bodies:
            body.feed_eof()
        dropping = [tasks.create_task(drains.drop(body)) for body in bodies]
        done = []
        for _ in range(4):
            await pass_seconds(0.5)
            done.append(sum(task.done() for task in dropping))
        assert done == [1, 2, 3, 4]


@on_stepped_time
async def test_an_endless_body_is_read_for_a_limited_time():
    async with asyncio.TaskGroup() as tasks:
        dropping = tasks.create_task(BodyDrain(MOST_SECONDS).drop(content(MIB)))
        await pass_seconds(MOST_SECONDS - 1)
        assert not dropping.done()
        await pass_seconds(1)
        assert dropping.done()


@on_stepped_time
async def test_only_a_limited_number_of_bodies_is_read_at_a_time():
    drains = BodyDrain(MOST_SECONDS)
    async with asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(drains.drop(content())) for _ in range(100)]
        await settle()
        late = content(1)
        await drains.drop(late)
        assert not late.is_eof()
        assert late.total_bytes == 1
        await pass_seconds(MOST_SECONDS)
        assert all(task.done() for task in waiting)
        last = content(1)
        last.feed_eof()
        tasks.create_task(drains.drop(last))
        await pass_seconds(1)
        assert last.at_eof()


@on_stepped_time
async def test_a_client_that_disconnects_is_not_read_any_more():
    drains = BodyDrain(MOST_SECONDS)
    for error in (ConnectionResetError(), RequestPayloadError()):
        body = content(1)
        body.set_exception(error)
        await drains.drop(body)
        assert body.total_bytes == 1
        assert not body.at_eof()
