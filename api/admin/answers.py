"""Common parts of the admin listener's paths that use JSON."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

import msgspec
from aiohttp import web

from dynactor.api.http.settings import SERVER_NAME
from dynactor.model.errors import (
    DynamoDBError,
    InternalServerError,
    LimitExceededException,
    ResourceInUseException,
    ResourceNotFoundException,
)

_JSON: Final = "application/json"
_STATUSES: Final = {
    ResourceNotFoundException: HTTPStatus.NOT_FOUND,
    ResourceInUseException: HTTPStatus.CONFLICT,
    LimitExceededException: HTTPStatus.SERVICE_UNAVAILABLE,
    InternalServerError: HTTPStatus.INTERNAL_SERVER_ERROR,
}


def json_answer(status: HTTPStatus, content: Any) -> web.Response:
    """Make a JSON answer."""
    return raw_answer(status.value, msgspec.json.encode(content) + b"\n")


def raw_answer(status: int, body: bytes) -> web.Response:
    """Make an answer whose body is JSON already."""
    return web.Response(
        status=status, body=body, headers={"Content-Type": _JSON, "Server": SERVER_NAME}
    )


def fault(status: HTTPStatus, message: str) -> web.Response:
    """Make an error with a message."""
    return json_answer(status, {"message": message})


def refused(error: DynamoDBError) -> web.Response:
    """Make the error for a request that the database has refused."""
    return fault(_STATUSES.get(type(error), HTTPStatus.BAD_REQUEST), str(error))


def other_method(path: str, methods: str) -> web.Response:
    """Make the error for a method that a path does not support."""
    response = fault(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} accepts {methods}")
    response.headers["Allow"] = methods
    return response


def other_type(request: web.BaseRequest) -> web.Response | None:
    """Return an error for a content type other than JSON, or None for JSON.

    A web page can make a browser send other types without a preflight request.
    """
    if request.content_type == _JSON:
        return None
    return fault(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"The body is JSON, with Content-Type: {_JSON}")
