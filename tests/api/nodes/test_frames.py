"""A forwarded request is the one that the client sent."""

from __future__ import annotations

from collections.abc import AsyncIterator

from aiohttp import ClientConnectionResetError, WSMessage, WSMsgType
from msgspec import structs

from dynactor.api.access.sender import Client
from dynactor.api.http.protocol import Answer, Request
from dynactor.api.nodes.frames import (
    AnswerFrame,
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
    is_signed_in=True,
)
ANSWER = Answer(200, "a", b"\x00\xff", "b", "c", {"d": "e"})


def test_all_parts_of_a_request_arrive() -> None:
    defaults = Request(*[""] * 7, b"")
    names = Request.__struct_fields__
    assert all(getattr(REQUEST, name) != getattr(defaults, name) for name in names)
    (arrived,) = decode_requests(encode([request_frame(7, REQUEST)]))
    assert (arrived.number, arrived.request) == (7, REQUEST)


def test_all_parts_of_an_answer_arrive() -> None:
    same = [name for name in Answer.__struct_fields__ if name != "damage"]
    defaults = Answer(0, "", b"", "")
    assert all(getattr(ANSWER, name) != getattr(defaults, name) for name in same)
    frames = [answer_frame(7, ANSWER), AnswerFrame(8, 0)]
    arrived = decode_answers(encode(frames))
    assert [(frame.number, frame.answer) for frame in arrived] == [(7, ANSWER), (8, None)]


def test_a_frame_of_an_earlier_version_has_fewer_parts() -> None:
    earlier = structs.astuple(request_frame(7, REQUEST))[:-2]
    (arrived,) = decode_requests(encode([earlier]))
    assert arrived.request == structs.replace(REQUEST, client=Client(), is_signed_in=False)


async def test_a_ping_that_can_not_be_answered_ends_a_connection_like_its_close() -> None:
    async def socket() -> AsyncIterator[WSMessage]:
        yield WSMessage(WSMsgType.BINARY, b"1", "")
        raise ClientConnectionResetError("Cannot write to closing transport")

    assert [data async for data in received(socket())] == [b"1"]
