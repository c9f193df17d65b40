"""A connection in the full lane is read in small pieces."""

from __future__ import annotations

import asyncio

from dynactor.api.access.sender import Connection
from dynactor.api.http.bounded_reads import PIECE_BYTES, BoundedReads
from dynactor.api.http.unsent_answers import UnsentAnswers
from tests.support.clients.raw_http import TO_FULL_LANE, raw_connection
from tests.support.databases.fake_operations import echo_server
from tests.support.environment.hanging import HANG_SECONDS


class Recorder(asyncio.Protocol):
    """A protocol that records its calls."""

    def __init__(self) -> None:
        self.received: list[object] = []

    def data_received(self, data: bytes) -> None:
        self.received.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.received.append(exc)

    def pause_writing(self) -> None:
        self.received.append("pause")

    def resume_writing(self) -> None:
        self.received.append("resume")


class NoUnsentAnswers(UnsentAnswers):
    """A fake of the limit for unsent answers, which does nothing."""

    def add(self, transport: asyncio.Transport) -> None:
        """Do nothing."""


def test_all_data_is_passed_on_in_pieces_including_earlier_data():
    recorder, lost = Recorder(), ConnectionResetError()
    client, ended = Connection(), list[Connection]()
    connection = BoundedReads(
        recorder,
        asyncio.Transport(),
        bytearray(3),
        NoUnsentAnswers(1),
        client=client,
        on_lost=ended.append,
    )
    connection.hand_over(b"abcdefgh")
    for data in (b"ijk", b"l"):
        connection.get_buffer(-1)[: len(data)] = data
        connection.buffer_updated(len(data))
    connection.pause_writing()
    connection.resume_writing()
    connection.connection_lost(lost)
    assert recorder.received == [b"abc", b"def", b"gh", b"ijk", b"l", "pause", "resume", lost]
    assert ended == [client]


async def test_connections_do_not_mix_their_pieces():
    async with asyncio.timeout(HANG_SECONDS), echo_server() as endpoint:

        async def ask(letter: str) -> None:
            body = b'{"Text":"%s"}' % (letter.encode() * 1_000_000)
            async with raw_connection(endpoint) as connection:
                for _ in range(3):
                    assert (await connection.ask("Echo", body, TO_FULL_LANE)).body == body

        await asyncio.gather(*map(ask, "abcdef"))


async def test_invalid_http_is_not_echoed_at_length():
    async with (
        asyncio.timeout(HANG_SECONDS),
        echo_server() as endpoint,
        raw_connection(endpoint) as connection,
    ):
        connection.send(b"POST / HTTP/1.1\r\nX\x01" + b"x" * 200_000)
        answer = (await connection.reader.readuntil(b"\r\n\r\n")).decode()
        assert answer.startswith("HTTP/1.0 400")
        length = answer.partition("Content-Length: ")[2].partition("\r\n")[0]
        assert int(length) < 2 * PIECE_BYTES
