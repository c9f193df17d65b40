"""The command ``dynactor backup``: has a running server back up all its tables."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import anyio
import msgspec
from aiohttp import ClientSession
from cyclopts import Parameter

from api.admin_backups import BACKUPS_PATH, BackupAnswer
from api.client import CannotCall, reaching

DONE: Final = 0
FAILED: Final = 1


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class BackupOptions:
    """What to call it."""

    name: str | None = None
    """The name of the backup, and of its directory; without it, the time."""

    admin_endpoint: str = "http://127.0.0.1:8001"
    """The server's admin listener, as it announces it."""


class _Refused(Exception):
    """The server's error, in its words."""


def back_up(options: BackupOptions) -> int:
    """Carry out the command; returns its exit code."""
    try:
        made = anyio.run(_ask, options)
    except (CannotCall, _Refused) as error:
        sys.stderr.write(f"dynactor: {error}\n")
        return FAILED
    sys.stdout.write(f"{made.directory}\n")
    return DONE


async def _ask(options: BackupOptions) -> BackupAnswer:
    endpoint = options.admin_endpoint.rstrip("/")
    body = {} if options.name is None else {"name": options.name}
    async with ClientSession() as session:
        with reaching(endpoint):
            async with session.post(
                f"{endpoint}{BACKUPS_PATH}", json=body, allow_redirects=False
            ) as response:
                status, content = response.status, await response.read()
    try:
        if status == HTTPStatus.CREATED:
            return msgspec.json.decode(content, type=BackupAnswer)
        message = msgspec.json.decode(content)["message"]
    except (msgspec.MsgspecError, KeyError, TypeError):
        raise CannotCall(
            f"{endpoint} does not answer as dynactor's admin listener does (HTTP status {status})"
        ) from None
    raise _Refused(message)
