"""Malformed requests are logged on every port: rarely, and without their bytes."""

from __future__ import annotations

import asyncio
import logging
import socket
from urllib.parse import urlsplit

import pytest
import structlog

from dynactor.api.http.malformed_requests import MalformedRequests
from dynactor.api.http.server import listen
from dynactor.api.nodes.peer_listener import PeerListener, serving_peers
from tests.support.servers.admin import admin_port
from tests.support.servers.server import running_server

SECRET = b"wJalrXUtnFEMI"
_LINE = b"POST /backups HTTP/1.1\r\nHost: localhost\r\n"
_AUTHORIZATION = b"Authorization: Bearer " + SECRET
_BODY = b"X-Dynactor-Admin: 1\r\nContent-Type: application/json\r\n"
_CHUNKED = _BODY + b"Transfer-Encoding: chunked\r\n\r\n"
MALFORMED = {
    "a carriage return": _LINE + _AUTHORIZATION + b"\r\r\n\r\n",
    "a NUL": _LINE + _AUTHORIZATION + b"\0\r\n\r\n",
    "no colon": _LINE + SECRET + b"\r\n\r\n",
    "a long header": _LINE + _AUTHORIZATION * 5_000 + b"\r\n\r\n",
    "another version": b"GET / HTTP/" + SECRET + b"\r\n\r\n",
    "no HTTP": b"\x16\x03\x01" + SECRET + b"\r\n\r\n",
    "a length": _LINE + b"Content-Length: " + SECRET + b"\r\n\r\n",
    "a URL": b"GET http://[" + SECRET + b"/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a chunk": _LINE + _CHUNKED + b"zz" + SECRET + b"\r\n\r\n",
    "a later chunk": _LINE + _CHUNKED + b"3\r\nabc\r\n" + SECRET + b"\r\n\r\n",
    "a broken body": _LINE + _BODY + b"Content-Length: 500\r\n\r\n{" + SECRET,
    "a broken sign-in": b"POST /console/sign-in HTTP/1.1\r\nHost: localhost\r\n"
    + _BODY
    + b"Content-Length: 500\r\n\r\n{"
    + SECRET,
}


def send(port: int, data: bytes, *, ends: bool = True) -> bytes:
    """Send bytes, end the connection, and return the answer; empty if the server resets."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        try:
            connection.sendall(data)
            if ends:
                connection.shutdown(socket.SHUT_WR)
            answer = b""
            while part := connection.recv(65536):
                answer += part
        except ConnectionError:
            return b""
    return answer


def test_the_ports_for_clients_and_operators_log_one_short_line():
    with running_server("--admin-port", "0", "--log-level", "debug") as server:
        ports = {"api": urlsplit(server.endpoint).port or 0, "admin": admin_port(server)}
        for port in ports.values():
            for data in MALFORMED.values():
                assert b" 500 " not in send(port, data)
            send(port, _LINE + b"Cookie: a=\xff;" + SECRET + b"@=1;;=\r\n\r\n")
        assert server.stop() == 0
        log = server.log
    assert SECRET.decode() not in log
    assert "Traceback" not in log
    lines = [line for line in log.splitlines() if "request_malformed" in line]
    assert [f"port={name}" in line for name, line in zip(ports, lines, strict=True)] == [True, True]
    assert max(map(len, lines)) < 200


async def test_the_port_for_nodes_logs_one_short_line(caplog: pytest.LogCaptureFixture):
    async def answering(_: object) -> None: ...

    start = b"GET /peer/1?lane=small HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
    other = start + _AUTHORIZATION + b"\xff\r\n\r\n"
    with listen("127.0.0.1", 0) as listener, structlog.testing.capture_logs() as logged:
        peers = PeerListener(answering, "right")  # type: ignore[arg-type]
        async with serving_peers(listener, peers):
            port = listener.getsockname()[1]
            for data in MALFORMED.values():
                assert b" 500 " not in await asyncio.to_thread(send, port, data)
            assert b" 403 " in await asyncio.to_thread(send, port, other, ends=False)
    assert [(line["event"], line["port"]) for line in logged if "port" in line] == [
        ("request_malformed", "nodes")
    ]
    assert SECRET.decode() not in f"{logged}{caplog.text}"
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []


def test_at_most_one_line_is_logged_in_a_minute():
    requests = MalformedRequests("admin")
    with structlog.testing.capture_logs() as logged:
        for second in (0, 1, 59, 60, 61, 200):
            requests.note("BadHttpMessage", "10.0.0.1", second)
    assert [line["unlogged"] for line in logged] == [0, 2, 1]
