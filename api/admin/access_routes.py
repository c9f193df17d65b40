"""Policies on the admin listener: ``GET /access/actions?principal=ARN``.

The answer has the actions that a user or role asked for in the last hour, with
``--policy-mode observe``.
"""

from __future__ import annotations

from http import HTTPStatus

from aiohttp import web

from dynactor.api.access.access_control import AccessControl
from dynactor.api.admin.access_messages import ACTIONS_PATH, RecordedAnswer
from dynactor.api.admin.answers import fault, json_answer, other_method


def answer(access_control: AccessControl | None, request: web.BaseRequest) -> web.Response:
    """Answer a request for one of the paths below ``/access``."""
    if request.path != ACTIONS_PATH:
        return fault(HTTPStatus.NOT_FOUND, f"There is {ACTIONS_PATH}")
    if request.method not in ("GET", "HEAD"):
        return other_method(request.path, "GET, HEAD")
    if access_control is None or access_control.recorded is None:
        return fault(
            HTTPStatus.CONFLICT,
            "The server records no actions: start it with --policy-dir and --policy-mode observe",
        )
    principal = request.query.get("principal")
    if not principal:
        return fault(HTTPStatus.BAD_REQUEST, "Name the user or role: ?principal=ARN")
    actions = access_control.recorded.actions(principal)
    return json_answer(HTTPStatus.OK, RecordedAnswer(list(actions)))
