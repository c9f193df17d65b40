"""An endpoint that waits while its server is away or throttles."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from dynactor.api.clients.client import TRANSIENT, RequestFailed
from dynactor.api.clients.reach import CannotCall
from dynactor.api.commands.transfers.table_address import STREAMS_OPERATIONS, Endpoint

# A request whose connection broke may still be running. The pause lets it end before its
# repetition.
_FIRST_PAUSE_SECONDS: Final = 1.0
_LONGEST_PAUSE_SECONDS: Final = 10.0

# AWS's error for a shard that too many readers read, or a stream that is described too often. For
# operations on tables, it is the error of a quota.
_STREAM_LIMIT: Final = "LimitExceededException"


class PatientEndpoint:
    """Repeats requests until the server answers them.

    All requests that a transfer sends have the same effect when they are repeated.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        pause: Callable[[float], Awaitable[None]],
        say: Callable[[str], None],
    ) -> None:
        self._endpoint = endpoint
        self._pause = pause
        self._say = say
        self._is_waiting = False

    async def call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request.

        Raises:
            RequestFailed: the endpoint refused the request.
        """
        pause_seconds = _FIRST_PAUSE_SECONDS
        while True:
            try:
                answer = await self._endpoint.call(operation, request)
            except CannotCall as error:
                reason = str(error)
            except RequestFailed as error:
                if not _is_transient(operation, error.error_type):
                    raise
                reason = str(error)
            else:
                if self._is_waiting:
                    self._is_waiting = False
                    self._say("continuing")
                return answer
            if not self._is_waiting:
                self._is_waiting = True
                self._say(f"waiting: {reason}")
            await self._pause(pause_seconds)
            pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)


def _is_transient(operation: str, error_type: str) -> bool:
    """Whether the same request may succeed later."""
    if error_type == _STREAM_LIMIT:
        return operation in STREAMS_OPERATIONS
    return error_type in TRANSIENT
