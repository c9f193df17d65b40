"""Takes an HTTP answer from the bytes that a connection has received."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

_END_OF_HEAD: Final = b"\r\n\r\n"
_LENGTH: Final = b"\r\ncontent-length:"
_CHUNKED: Final = b"\r\ntransfer-encoding: chunked"
_NO_ANSWER: Final = 0
_CANCELED: Final = "TransactionCanceledException"
_REASONS: Final = {
    b"TransactionConflict": "TransactionConflictException",
    b"ThrottlingError": "ThrottlingException",
    b"ProvisionedThroughputExceeded": "ProvisionedThroughputExceededException",
}


class Answer(NamedTuple):
    """A status and the undecoded body; without an answer, status 0 and the reason as body."""

    status: int
    body: bytes

    @property
    def error(self) -> str:
        """The name of the error; empty for success."""
        if self.status == 200:
            return ""
        if self.status == _NO_ANSWER:
            return self.body.decode()
        try:
            name = _decode_error(self.body).type.rpartition("#")[2]
        except msgspec.DecodeError:
            name = ""
        if name == _CANCELED:
            name = self._reason_of_cancellation()
        return name or f"HTTP {self.status}"

    def _reason_of_cancellation(self) -> str:
        """The error that a single operation would have had for the same reason."""
        for reason, error in _REASONS.items():
            if reason in self.body:
                return error
        return _CANCELED

    @property
    def is_refusal(self) -> bool:
        """Whether the server refused without any effect; otherwise, the outcome is unknown."""
        return 400 <= self.status < 500


class _Error(msgspec.Struct):
    type: str = msgspec.field(name="__type", default="")


_decode_error = msgspec.json.Decoder(_Error).decode


def no_answer(reason: str) -> Answer:
    """The substitute for a missing answer."""
    return Answer(_NO_ANSWER, reason.encode())


class BadAnswer(ValueError):
    """The bytes are not an HTTP answer to a request of the generator."""


def take_answer(received: bytes) -> Answer | None:
    """The answer in these bytes; None while it is incomplete.

    Raises:
        BadAnswer: the bytes are invalid, or hold more than one answer.
    """
    head_end = received.find(_END_OF_HEAD)
    if head_end < 0:
        return None
    head = received[: head_end + 2].lower()
    if not head.startswith(b"http/1."):
        raise BadAnswer(f"no HTTP/1.1 answer: {received[:60]!r}")
    body_start = head_end + 4
    at = head.find(_LENGTH)
    if at < 0:
        if _CHUNKED not in head:
            raise BadAnswer("an answer without a length")
        body = _joined_chunks(received, body_start)
        return None if body is None else Answer(int(received[9:12]), body)
    at += len(_LENGTH)
    missing = body_start + int(head[at : head.index(b"\r", at)]) - len(received)
    if missing > 0:
        return None
    if missing < 0:
        raise BadAnswer("more than one answer to one request")
    return Answer(int(received[9:12]), received[body_start:])


def _joined_chunks(received: bytes, at: int) -> bytes | None:
    """The body of a chunked answer, which DynamoDB Local sends; None while incomplete."""
    chunks: list[bytes] = []
    while True:
        line_end = received.find(b"\r\n", at)
        if line_end < 0:
            return None
        length = int(received[at:line_end].partition(b";")[0], 16)
        start = line_end + 2
        if len(received) < start + length + 2:
            return None
        if not length:
            return b"".join(chunks)
        chunks.append(received[start : start + length])
        at = start + length + 2
