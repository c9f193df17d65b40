"""Backups on the admin listener.

``POST /backups`` makes a backup of all tables and answers with its ``name`` and ``directory``. The
body may give a ``name``; the default is the time.
"""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus

import msgspec
import structlog
from aiohttp import web

from dynactor.api.admin.answers import fault, json_answer, other_method, other_type
from dynactor.api.admin_api.backup_messages import BACKUPS_PATH, BackupAnswer, BackupRequest
from dynactor.storage.directory_backups import Backups, BadName
from dynactor.storage.store import CannotOpen, StoreError

_log = structlog.get_logger(__name__)


async def answer(backups: Backups | None, request: web.BaseRequest) -> web.Response:
    """Answer a request for the path of backups."""
    if backups is None:
        return fault(
            HTTPStatus.NOT_FOUND, "Start the server with --backup-dir, the directory for backups"
        )
    if request.method != "POST":
        return other_method(BACKUPS_PATH, "POST")
    refusal = other_type(request)
    if refusal is not None:
        return refusal
    try:
        wanted = msgspec.json.decode(await request.read(), type=BackupRequest)
        made = await backups.make(_name_of_now() if wanted.name is None else wanted.name)
    except (msgspec.MsgspecError, BadName) as error:
        return fault(HTTPStatus.BAD_REQUEST, str(error))
    except CannotOpen as error:
        return fault(HTTPStatus.CONFLICT, str(error))
    except StoreError as error:
        _log.error("backup_failed", error=str(error))
        return fault(HTTPStatus.INTERNAL_SERVER_ERROR, f"The store failed: {error}")
    _log.info("backup_made", directory=str(made.directory))
    return json_answer(HTTPStatus.CREATED, BackupAnswer(made.name, str(made.directory)))


def _name_of_now() -> str:
    """Return the real time as a file name, because a virtual clock may stand still."""
    now = datetime.now(UTC).replace(tzinfo=None)
    return f"{now.isoformat(timespec='milliseconds').replace(':', '-')}Z"
