"""Sends one request through both HTTP lanes, plain and compressed, and compares the answers.

The server has two HTTP lanes (``dynactor.api.http.fast_lane``, and the full one in
``dynactor.api.http.aiohttp_lane``), and reads and writes compressed bodies. A test of an answer's
content sends its request in all ways::

    def test_an_unknown_choice_is_refused(lanes: LanesClient):
        refusal = lanes.refused("Scan", {"TableName": "abc", "Limit": 0})
        assert refusal == ("ValidationException", "1 validation error …")

``lanes`` is a fixture of ``tests/conftest.py``. A test with a server of its own creates a
``LanesClient(endpoint)`` and closes it. It has the methods of ``WireClient``. A request runs once
for each of ``WAYS``, so send only idempotent requests, such as reads, refused requests, and puts of
one item.
"""

from __future__ import annotations

import gzip
from typing import Any, Final

import msgspec

from tests.support.clients.clients import TARGET_PREFIX, Answer, WireClient
from tests.support.clients.raw_http import TO_FULL_LANE

_LEAVE_FAST_LANE: Final = dict([TO_FULL_LANE.split(": ")])
_ACCEPT_GZIP: Final = {"Accept-Encoding": "gzip"}
_GZIP_BODY: Final = {"Content-Encoding": "gzip"}

# Headers that select a lane and a compression, by a name for assertion messages. Requests with a
# compressed body always use the full lane.
WAYS: Final[dict[str, dict[str, str]]] = {
    "fast lane": {},
    "fast lane, compressed answer": _ACCEPT_GZIP,
    "full lane": _LEAVE_FAST_LANE,
    "full lane, compressed answer": _LEAVE_FAST_LANE | _ACCEPT_GZIP,
    "compressed request": _GZIP_BODY,
    "compressed request and answer": _GZIP_BODY | _ACCEPT_GZIP,
}


class LanesClient(WireClient):
    """Sends each request in all ``WAYS``, checks that the answers agree, returns the first.

    A connection that left the fast lane never returns to it, so the full lane has its own.
    """

    def __init__(self, endpoint: str, target_prefix: str = TARGET_PREFIX) -> None:
        super().__init__(endpoint, target_prefix)
        self._full_lane = WireClient(endpoint, target_prefix)

    def close(self) -> None:
        """Close both connections."""
        super().close()
        self._full_lane.close()

    def send(
        self,
        operation: str,
        body: bytes | str | dict[str, Any],
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send one request in all ways; status and decompressed body must be the same in each."""
        if isinstance(body, dict):
            body = msgspec.json.encode(body)
        data = body.encode() if isinstance(body, str) else body
        answers = {
            way: self._sent_once(operation, data, (headers or {}) | chosen)
            for way, chosen in WAYS.items()
        }
        first = next(iter(answers.values()))
        for way, answer in answers.items():
            assert (answer.status, answer.body) == (first.status, first.body), way
        return first

    def _sent_once(self, operation: str, data: bytes, headers: dict[str, str]) -> Answer:
        if "Content-Encoding" in headers:
            data = gzip.compress(data, mtime=0)
        is_fast = "TE" not in headers and "Content-Encoding" not in headers
        answer = (
            super().send(operation, data, headers)
            if is_fast
            else self._full_lane.send(operation, data, headers)
        )
        if answer.headers.get("Content-Encoding") == "gzip":
            return answer._replace(body=gzip.decompress(answer.body))
        return answer
