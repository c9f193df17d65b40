"""The virtual clock on the admin listener.

``GET /clock`` reads it, ``PUT /clock`` sets its time ``now``, its ``speed`` or both, and
``POST /clock/step`` moves it on by ``seconds``; all answer with how it stands then.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

import msgspec
from aiohttp import web
from msgspec import Struct

from actors.clock_keeper import ClockKeeper, ClockState, MoveClock
from actors.runtime.clock import ClockRefusal
from actors.runtime.mailbox import MailboxClosed, MailboxFull
from api.http_settings import SERVER_NAME
from api.times import iso_time, parse_time
from model.errors import InternalServerError

CLOCK_PATH: Final = "/clock"
STEP_PATH: Final = "/clock/step"

_JSON: Final = "application/json"
_METHODS: Final = {CLOCK_PATH: "GET, HEAD, PUT", STEP_PATH: "POST"}


class ClockAnswer(Struct, frozen=True):
    """How the clock stands: epoch seconds, the same in ISO 8601, and its speed."""

    now: float
    now_iso: str
    speed: float


class ClockSetting(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of ``PUT /clock``; ``now`` is in epoch seconds or ISO 8601."""

    now: float | str | None = None
    speed: float | None = None


class ClockStep(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of ``POST /clock/step``."""

    seconds: float


async def answer(keeper: ClockKeeper | None, request: web.BaseRequest) -> web.Response:
    """Answer a request for one of the clock's paths."""
    if keeper is None:
        return _fault(
            HTTPStatus.NOT_FOUND,
            "Time is real here: a server started with --virtual-clock has a clock to set",
        )
    methods = _METHODS[request.path]
    if request.method not in methods.split(", "):
        response = _fault(HTTPStatus.METHOD_NOT_ALLOWED, f"{request.path} takes {methods}")
        response.headers["Allow"] = methods
        return response
    if request.method in ("GET", "HEAD"):
        return _standing(keeper.state)
    # A page on the web can have a browser send any other type without asking first.
    if request.content_type != _JSON:
        return _fault(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"The body is JSON, with Content-Type: {_JSON}"
        )
    body = await request.read()
    try:
        return _standing(await keeper.move(_move(request.path, body)))
    except (msgspec.MsgspecError, ValueError) as error:
        return _fault(HTTPStatus.BAD_REQUEST, str(error))
    except InternalServerError as error:
        return _fault(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
    except (MailboxFull, MailboxClosed):
        return _fault(HTTPStatus.SERVICE_UNAVAILABLE, "The clock can't be moved now, try again")


def _move(path: str, body: bytes) -> MoveClock:
    if path == STEP_PATH:
        return MoveClock(by_seconds=msgspec.json.decode(body, type=ClockStep).seconds)
    setting = msgspec.json.decode(body, type=ClockSetting)
    if setting == ClockSetting():
        raise ClockRefusal('Nothing to set: give "now", "speed" or both')
    now = parse_time(setting.now) if isinstance(setting.now, str) else setting.now
    return MoveClock(now, speed=setting.speed)


def _standing(state: ClockState) -> web.Response:
    now = state.now_epoch_seconds
    return _json(HTTPStatus.OK, ClockAnswer(now, iso_time(now), state.speed))


def _fault(status: HTTPStatus, message: str) -> web.Response:
    return _json(status, {"message": message})


def _json(status: HTTPStatus, content: Any) -> web.Response:
    return web.Response(
        status=status,
        body=msgspec.json.encode(content) + b"\n",
        headers={"Content-Type": _JSON, "Server": SERVER_NAME},
    )
