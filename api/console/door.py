"""DynamoDB's operations for the pages, by the protocol of the main port."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from aiohttp import web
from multidict import CIMultiDict

from dynactor.api.access.sender import TrustedCaller
from dynactor.api.admin_api.region_parameters import KEY_ID_PARAMETER, REGION_PARAMETER
from dynactor.api.answers.explain import REQUEST_HEADER
from dynactor.api.console.files import HEADERS
from dynactor.api.http.aiohttp_lane import headers_by_name
from dynactor.api.http.protocol import JSON_1_0, Answer, Protocol, Request
from dynactor.api.registry import TARGETS
from dynactor.api.requests import maintenance_header

# The header that names the operation.
TARGET_HEADER: Final = "X-Amz-Target"

_KEY_ID: Final = "console"


async def perform(protocol: Protocol, request: web.BaseRequest) -> web.Response:
    """Answer an operation of DynamoDB."""
    key_id = request.query.get(KEY_ID_PARAMETER) or _KEY_ID
    region = request.query.get(REGION_PARAMETER) or protocol.database.settings.region
    headers = headers_by_name(request.raw_headers)
    headers |= maintenance_header.HEADER
    asked = Request(
        # The same of two such headers as for ``reads_only``.
        target=request.headers.get(TARGET_HEADER, ""),
        content_type=JSON_1_0,
        authorization="",
        query="",
        host=headers.get("host", ""),
        content_encoding="",
        accept_encoding=headers.get("accept-encoding", ""),
        body=await request.read(),
        explain=headers.get(REQUEST_HEADER.lower(), ""),
        headers=headers,
        trusted=TrustedCaller(region, key_id),
    )
    answer = protocol.answer(asked)
    return _response(answer if isinstance(answer, Answer) else await answer)


def reads_only(target: str, body: bytes) -> bool:
    """Whether an operation changes nothing."""
    operation = TARGETS.get(target)
    if operation is None:
        return False
    return operation.is_read or (operation.reads_only is not None and operation.reads_only(body))


def _response(answer: Answer) -> web.Response:
    headers = CIMultiDict(HEADERS)
    headers["Content-Type"] = answer.content_type
    headers["x-amzn-RequestId"] = answer.request_id
    headers.update(answer.explanations)
    if answer.content_encoding:
        headers["Content-Encoding"] = answer.content_encoding
    return web.Response(status=HTTPStatus(answer.status), body=answer.body, headers=headers)
