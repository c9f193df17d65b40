"""The admin port's uploads, which fill a new table with less work than BatchWriteItem."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio.to_thread
import msgspec
from msgspec import Struct

from dynactor.api.admin_api.upload_messages import (
    END,
    ERRORS,
    PIECE_TYPE,
    UPLOADS_PATH,
    UploadAnswer,
    UploadsAnswer,
)
from dynactor.api.clients.admin_client import AdminClient, AdminRequestFailed
from dynactor.api.clients.reach import CannotCall
from dynactor.api.commands.tables.transfer_failed import TransferFailed

_POLL_SECONDS: Final = 0.5
_AGAIN_SECONDS: Final = 1.0

AnswerT = TypeVar("AnswerT")


class ServerFault(Struct):
    """A line of the error log of an import; ``key`` names the piece."""

    key: str
    line: int
    code: str
    message: str

    @property
    def piece(self) -> int:
        """The number of the piece."""
        return int(self.key.rpartition("/")[2])


class BulkDoor:
    """Uploads pieces, and waits while the server is away."""

    def __init__(
        self,
        admin: AdminClient,
        pause: Callable[[float], Awaitable[None]],
        say: Callable[[str], None],
    ) -> None:
        self._admin = admin
        self._pause = pause
        self._say = say

    async def is_open(self) -> bool:
        """Whether the server takes uploads. An earlier version or a node may take none."""
        try:
            await anyio.to_thread.run_sync(
                lambda: self._admin.ask("GET", UPLOADS_PATH, UploadsAnswer)
            )
        except (AdminRequestFailed, CannotCall):
            return False
        return True

    async def find_upload(self, name: str) -> UploadAnswer | None:
        """The upload that fills a table, if there is one."""
        answer = await self._ask("GET", UPLOADS_PATH, UploadsAnswer)
        return next((each for each in answer.uploads if each.table == name), None)

    async def find(self, upload_id: str) -> UploadAnswer | None:
        """The upload with this id, also after its end, unless the server has forgotten it."""
        try:
            return await self._ask("GET", f"{UPLOADS_PATH}/{upload_id}", UploadAnswer)
        except AdminRequestFailed as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    async def begin(self, creation: Mapping[str, Any]) -> UploadAnswer:
        """Create a table, ACTIVE once all items are in it; raises ``AdminRequestFailed``."""
        return await anyio.to_thread.run_sync(
            lambda: self._admin.ask(
                "POST", UPLOADS_PATH, UploadAnswer, body={"table": dict(creation)}
            )
        )

    async def send(self, upload_id: str, number: int, piece: bytes | Path) -> None:
        """Store a piece: the content of a file, or these bytes; raises ``TransferFailed``."""
        path = f"{UPLOADS_PATH}/{upload_id}/{number}"

        def put() -> UploadAnswer:
            return self._admin.send(path, piece, PIECE_TYPE, UploadAnswer)

        while True:
            try:
                await anyio.to_thread.run_sync(put)
            except CannotCall as error:
                reason, is_final = str(error), False
            except AdminRequestFailed as error:
                reason, is_final = str(error), error.status != HTTPStatus.SERVICE_UNAVAILABLE
            else:
                return
            # A server that refuses a large piece may close the connection before its end.
            found = await self.find(upload_id)
            if found is None or found.status != "IN_PROGRESS":
                raise TransferFailed(f"The upload has ended: {_ending(found)}")
            if is_final:
                raise TransferFailed(f"The server refuses piece {number}: {reason}")
            self._say(f"waiting: {reason}")
            await self._pause(_AGAIN_SECONDS)

    async def end(self, upload_id: str, pieces: int) -> None:
        """End the upload unless its import failed; raises ``AdminRequestFailed`` if incomplete."""
        path = f"{UPLOADS_PATH}/{upload_id}/{END}"
        try:
            await self._ask("POST", path, UploadAnswer, {"pieces": pieces})
        except AdminRequestFailed:
            found = await self.find(upload_id)
            if found is not None and found.status == "IN_PROGRESS":
                raise

    async def wait_imported(
        self, upload_id: str, progress: Callable[[UploadAnswer], None]
    ) -> UploadAnswer:
        """The upload when its import has ended; raises ``TransferFailed`` if it has failed."""
        while True:
            found = await self.find(upload_id)
            if found is None:
                raise TransferFailed("The server does not know the upload any more")
            if found.status == "COMPLETED":
                return found
            if found.status != "IN_PROGRESS":
                raise TransferFailed(f"{found.table} was not imported: {_ending(found)}")
            progress(found)
            await self._pause(_POLL_SECONDS)

    async def faults(self, upload_id: str) -> list[ServerFault]:
        """The first errors of the import."""
        path = f"{UPLOADS_PATH}/{upload_id}/{ERRORS}"
        text = await self._waiting(lambda: self._admin.read(path))
        return [msgspec.json.decode(line, type=ServerFault) for line in text.splitlines()]

    async def _ask(
        self,
        method: str,
        path: str,
        answer_type: type[AnswerT],
        body: dict[str, Any] | None = None,
    ) -> AnswerT:
        return await self._waiting(lambda: self._admin.ask(method, path, answer_type, body=body))

    async def _waiting(self, call: Callable[[], AnswerT]) -> AnswerT:
        """The result of a call, which is repeated while the server is away."""
        is_waiting = False
        while True:
            try:
                return await anyio.to_thread.run_sync(call)
            except CannotCall as error:
                reason = str(error)
            except AdminRequestFailed as error:
                if error.status != HTTPStatus.SERVICE_UNAVAILABLE:
                    raise
                reason = str(error)
            if not is_waiting:
                is_waiting = True
                self._say(f"waiting: {reason}")
            await self._pause(_AGAIN_SECONDS)


def _ending(found: UploadAnswer | None) -> str:
    """The reason why an import has ended without a table."""
    if found is None:
        return "the server does not know it any more"
    return found.failure or "its table was deleted"
