"""Logs changes over the admin port: what was changed, by whom, and from where.

Each change is one line, also if it is refused. With ``--log-format json`` the lines are JSON. A
line has no body and no secret. Reads of the console's pages are left out.
"""

from __future__ import annotations

from typing import Final

import structlog
from aiohttp import web

from dynactor.api.admin_api.callers import Caller
from dynactor.api.console.door import TARGET_HEADER, reads_only

_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})

_log = structlog.get_logger("admin")


async def log_change(request: web.BaseRequest, http_status: int, caller: Caller) -> None:
    """Log a request that has been answered, if it would change something."""
    if request.method in _READING:
        return
    target = request.headers.get(TARGET_HEADER, "")
    if target and reads_only(target, await request.read()):
        return
    _log.info(
        "change_requested",
        method=request.method,
        path=request.path,
        operation=target.partition(".")[2],
        http_status=http_status,
        caller=caller.proof,
        address=request.remote,
    )
