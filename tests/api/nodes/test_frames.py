"""A forwarded request is the one that the client sent."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientConnectionResetError, WSMessage, WSMsgType
from msgspec import structs

from dynactor.api.access.sender import Client, TrustedCaller
from dynactor.api.http.protocol import Answer, Request
from dynactor.api.nodes.frames import (
    AnswerFrame,
    AskInsights,
    AskRequestRates,
    ClaimsChanged,
    NodeMessage,
    answer_frame,
    decode_answers,
    decode_requests,
    encode,
    received,
    request_frame,
)

REQUEST = Request(
    target="a",
    content_type="b",
    authorization="c",
    query="d",
    host="e",
    content_encoding="f",
    accept_encoding="g",
    body=b"\x00\xff",
    explain="h",
    headers={"x": "\xe9"},
    client=Client("192.0.2.1", is_secure=True),
    trusted=TrustedCaller("r", "k"),
)
ANSWER = Answer(200, "a", b"\x00\xff", "b", "c", {"d": "e"})


def test_all_parts_of_a_request_arrive() -> None:
    defaults = Request(*[""] * 7, b"")
    names = Request.__struct_fields__
    assert all(getattr(REQUEST, name) != getattr(defaults, name) for name in names)
    (arrived,) = decode_requests(encode([request_frame(7, REQUEST)]))
    assert (arrived.number, arrived.message) == (7, REQUEST)


def test_all_parts_of_an_answer_arrive() -> None:
    same = [name for name in Answer.__struct_fields__ if name != "damage"]
    defaults = Answer(0, "", b"", "")
    assert all(getattr(ANSWER, name) != getattr(defaults, name) for name in same)
    frames = [answer_frame(7, ANSWER), AnswerFrame(8, 0)]
    arrived = decode_answers(encode(frames))
    assert [(frame.number, frame.answer) for frame in arrived] == [(7, ANSWER), (8, None)]


def test_a_frame_of_an_earlier_version_has_fewer_parts() -> None:
    earlier = structs.astuple(request_frame(7, REQUEST))[:-4]
    (arrived,) = decode_requests(encode([earlier]))
    assert arrived.message == structs.replace(REQUEST, client=Client(), trusted=None)


@pytest.mark.parametrize(
    "message", [ClaimsChanged(), AskRequestRates(), AskInsights("T", "/p?a=b")]
)
def test_a_message_of_a_node_arrives_as_it_was_sent(message: NodeMessage) -> None:
    (arrived,) = decode_requests(encode([request_frame(7, message)]))
    assert arrived.message == message


@pytest.mark.parametrize("trusted", [None, TrustedCaller("r", "k")])
@pytest.mark.parametrize("target", ["dynactor.ClaimsChanged", "dynactor.Insights"])
def test_no_client_and_no_page_sends_a_message_of_a_node(
    target: str, trusted: TrustedCaller | None
) -> None:
    request = structs.replace(REQUEST, target=target, trusted=trusted)
    (arrived,) = decode_requests(encode([request_frame(7, request)]))
    assert arrived.message == request


async def test_a_ping_that_can_not_be_answered_ends_a_connection_like_its_close() -> None:
    async def socket() -> AsyncIterator[WSMessage]:
        yield WSMessage(WSMsgType.BINARY, b"1", "")
        raise ClientConnectionResetError("Cannot write to closing transport")

    assert [data async for data in received(socket())] == [b"1"]
