"""Log lines for failed requests, and at level debug for answered ones; events for the console.

Lines contain no attribute value, secret or body, and no error message, because a message may repeat
a value. To limit the size of the log, each error code gets at most 20 lines a second, and then one
line with the number of lines left out.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from typing import Final

import structlog
from msgspec import Struct

from dynactor.api.http.request_figures import Failure

MOST_LINES_PER_SECOND: Final = 20
_SECOND: Final = 1.0
_SERVER_ERROR: Final = 500
# Errors that correct programs get in normal operation.
_ORDINARY: Final = frozenset(
    {
        "ConditionalCheckFailedException",
        "TransactionCanceledException",
        "TransactionConflictException",
    }
)

_log = structlog.get_logger("requests")


class AnsweredRequest(Struct, frozen=True):
    """A request that was answered. ``code`` is empty if it succeeded.

    ``at`` is the real time in epoch seconds. ``capacity_units`` are those of all of its tables.
    """

    at: float
    request_id: str
    operation: str
    tables: tuple[str, ...]
    milliseconds: float
    capacity_units: float
    http_status: int
    code: str = ""


class RequestLog:
    """Writes log lines about requests; used by one event loop."""

    def __init__(self, *, logs_answers: bool = False) -> None:
        self._logs_answers = logs_answers
        # Queues of the console's pages that listen to the requests.
        self.listeners: list[deque[AnsweredRequest]] = []
        # Number of failures in this second, by code.
        self._counts: Counter[str] = Counter()

    @property
    def logs_answers(self) -> bool:
        """Whether answered requests are logged, too."""
        return self._logs_answers

    def heard(self, request: AnsweredRequest) -> None:
        """Send a request to the listeners."""
        for listener in self.listeners:
            listener.append(request)

    def failed(self, failure: Failure, request_id: str) -> None:
        """Log a request that failed."""
        if not self._counts:
            asyncio.get_running_loop().call_later(_SECOND, self._end_second)
        self._counts[failure.code] += 1
        if self._counts[failure.code] > MOST_LINES_PER_SECOND:
            return
        if failure.http_status >= _SERVER_ERROR:
            write = _log.error
        elif failure.code in _ORDINARY:
            write = _log.debug
        else:
            write = _log.info
        write(
            "request_failed",
            operation=failure.operation,
            code=failure.code,
            http_status=failure.http_status,
            request_id=request_id,
        )

    def answered(self, operation: str, took_nanoseconds: int, request_id: str) -> None:
        """Log a request that succeeded."""
        _log.debug(
            "request_answered",
            operation=operation,
            milliseconds=round(took_nanoseconds / 1e6, 3),
            request_id=request_id,
        )

    def _end_second(self) -> None:
        for code, count in self._counts.items():
            if count > MOST_LINES_PER_SECOND:
                _log.info(
                    "requests_not_logged",
                    code=code,
                    count=count - MOST_LINES_PER_SECOND,
                )
        self._counts.clear()
