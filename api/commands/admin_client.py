"""A client of the admin listener, for the commands of dynactor that work on a running server."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, TypeVar

import msgspec
from aiohttp import ClientSession

from dynactor.api.commands.client import CannotCall, reaching

AnswerT = TypeVar("AnswerT")


class AdminRequestFailed(Exception):
    """The admin listener's refusal, in its words."""


class AdminClient:
    """Asks one server."""

    def __init__(self, endpoint: str, session: ClientSession) -> None:
        self._endpoint = endpoint.rstrip("/")
        self._session = session

    async def ask(
        self,
        method: str,
        path: str,
        answer_type: type[AnswerT],
        *,
        parameters: dict[str, str] | None = None,
        body: dict[str, Any] | None = None,
    ) -> AnswerT:
        """What the server answers.

        Raises:
            AdminRequestFailed: it refuses.
            CannotCall: nobody answers, or not as an admin listener does.
        """
        with reaching(self._endpoint):
            async with self._session.request(
                method,
                f"{self._endpoint}{path}",
                params=parameters,
                json=body,
                allow_redirects=False,
            ) as response:
                status, content = response.status, await response.read()
        try:
            if status in (HTTPStatus.OK, HTTPStatus.CREATED):
                return msgspec.json.decode(content, type=answer_type)
            message = msgspec.json.decode(content)["message"]
        except (msgspec.MsgspecError, KeyError, TypeError):
            raise CannotCall(
                f"{self._endpoint} does not answer as dynactor's admin listener does "
                f"(HTTP status {status})"
            ) from None
        raise AdminRequestFailed(message)
