"""Faults on the admin listener, for a server that was started with ``--allow-faults``.

``POST /faults`` adds a rule (``dynactor.api.faults.rule``) and answers with its ``id``,
``GET /faults`` lists the rules, ``DELETE /faults`` removes all of them and ``DELETE /faults/ID``
removes one. A reset removes all rules too.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import web
from msgspec import Struct

from dynactor.api.admin.answers import fault, json_answer, other_method, other_type
from dynactor.api.faults.injector import MOST_RULES, FaultInjector, RuleState, TooManyRules
from dynactor.api.faults.rule import BadRule, FaultRule
from dynactor.api.registry import OPERATIONS

FAULTS_PATH: Final = "/faults"


class Rules(Struct, frozen=True):
    """All rules, in the order in which they were added."""

    rules: list[RuleState]


async def answer(injector: FaultInjector | None, request: web.BaseRequest) -> web.Response:
    """Answer a request for one of the paths of faults."""
    if injector is None:
        return fault(HTTPStatus.FORBIDDEN, "Start the server with --allow-faults")
    rule_id = request.path.removeprefix(FAULTS_PATH).removeprefix("/")
    if rule_id:
        if request.method != "DELETE":
            return other_method(request.path, "DELETE")
        if not injector.remove(rule_id):
            return fault(HTTPStatus.NOT_FOUND, f"There is no rule {rule_id}")
    elif request.method == "DELETE":
        injector.clear()
    elif request.method == "POST":
        return await _add(injector, request)
    elif request.method not in ("GET", "HEAD"):
        return other_method(request.path, "GET, HEAD, POST, DELETE")
    return json_answer(HTTPStatus.OK, Rules(injector.rules))


async def _add(injector: FaultInjector, request: web.BaseRequest) -> web.Response:
    refusal = other_type(request)
    if refusal is not None:
        return refusal
    try:
        rule = msgspec.json.decode(await request.read(), type=FaultRule)
        rule.check(OPERATIONS)
        return json_answer(HTTPStatus.CREATED, injector.add(rule))
    except (msgspec.MsgspecError, BadRule) as error:
        return fault(HTTPStatus.BAD_REQUEST, str(error))
    except TooManyRules:
        return fault(HTTPStatus.CONFLICT, f"There are {MOST_RULES} rules already: remove some")
