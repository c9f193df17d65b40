"""A server that speaks TLS: requests in both lanes, refused clients, bounded handshakes."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from dynactor.api.http import tls_acceptor as acceptor
from dynactor.api.http.protocol import Protocol
from dynactor.api.http.server import listen, serving
from dynactor.api.http.settings import HttpSettings
from dynactor.api.http.tls_acceptor import accepting_tls
from dynactor.api.tls.self_signed import self_signed_certificate
from tests.api.serve.test_service import hangups
from tests.support.clients.raw_http import TO_FULL_LANE, RawConnection, raw_connection, request
from tests.support.databases.fake_operations import ECHO, NO_DATABASE
from tests.support.environment.stepped_time import on_stepped_time, pass_seconds, settle
from tests.support.servers.certificates import certificate_for_tests, trusting
from tests.support.servers.server import running_server

DEADLINE_SECONDS = 30
MIB = 1024 * 1024


@asynccontextmanager
async def tls_server(most_connections: int = 1_000) -> AsyncIterator[str]:
    async with counted_tls_server(most_connections) as (endpoint, _):
        yield endpoint


@asynccontextmanager
async def counted_tls_server(most_connections: int) -> AsyncIterator[tuple[str, Protocol]]:
    """A server, and its protocol, which counts refused connections."""
    protocol = Protocol(NO_DATABASE, (ECHO,))
    settings = HttpSettings(region="local", most_connections=most_connections)
    with listen("127.0.0.1", 0) as listener:
        async with serving(
            protocol, settings, listener, certificate_for_tests().server
        ) as endpoint:
            yield endpoint, protocol


@asynccontextmanager
async def tls_connection(
    endpoint: str, context: ssl.SSLContext | None = None
) -> AsyncIterator[RawConnection]:
    parts = urlsplit(endpoint)
    reader, writer = await asyncio.open_connection(
        parts.hostname, parts.port, ssl=context or certificate_for_tests().client
    )
    try:
        yield RawConnection(reader, writer)
    finally:
        writer.transport.abort()


async def test_requests_are_answered_in_both_lanes():
    async with tls_server() as endpoint:
        assert endpoint.startswith("https://127.0.0.1:")
        async with tls_connection(endpoint) as connection:
            assert (await connection.ask("Echo", b'{"Text":"a"}')).body == b'{"Text":"a"}'
            large = b'{"Text":"%s"}' % (b"x" * MIB)
            assert (await connection.ask("Echo", large)).body == large
            answer = await connection.ask("Echo", b'{"Text":"b"}', TO_FULL_LANE)
            assert answer.body == b'{"Text":"b"}'
            assert (await connection.ask("Echo", large)).body == large


@pytest.mark.parametrize("more", [(), (TO_FULL_LANE,)], ids=["fast lane", "full lane"])
async def test_a_client_that_ends_the_connection_leaves_nothing_behind(
    more: tuple[str, ...], caplog: pytest.LogCaptureFixture
):
    async with tls_server() as endpoint, tls_connection(endpoint) as connection:
        await connection.ask("Echo", b"{}", *more)
        connection.writer.close()
        assert await connection.reader.read() == b""
    assert caplog.records == []


async def test_only_tls_1_2_and_1_3_are_spoken():
    async with tls_server() as endpoint:
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = trusting(certificate_for_tests().files.authority)
            context.minimum_version = context.maximum_version = version
            async with tls_connection(endpoint, context) as connection:
                assert (await connection.ask("Echo")).status == 200
        old = trusting(certificate_for_tests().files.authority)
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionError)):
            async with tls_connection(endpoint, old):
                pass


async def test_an_answer_that_a_browser_shows_runs_nothing():
    async with tls_server() as endpoint, tls_connection(endpoint) as connection:
        connection.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = await connection.answer()
        assert answer.status == 200
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")


async def test_a_client_without_tls_is_answered_with_a_sentence():
    async with tls_server() as endpoint, raw_connection(endpoint) as connection:
        connection.send(request("Echo"))
        answer = await connection.answer()
        assert answer.status == 400
        assert answer.body == b"This port speaks HTTPS: use https:// in the address.\n"
        assert await connection.is_closed()


@pytest.mark.parametrize("sent", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01"])
@on_stepped_time
async def test_a_slow_handshake_is_ended(sent: bytes):
    async with tls_server() as endpoint, raw_connection(endpoint) as connection:
        if sent:
            connection.send(sent)
        closed = asyncio.ensure_future(connection.is_closed())
        await pass_seconds(acceptor.HANDSHAKE_SECONDS - 1)
        assert not closed.done()
        await pass_seconds(2)
        # Not awaited, so that the test fails instead of waiting without a limit.
        assert closed.done()
        assert closed.result()


async def test_the_oldest_unfinished_handshake_makes_way_for_new_ones(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(acceptor, "MOST_HANDSHAKES", 2)
    async with tls_server() as endpoint, AsyncExitStack() as stack:
        silent = [await stack.enter_async_context(raw_connection(endpoint)) for _ in range(3)]
        async with asyncio.timeout(DEADLINE_SECONDS):
            assert await silent[0].is_closed()
        async with tls_connection(endpoint) as connection:
            assert (await connection.ask("Echo")).status == 200


async def test_one_handshake_begins_in_each_turn_of_the_event_loop():
    count, turn, begun = 8, 0, list[int]()
    loop = asyncio.get_running_loop()

    def next_turn() -> None:
        nonlocal turn
        turn += 1
        if len(begun) < count:
            loop.call_soon(next_turn)

    def protocol() -> asyncio.Protocol:
        begun.append(turn)
        return asyncio.Protocol()

    with listen("127.0.0.1", 0) as listener, ExitStack() as stack:
        async with (
            accepting_tls(listener, protocol, certificate_for_tests().server),
            asyncio.timeout(DEADLINE_SECONDS),
        ):
            address = listener.getsockname()
            clients = [
                stack.enter_context(closing(socket.create_connection(address)))
                for _ in range(count)
            ]
            # The server waits for the first byte of each connection.
            await settle()
            for client in clients:
                client.send(b"\x16\x03\x01")
            next_turn()
            while len(begun) < count:
                await asyncio.sleep(0)
    assert len(set(begun)) == count


async def test_unfinished_handshakes_count_as_connections():
    async with counted_tls_server(2) as (endpoint, protocol), AsyncExitStack() as stack:
        async with asyncio.timeout(DEADLINE_SECONDS):
            opened = await stack.enter_async_context(tls_connection(endpoint))
            assert (await opened.ask("Echo")).status == 200
            silent = await stack.enter_async_context(raw_connection(endpoint))
            # A new connection ends the unfinished handshake, and no open connection.
            last = await stack.enter_async_context(tls_connection(endpoint))
            assert await silent.is_closed()
            assert (await last.ask("Echo")).status == 200
            refused = await stack.enter_async_context(raw_connection(endpoint))
            assert await refused.is_closed()
            assert protocol.figures.refused_connections == 1
            assert (await opened.ask("Echo")).status == 200


def test_a_server_has_tls_on_both_ports_and_reads_its_files_on_sighup(tmp_path: Path):
    made = self_signed_certificate(tmp_path, ())
    arguments = ("--tls-cert", str(made.certificate), "--tls-key", str(made.key))
    # Set the default handler, because the tests may run under nohup.
    with hangups(signal.SIG_DFL), running_server(*arguments, "--admin-port", "0") as server:
        assert server.endpoint.startswith("https://")
        found = re.search(r"^Metrics on (https://\S+)$", server.announcement, re.MULTILINE)
        assert found, server.announcement
        server.process.send_signal(signal.SIGHUP)
        deadline = monotonic() + DEADLINE_SECONDS
        while "certificate_loaded" not in server.log and monotonic() < deadline:
            with urlopen(found[1], context=trusting(made.authority)) as answer:  # noqa: S310
                assert b"dynactor_tls_certificate_expiry_timestamp_seconds" in answer.read()
        assert "certificate_loaded" in server.log
        assert server.stop() == 0
