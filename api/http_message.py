"""HTTP messages as bytes: the heads of common requests read, answers written. Pure.

Only what every SDK sends is read here. Whatever is in the least unusual is left to a whole
HTTP parser, and so is every doubt about where a message ends.
"""

from __future__ import annotations

import re
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Final, cast
from zlib import crc32

from msgspec import Struct

from api.explain import REQUEST_HEADER, RESPONSE_HEADER
from api.http_settings import SERVER_NAME
from api.protocol import Answer, Request
from model.limits import REQUEST_BYTES

REQUEST_LINE: Final = b"POST / HTTP/1.1\r\n"
HEAD_END: Final = b"\r\n\r\n"

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
# Headers that change how the message or the connection is to be read, or who may read it.
_UNUSUAL: Final = frozenset(
    {"transfer-encoding", "expect", "upgrade", "trailer", "te", "origin", "proxy-connection"}
)
_EXPLAIN: Final = REQUEST_HEADER.lower()
_LENGTH_DIGITS: Final = len(str(REQUEST_BYTES))
_STATUS_LINES: Final = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}


class Head(Struct, frozen=True):
    """The head of a POST whose body has a length that is known."""

    headers: dict[str, str]
    content_length: int

    @property
    def host(self) -> str:
        """The Host header."""
        return self.headers.get("host", "")

    def request(self, body: bytes) -> Request:
        """The whole request."""
        header = self.headers.get
        return Request(
            target=header("x-amz-target", ""),
            content_type=header("content-type", ""),
            authorization=header("authorization", ""),
            query="",
            host=self.host,
            content_encoding=header("content-encoding", ""),
            accept_encoding=header("accept-encoding", ""),
            body=body,
            explain=header(_EXPLAIN, ""),
        )


def parse_head(head: bytes) -> Head | None:
    """The head of a request, from ``REQUEST_LINE`` to before ``HEAD_END``; None: unusual."""
    if not head.startswith(REQUEST_LINE):
        return None
    lines = head.decode("latin-1").split("\r\n")
    if len(lines) - 1 != head.count(b"\n") or len(lines) - 1 != head.count(b"\r") or b"\0" in head:
        return None
    pairs = [_header(line) for line in lines[1:]]
    if None in pairs:
        return None
    headers = dict(cast("list[tuple[str, str]]", pairs))
    if len(headers) != len(pairs):
        return None
    length = headers.get("content-length", "")
    if not (length.isascii() and length.isdecimal()) or len(length) > _LENGTH_DIGITS:
        return None
    content_length = int(length)
    if content_length > REQUEST_BYTES or not _UNUSUAL.isdisjoint(headers):
        return None
    if headers.get("connection", "keep-alive").lower() != "keep-alive":
        return None
    return Head(headers, content_length)


@lru_cache(maxsize=512)
def _header(line: str) -> tuple[str, str] | None:
    """A header's name in lower case, and its text; None if it is none.

    Most lines of a client's requests are those of its last one.
    """
    name, colon, text = line.partition(":")
    if not colon or _HEADER_NAME.match(name) is None:
        return None
    return name.lower(), text.strip(" \t")


def answer_bytes(answer: Answer, now_epoch_seconds: float, *, closing: bool) -> bytes:
    """An answer as it goes over the wire, in one piece."""
    more = f"Content-Encoding: {answer.content_encoding}\r\n" if answer.content_encoding else ""
    if answer.explanation:
        more += f"{RESPONSE_HEADER}: {answer.explanation}\r\n"
    if closing:
        more += "Connection: close\r\n"
    head = (
        f"HTTP/1.1 {_STATUS_LINES[answer.status]}\r\n"
        f"Server: {SERVER_NAME}\r\n"
        f"Date: {_date(int(now_epoch_seconds))}\r\n"
        f"Content-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(answer.body)}\r\n"
        f"x-amzn-RequestId: {answer.request_id}\r\n"
        f"x-amz-crc32: {crc32(answer.body)}\r\n"
        f"{more}\r\n"
    )
    return head.encode("latin-1") + answer.body


@lru_cache(maxsize=1)
def _date(epoch_seconds: int) -> str:
    return formatdate(epoch_seconds, usegmt=True)
