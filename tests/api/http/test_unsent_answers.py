"""The memory for answers that clients have not read is limited."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from dynactor.api.http.unsent_answers import UnsentAnswers
from dynactor.api.requests.call import Call
from tests.support.clients.raw_http import TO_FULL_LANE, raw_connection, request
from tests.support.databases.fake_operations import EchoInput, echo_server
from tests.support.databases.fake_operations import operation as fake_operation

MIB = 1024 * 1024
CLIENTS = 6
ANSWER_BYTES = 16 * MIB

both_lanes = pytest.mark.parametrize("more", [(), (TO_FULL_LANE,)], ids=["fast lane", "full lane"])


class Unread(asyncio.Transport):
    """A transport whose client has not read this many bytes."""

    def __init__(self, unsent_bytes: int) -> None:
        super().__init__()
        self.unsent_bytes = unsent_bytes
        self.is_aborted = False

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def abort(self) -> None:
        self.is_aborted = True


def stopped(answers: UnsentAnswers, *sizes: int) -> list[Unread]:
    transports = [Unread(size) for size in sizes]
    for transport in transports:
        answers.add(transport)
    return transports


def aborted(transports: list[Unread]) -> list[bool]:
    return [transport.is_aborted for transport in transports]


def test_unread_answers_are_kept_while_there_is_memory():
    assert aborted(stopped(UnsentAnswers(100), 50, 30, 20)) == [False, False, False]


def test_the_connections_that_have_not_read_for_longest_are_aborted():
    assert aborted(stopped(UnsentAnswers(100), 50, 40, 30, 45)) == [True, True, False, False]


def test_one_answer_may_be_larger_than_the_memory():
    assert aborted(stopped(UnsentAnswers(100), 50, 150)) == [True, False]


def test_a_client_that_has_caught_up_uses_no_memory():
    answers = UnsentAnswers(100)
    first = stopped(answers, 60)
    answers.remove(first[0])
    answers.remove(first[0])
    assert aborted([*first, *stopped(answers, 50, 50)]) == [False, False, False]


def test_answers_that_clients_have_read_use_no_memory():
    answers = UnsentAnswers(100)
    first = stopped(answers, 60)
    first[0].unsent_bytes = 10
    assert aborted([*first, *stopped(answers, 50, 40)]) == [False, False, False]


async def _large(_call: Call[EchoInput]) -> bytes:
    return b"x" * ANSWER_BYTES


@both_lanes
async def test_the_server_keeps_the_latest_of_many_unread_answers(more: tuple[str, ...]):
    large = fake_operation("Large", _large)
    async with AsyncExitStack() as stack:
        endpoint = await stack.enter_async_context(
            echo_server(large, unsent_answers_bytes=ANSWER_BYTES)
        )
        clients = []
        for _ in range(CLIENTS):
            client = await stack.enter_async_context(raw_connection(endpoint))
            client.writer.transport.pause_reading()
            client.send(request("Large", b"{}", *more))
            clients.append(client)
            # Answers to another client are not affected.
            other = await stack.enter_async_context(raw_connection(endpoint))
            assert (await other.ask("Echo")).status == 200
        for client in clients:
            client.writer.transport.resume_reading()
        answers = await asyncio.gather(
            *(client.answer() for client in clients), return_exceptions=True
        )
        whole = [not isinstance(answer, BaseException) for answer in answers]
        assert whole[-1]
        assert not whole[0]
        assert whole == sorted(whole)
