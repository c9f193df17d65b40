"""The virtual clock on the admin listener.

``GET /clock`` reads the clock, ``PUT /clock`` sets its time ``now``, its ``speed`` or both, and
``POST /clock/step`` moves it forward by ``seconds``. All answer with the new state.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import web

from dynactor.actors.database.virtual_clock import ClockState, MoveClock, VirtualClockControl
from dynactor.actors.runtime.clock import ClockRefusal
from dynactor.actors.runtime.mailbox import MailboxClosed, MailboxFull
from dynactor.api.admin.answers import fault, json_answer, other_method, other_type
from dynactor.api.admin_api.clock_messages import (
    CLOCK_PATH,
    STEP_PATH,
    ClockAnswer,
    ClockSetting,
    ClockStep,
)
from dynactor.api.admin_api.times import iso_time, parse_time
from dynactor.model.errors import InternalServerError

_METHODS: Final = {CLOCK_PATH: "GET, HEAD, PUT", STEP_PATH: "POST"}


async def answer(control: VirtualClockControl | None, request: web.BaseRequest) -> web.Response:
    """Answer a request for one of the clock's paths."""
    if control is None:
        return fault(
            HTTPStatus.NOT_FOUND,
            "This server uses real time: start it with --virtual-clock for a clock that can be set",
        )
    methods = _METHODS[request.path]
    if request.method not in methods.split(", "):
        return other_method(request.path, methods)
    if request.method in ("GET", "HEAD"):
        return _state_answer(control.state)
    refusal = other_type(request)
    if refusal is not None:
        return refusal
    body = await request.read()
    try:
        return _state_answer(await control.move(_move(request.path, body)))
    except (msgspec.MsgspecError, ValueError) as error:
        return fault(HTTPStatus.BAD_REQUEST, str(error))
    except InternalServerError as error:
        return fault(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
    except (MailboxFull, MailboxClosed):
        return fault(HTTPStatus.SERVICE_UNAVAILABLE, "The clock can't be moved now, try again")


def _move(path: str, body: bytes) -> MoveClock:
    if path == STEP_PATH:
        return MoveClock(by_seconds=msgspec.json.decode(body, type=ClockStep).seconds)
    setting = msgspec.json.decode(body, type=ClockSetting)
    if setting == ClockSetting():
        raise ClockRefusal('Nothing to set: give "now", "speed" or both')
    now = parse_time(setting.now) if isinstance(setting.now, str) else setting.now
    return MoveClock(now, speed=setting.speed)


def _state_answer(state: ClockState) -> web.Response:
    now = state.now_epoch_seconds
    return json_answer(HTTPStatus.OK, ClockAnswer(now, iso_time(now), state.speed))
