"""HTTP messages as bytes: reads the heads of common requests, writes answers. Pure.

This module reads only heads in the form that SDKs send. The full lane handles any other head, and
every head that does not clearly show where its message ends.
"""

from __future__ import annotations

import re
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Final
from zlib import crc32

from msgspec import Struct

from dynactor.api.access.sender import NO_CLIENT, Client
from dynactor.api.answers.explain import REQUEST_HEADER
from dynactor.api.http.answer_damage import AnswerDamage
from dynactor.api.http.protocol import Answer, Request
from dynactor.api.http.settings import SERVER_NAME
from dynactor.model.limits import REQUEST_BYTES

REQUEST_LINE: Final = b"POST / HTTP/1.1\r\n"
HEAD_END: Final = b"\r\n\r\n"

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
# Headers that change how the message or the connection is read, or who may read the answer.
_UNUSUAL: Final = frozenset(
    {
        "transfer-encoding",
        "content-encoding",
        "expect",
        "upgrade",
        "trailer",
        "te",
        "origin",
        "proxy-connection",
    }
)
_EXPLAIN: Final = REQUEST_HEADER.lower()
_LENGTH_DIGITS: Final = len(str(REQUEST_BYTES))
_STATUS_LINES: Final = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}


class Head(Struct, frozen=True):
    """The head of a POST whose body has a known length; see ``Request``."""

    content_length: int
    host: str
    target: str
    content_type: str
    authorization: str
    accept_encoding: str
    explain: str
    headers: dict[str, str]

    def request(self, body: bytes, client: Client = NO_CLIENT) -> Request:
        """Return the complete request of a client."""
        return Request(
            self.target,
            self.content_type,
            self.authorization,
            "",
            self.host,
            "",
            self.accept_encoding,
            body,
            self.explain,
            self.headers,
            client,
        )


def parse_head(head: bytes) -> Head | None:
    """Parse a head from ``REQUEST_LINE`` to before ``HEAD_END``; None: the head is unusual."""
    if not head.startswith(REQUEST_LINE):
        return None
    lines = head.decode("latin-1").split("\r\n")
    breaks = len(lines) - 1
    if head.count(b"\n") != breaks or head.count(b"\r") != breaks or b"\0" in head:
        return None
    del lines[0]
    try:
        headers = dict(map(_header, lines))
    except _NoHeader:
        return None
    if len(headers) != breaks:
        return None
    header = headers.get
    length = header("content-length", "")
    if not (length.isascii() and length.isdecimal()) or len(length) > _LENGTH_DIGITS:
        return None
    content_length = int(length)
    if content_length > REQUEST_BYTES or not _UNUSUAL.isdisjoint(headers):
        return None
    if header("connection", "keep-alive").lower() != "keep-alive":
        return None
    return Head(
        content_length,
        header("host", ""),
        header("x-amz-target", ""),
        header("content-type", ""),
        header("authorization", ""),
        header("accept-encoding", ""),
        header(_EXPLAIN, ""),
        headers,
    )


class _NoHeader(Exception):
    """A line is not a header."""


@lru_cache(maxsize=512)
def _header(line: str) -> tuple[str, str]:
    """A header's name in lower case, and its value.

    The result is cached, because most header lines are the same in each request of a client.
    """
    name, colon, text = line.partition(":")
    if not colon or _HEADER_NAME.match(name) is None:
        raise _NoHeader
    return name.lower(), text.strip(" \t")


def answer_bytes(answer: Answer, now_epoch_seconds: float, *, closing: bool) -> bytes:
    """The bytes of an answer."""
    more = f"Content-Encoding: {answer.content_encoding}\r\n" if answer.content_encoding else ""
    if answer.explanations:
        more += "".join(f"{name}: {text}\r\n" for name, text in answer.explanations.items())
    if closing:
        more += "Connection: close\r\n"
    checksum = crc32(answer.body)
    if answer.damage is not None and answer.damage is AnswerDamage.WRONG_CRC32:
        checksum ^= 1
    return b"%bContent-Length: %d\r\nx-amzn-RequestId: %b\r\nx-amz-crc32: %d\r\n%b\r\n%b" % (
        _head_start(answer.status, answer.content_type, int(now_epoch_seconds)),
        len(answer.body),
        answer.request_id.encode(),
        checksum,
        more.encode("latin-1"),
        answer.body,
    )


def partial_answer_bytes(answer: Answer, now_epoch_seconds: float) -> bytes:
    """The bytes that are sent before an injected fault closes the connection."""
    if answer.damage is AnswerDamage.CUT:
        return b""
    whole = answer_bytes(answer, now_epoch_seconds, closing=False)
    return whole[: len(whole) - (len(answer.body) + 1) // 2]


@lru_cache(maxsize=16)
def _head_start(status: int, content_type: str, epoch_seconds: int) -> bytes:
    """The first lines, which are equal in all answers of one second, status and content type."""
    return (
        f"HTTP/1.1 {_STATUS_LINES[status]}\r\n"
        f"Server: {SERVER_NAME}\r\n"
        f"Date: {formatdate(epoch_seconds, usegmt=True)}\r\n"
        f"Content-Type: {content_type}\r\n"
    ).encode("latin-1")
