"""Requests over real connections between two nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import ClientSession

from dynactor.api.http.protocol import JSON_1_0, Protocol, Request
from dynactor.api.http.server import listen
from dynactor.api.nodes.changes import Changes
from dynactor.api.nodes.frames import PEER_PATH
from dynactor.api.nodes.link import Link
from dynactor.api.nodes.node_link import AnswerLost, NotSent
from dynactor.api.nodes.peer_listener import Answering, PeerListener, serving_peers
from dynactor.api.tls.node_certificate import NodeCertificate
from tests.support.clients.clients import AUTHORIZATION
from tests.support.databases.fake_operations import ECHO, NO_DATABASE, REFUSE, Gate
from tests.support.servers.certificates import Authority

SECRET = "one secret of all nodes"


def node_certificate(authority: Authority, name: str, address: str) -> NodeCertificate:
    return NodeCertificate(*authority.issue(name, address), authority.file, is_mutual=True)


def node_pair(directory: Path) -> tuple[NodeCertificate, NodeCertificate]:
    authority = Authority(directory)
    return (
        node_certificate(authority, "n0", "127.0.0.1"),
        node_certificate(authority, "n1", "127.0.0.1"),
    )


def request(operation: str, text: str) -> Request:
    body = b'{"Text":"%s"}' % text.encode()
    target = f"DynamoDB_20120810.{operation}"
    return Request(target, JSON_1_0, AUTHORIZATION, *("", "", "", ""), body)


def echo(*operations: object) -> Answering:
    return Protocol(NO_DATABASE, (ECHO, REFUSE, *operations)).answer  # type: ignore[arg-type]


@asynccontextmanager
async def linked(
    answering: Answering,
    *,
    listens_with: str = SECRET,
    certificate: NodeCertificate | None = None,
    listeners_certificate: NodeCertificate | None = None,
) -> AsyncIterator[tuple[Link, asyncio.Task[None]]]:
    """A link to a listener, open unless their secrets or certificates differ, and its task."""
    changes = Changes()
    with listen("127.0.0.1", 0) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        link = Link(address, SECRET, changes, certificate)
        peers = PeerListener(answering, listens_with)
        server = None if listeners_certificate is None else listeners_certificate.server
        async with serving_peers(listener, peers, server):
            running = asyncio.create_task(link.run())
            while not (link.is_open or link.failure):
                await changes.wait(10)
            try:
                yield link, running
            finally:
                running.cancel()
                await asyncio.wait([running])


async def test_answers_and_errors_come_back_to_their_requests() -> None:
    async with linked(echo()) as (link, _):
        answers = await asyncio.gather(
            *(link.ask(request("Echo", f"{number}")) for number in range(50)),
            link.ask(request("Refuse", "no")),
        )
    assert [answer.body for answer in answers[:50]] == [
        b'{"Text":"%d"}' % number for number in range(50)
    ]
    assert (answers[50].status, b"ValidationException" in answers[50].body) == (400, True)


async def test_large_requests_and_answers_use_a_connection_of_their_own() -> None:
    large = "x" * 5_000_000
    async with linked(echo()) as (link, _):
        asked = asyncio.create_task(link.ask(request("Echo", large)))
        small = await link.ask(request("Echo", "small"))
        assert small.status == 200
        assert len((await asked).body) > len(large)


async def test_nodes_with_certificates_speak_tls(tmp_path: Path) -> None:
    large, pair = "x" * 5_000_000, node_pair(tmp_path)
    async with linked(echo(), certificate=pair[0], listeners_certificate=pair[1]) as (link, _):
        assert link.is_open
        asked = asyncio.create_task(link.ask(request("Echo", large)))
        assert (await link.ask(request("Echo", "small"))).status == 200
        assert len((await asked).body) > len(large)


@pytest.mark.parametrize(
    ("address", "failure"),
    [("127.0.0.2", "IP address mismatch"), ("127.0.0.1", "certificate verify failed")],
)
async def test_a_node_connects_only_to_the_certificate_of_the_other_node(
    address: str, failure: str, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    right = node_certificate(authority, "n0", "127.0.0.1")
    other = Authority(tmp_path / "other") if address == "127.0.0.1" else authority
    wrong = node_certificate(other, "n1", address)
    async with linked(echo(), certificate=right, listeners_certificate=wrong) as (link, _):
        assert not link.is_open
        assert failure in link.failure


async def test_a_node_without_a_certificate_of_the_authority_is_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("n1", "127.0.0.1")
    right = NodeCertificate(*pair, authority.file, is_mutual=True)
    none = NodeCertificate(*pair, authority.file, is_mutual=False)
    async with linked(echo(), certificate=none, listeners_certificate=right) as (link, _):
        assert not link.is_open
    async with linked(echo(), certificate=none, listeners_certificate=none) as (link, _):
        assert link.is_open


async def test_nodes_with_and_without_tls_say_so(tmp_path: Path) -> None:
    certificate, _ = node_pair(tmp_path)
    async with linked(echo(), listeners_certificate=certificate) as (link, _):
        assert (link.is_open, "speaks TLS" in link.failure) == (False, True)
    async with linked(echo(), certificate=certificate) as (link, _):
        assert not link.is_open


async def test_a_node_that_is_not_the_home_has_done_nothing() -> None:
    async with linked(lambda _request: None) as (link, _):
        with pytest.raises(NotSent):
            await link.ask(request("Echo", "never"))
        assert link.is_refused


async def test_an_answer_that_a_broken_connection_loses_is_unknown() -> None:
    gate = Gate()
    async with linked(echo(gate.operation)) as (link, running):
        asked = asyncio.create_task(link.ask(request("Wait", "sent")))
        while not gate.waiting:
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(AnswerLost):
            await asked
        with pytest.raises(NotSent):
            await link.ask(request("Echo", "too late"))
        gate.opened.set()


async def test_a_node_with_another_secret_is_refused() -> None:
    async with linked(echo(), listens_with="another secret") as (link, _):
        assert (link.is_open, link.failure) == (False, "it has another --peer-secret-file")
        async with (
            ClientSession() as http,
            http.get(f"http://{link.address}{PEER_PATH}", params={"lane": "small"}) as refused,
        ):
            assert refused.status == 403
