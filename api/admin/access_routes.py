"""Policies on the admin listener: ``GET /access`` and ``GET /access/actions?principal=ARN``.

The first answer says whether policies are enforced, and warns about their statements. The second
has the actions that a user or role asked for in the last hour, with ``--policy-mode observe``.
"""

from __future__ import annotations

from http import HTTPStatus

from aiohttp import web

from dynactor.api.access.access_control import AccessControl
from dynactor.api.admin.answers import fault, json_answer, other_method
from dynactor.api.admin_api.access_messages import (
    ACCESS_PATH,
    ACTIONS_PATH,
    AccessAnswer,
    AccessWarning,
    RecordedAnswer,
)
from dynactor.model.access.explanation import warnings


def answer(access_control: AccessControl | None, request: web.BaseRequest) -> web.Response:
    """Answer a request for one of the paths below ``/access``."""
    if request.path not in (ACCESS_PATH, ACTIONS_PATH):
        return fault(HTTPStatus.NOT_FOUND, f"There are {ACCESS_PATH} and {ACTIONS_PATH}")
    if request.method not in ("GET", "HEAD"):
        return other_method(request.path, "GET, HEAD")
    if request.path == ACCESS_PATH:
        return json_answer(HTTPStatus.OK, access_answer(access_control))
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


def access_answer(access_control: AccessControl | None) -> AccessAnswer:
    """Whether policies are enforced, and warnings about the policies of users and roles."""
    if access_control is None:
        return AccessAnswer()
    return AccessAnswer(
        "enforce" if access_control.recorded is None else "observe",
        tuple(
            AccessWarning(grants.principal.principal_arn, text)
            for grants in access_control.identities.all_grants()
            for text in warnings(grants)
        ),
    )
