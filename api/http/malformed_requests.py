"""Logs requests that are not HTTP: one short line, at most once a minute for each port.

The errors of aiohttp show the bytes of such a request, which may have a secret.
"""

from __future__ import annotations

import logging
import time
from functools import cache
from typing import Final

import structlog
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestPayloadError

MALFORMED: Final = (HttpProcessingError, RequestPayloadError)

_SECONDS: Final = 60.0

_log = structlog.get_logger(__name__)


class MalformedRequests(logging.Filter):
    """Replaces aiohttp's messages about malformed requests to one port."""

    def __init__(self, port: str) -> None:
        """``port`` is the purpose of the port."""
        super().__init__()
        self._port = port
        self._logged_seconds: float | None = None
        self._unlogged = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep a message, unless it is about a malformed request."""
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, MALFORMED):
            return True
        remote = record.args[0] if isinstance(record.args, tuple) and record.args else None
        self.note(type(error).__name__, remote, time.monotonic())
        return False

    def note(self, kind: str, remote: object, now_seconds: float) -> None:
        """Log a malformed request, or count it if a line was logged in the last minute."""
        last = self._logged_seconds
        if last is not None and now_seconds - last < _SECONDS:
            self._unlogged += 1
            return
        _log.warning(
            "request_malformed",
            port=self._port,
            remote=remote,
            kind=kind,
            unlogged=self._unlogged,
        )
        self._logged_seconds, self._unlogged = now_seconds, 0


@cache
def http_logger(port: str) -> logging.Logger:
    """The logger for aiohttp's server on a port."""
    logger = logging.getLogger(f"{__name__}.{port}")
    logger.addFilter(MalformedRequests(port))
    return logger
