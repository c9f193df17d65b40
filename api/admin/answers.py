"""What the paths of the admin listener that speak JSON have in common."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

import msgspec
from aiohttp import web

from dynactor.api.http.settings import SERVER_NAME

_JSON: Final = "application/json"


def json_answer(status: HTTPStatus, content: Any) -> web.Response:
    """An answer, or a fault."""
    return web.Response(
        status=status,
        body=msgspec.json.encode(content) + b"\n",
        headers={"Content-Type": _JSON, "Server": SERVER_NAME},
    )


def fault(status: HTTPStatus, message: str) -> web.Response:
    """A refusal, in words for a person."""
    return json_answer(status, {"message": message})


def other_method(path: str, methods: str) -> web.Response:
    """The refusal of a method that a path does not take."""
    response = fault(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} takes {methods}")
    response.headers["Allow"] = methods
    return response


def other_type(request: web.BaseRequest) -> web.Response | None:
    """The refusal of a body that is not said to be JSON; None if it is.

    A page on the web can have a browser send any other type without asking first.
    """
    if request.content_type == _JSON:
        return None
    return fault(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"The body is JSON, with Content-Type: {_JSON}")
