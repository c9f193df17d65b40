"""Backups on the admin listener.

``POST /backups`` makes one of all tables, and answers with its ``name`` and ``directory``; the body
may give a ``name``, which is else the time.
"""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final

import msgspec
import structlog
from aiohttp import web
from msgspec import Struct

from api.http_settings import SERVER_NAME
from storage.backups import Backups, BadName, Taken
from storage.store import CannotOpen, StoreError

BACKUPS_PATH: Final = "/backups"

_JSON: Final = "application/json"
# A file's name on any system.
_NAME_FORMAT: Final = "%Y-%m-%dT%H-%M-%SZ"

_log = structlog.get_logger(__name__)


class BackupRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of ``POST /backups``."""

    name: str | None = None


class BackupAnswer(Struct, frozen=True):
    """A backup that was made, and where the server has it."""

    name: str
    directory: str


async def answer(backups: Backups | None, request: web.BaseRequest) -> web.Response:
    """Answer a request for the path of backups."""
    if backups is None:
        return _fault(
            HTTPStatus.NOT_FOUND, "Start the server with --backup-dir, where backups are to go"
        )
    if request.method != "POST":
        response = _fault(HTTPStatus.METHOD_NOT_ALLOWED, f"{BACKUPS_PATH} takes POST")
        response.headers["Allow"] = "POST"
        return response
    # A page on the web can have a browser send any other type without asking first.
    if request.content_type != _JSON:
        return _fault(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"The body is JSON, with Content-Type: {_JSON}"
        )
    try:
        wanted = msgspec.json.decode(await request.read(), type=BackupRequest)
        # Of the real clock: a virtual one may stand still.
        name = datetime.now(UTC).strftime(_NAME_FORMAT) if wanted.name is None else wanted.name
        made = await backups.make(name)
    except (msgspec.MsgspecError, BadName) as error:
        return _fault(HTTPStatus.BAD_REQUEST, str(error))
    except (Taken, CannotOpen) as error:
        return _fault(HTTPStatus.CONFLICT, str(error))
    except StoreError as error:
        _log.error("backup_failed", error=str(error))
        return _fault(HTTPStatus.INTERNAL_SERVER_ERROR, f"The store failed: {error}")
    _log.info("backup_made", directory=str(made.directory))
    return _json(HTTPStatus.CREATED, BackupAnswer(made.name, str(made.directory)))


def _fault(status: HTTPStatus, message: str) -> web.Response:
    return _json(status, {"message": message})


def _json(status: HTTPStatus, content: Any) -> web.Response:
    return web.Response(
        status=status,
        body=msgspec.json.encode(content) + b"\n",
        headers={"Content-Type": _JSON, "Server": SERVER_NAME},
    )
