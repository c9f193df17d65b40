"""An operation with injected faults."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final

import anyio
from msgspec import Struct, json, structs

from dynactor.api.admin_api.change_header import CONSOLE_HEADER
from dynactor.api.execution.operation import Operation
from dynactor.api.faults.injector import FaultInjector, Injection
from dynactor.api.faults.rule import FaultRule
from dynactor.api.http.answer_damage import AnswerDamage, DamagedBody
from dynactor.api.requests.call import Call
from dynactor.model.errors import (
    CancellationReason,
    DynamoDBError,
    ExpiredIteratorException,
    InternalServerError,
    LimitExceededException,
    ServiceUnavailable,
    TransactionCanceledException,
    TransactionConflictException,
)
from dynactor.model.throttling.refusal import LimitType, Refusal, refusal
from dynactor.model.writes.transaction import NO_REASON

_LIMITS: Final = {
    "ProvisionedThroughputExceeded": LimitType.PROVISIONED,
    "KeyRangeThroughputExceeded": LimitType.KEY_RANGE,
    "MaxOnDemandThroughputExceeded": LimitType.MAX_ON_DEMAND,
    "AccountLimitExceeded": LimitType.ACCOUNT,
}
_DAMAGES: Final = {
    "cut-before": AnswerDamage.CUT,
    "cut-after": AnswerDamage.CUT,
    "cut-middle": AnswerDamage.CUT_MIDDLE,
    "wrong-crc32": AnswerDamage.WRONG_CRC32,
}


def with_faults(operation: Operation, injector: FaultInjector) -> Operation:
    """The same operation with the faults that the injector draws.

    The request and its signature are verified first. The console's own requests get no faults.
    """

    def handle(call: Call[Any]) -> Awaitable[bytes] | bytes:
        if CONSOLE_HEADER in call.headers:
            return operation.handle(call)
        injection = injector.draw(operation, call)
        if injection is None:
            return operation.handle(call)
        return _injected(operation, call, injection)

    return structs.replace(operation, handle=handle)


async def _injected(operation: Operation, call: Call[Any], injection: Injection) -> bytes:
    if injection.delay_seconds:
        await anyio.sleep(injection.delay_seconds)
    rule = injection.rule
    if rule is None:
        return await _executed(operation, call)
    if rule.fault == "cut-before":
        return DamagedBody(b"", AnswerDamage.CUT)
    if rule.fault in _DAMAGES:
        return DamagedBody(await _executed(operation, call), _DAMAGES[rule.fault])
    if rule.fault == "unprocessed":
        return await _in_part(operation, call)
    raise _error(rule, call, injection)


async def _executed(operation: Operation, call: Call[Any]) -> bytes:
    done = operation.handle(call)
    return done if isinstance(done, bytes) else await done


def _error(rule: FaultRule, call: Call[Any], injection: Injection) -> DynamoDBError:
    facts = injection.facts
    match rule.fault:
        case "throttling":
            refused = _refusal(rule, call, injection)
            if not facts.operation.is_transaction:
                return refused.error()
            return _cancelled(
                CancellationReason(refused.cancellation_code, refused.message), facts.batch_size
            )
        case "transaction-conflict":
            conflict = TransactionConflictException()
            if not facts.operation.is_transaction:
                return conflict
            return _cancelled(
                CancellationReason("TransactionConflict", conflict.message), facts.batch_size
            )
        case "limit-exceeded":
            return LimitExceededException("Too many operations for a given subscriber")
        case "expired-iterator":
            return ExpiredIteratorException(
                "The provided iterator exceeds the maximum age allowed."
            )
        case "service-unavailable":
            return ServiceUnavailable("The service is currently unavailable or busy")
    return InternalServerError("The request processing has failed because of an unknown error")


def _refusal(rule: FaultRule, call: Call[Any], injection: Injection) -> Refusal:
    facts, settings = injection.facts, call.database.settings
    name = rule.table or (facts.tables[0] if facts.tables else "")
    table = call.database.usable_table(name)
    billing_mode = "PROVISIONED" if table is None else table.definition.billing_mode
    limit = LimitType.PROVISIONED if billing_mode == "PROVISIONED" else LimitType.KEY_RANGE
    if rule.limit is not None:
        limit = _LIMITS[rule.limit]
    arn = f"arn:aws:dynamodb:{settings.region}:{settings.account_id}:table/{name}"
    index = rule.index or facts.index
    return refusal(
        "Read" if facts.operation.is_read else "Write",
        limit,
        billing_mode,
        arn if index is None else f"{arn}/index/{index}",
        is_index=index is not None,
    )


def _cancelled(reason: CancellationReason, actions: int) -> TransactionCanceledException:
    """A canceled transaction whose first action has this reason."""
    return TransactionCanceledException([reason] + [NO_REASON] * (actions - 1))


async def _in_part(operation: Operation, call: Call[Any]) -> bytes:
    """Execute the first half of a batch, and return the second half as unprocessed."""
    taken, left = _halves(call.request.RequestItems)
    request = structs.replace(call.request, RequestItems=taken)
    body = await _executed(operation, structs.replace(call, request=request))
    answer = json.decode(body)
    unprocessed = answer.setdefault(operation.unprocessed_member, {})
    for name, rest in json.decode(json.encode(left)).items():
        if name not in unprocessed:
            unprocessed[name] = rest
        elif isinstance(rest, list):
            unprocessed[name] += rest
        else:
            unprocessed[name]["Keys"] += rest["Keys"]
    return json.encode(answer)


def _halves(requests: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Divide a batch of at least two requests into two parts that are not empty."""
    sizes = {name: len(_listed(each)) for name, each in requests.items()}
    to_take = (sum(sizes.values()) + 1) // 2
    taken: dict[str, Any] = {}
    left: dict[str, Any] = {}
    for name, each in requests.items():
        here = min(to_take, sizes[name])
        to_take -= here
        if here:
            taken[name] = _with(each, _listed(each)[:here])
        if here < sizes[name]:
            left[name] = _with(each, _listed(each)[here:])
    return taken, left


def _listed(table_members: Any) -> list[Any]:
    """The writes of one table, or the keys to get from it."""
    listed: list[Any] = getattr(table_members, "Keys", table_members)
    return listed


def _with(table_members: Any, listed: list[Any]) -> Any:
    return (
        structs.replace(table_members, Keys=listed) if isinstance(table_members, Struct) else listed
    )
