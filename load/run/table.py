"""The table of a run: reused, created or recreated before the workers start."""

from __future__ import annotations

import asyncio
from typing import Any, Final, Literal

import msgspec

from dynactor.load.wire.answers import Answer
from dynactor.load.wire.connection import Connection
from dynactor.load.wire.endpoint import Endpoint
from dynactor.load.wire.requests import Requests
from dynactor.load.work.plan import Plan
from dynactor.load.work.records import create_table

Preparation = Literal["auto", "reuse", "recreate"]

_POLL_SECONDS: Final = 0.1
_ANSWER_SECONDS: Final = 30.0
_TABLE_SECONDS: Final = 300.0
_NOT_FOUND: Final = "ResourceNotFoundException"
# The answers to a request without a valid signature.
_WRONG_SIGNATURE: Final = frozenset(
    {
        "IncompleteSignatureException",
        "InvalidSignatureException",
        "MissingAuthenticationTokenException",
        "UnrecognizedClientException",
    }
)

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class CannotPrepare(Exception):
    """The endpoint or its table can't be used; the message says how to fix it."""


class _Call:
    """One request on a connection of its own."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def answered(self, answer: Answer) -> None:
        self.answer.set_result(answer)

    def lost(self, reason: str) -> None:
        if not self.answer.done():
            self.answer.set_exception(ConnectionError(reason))


class Caller:
    """Sends unmeasured requests."""

    def __init__(self, endpoint: Endpoint, requests: Requests) -> None:
        self._endpoint = endpoint
        self._requests = requests

    async def call(self, operation: str, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Send an operation; returns the error's name and the decoded answer.

        Raises:
            CannotPrepare: there is no answer, or it is not DynamoDB's.
        """
        where = f"{self._endpoint.host}:{self._endpoint.port}"
        call = _Call()
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                connection = await Connection.open(self._endpoint, call)
                connection.send(self._requests.make(operation, _encode(body)))
                answer = await call.answer
            connection.close()
            return answer.error, _decode(answer.body)
        except TimeoutError:
            raise CannotPrepare(f"{where} does not answer within {_ANSWER_SECONDS:g} s") from None
        except ConnectionRefusedError:
            raise CannotPrepare(
                f"Nothing listens at {where}: is the server running? Start one by `make serve`, "
                "or name another by --endpoint"
            ) from None
        except (ConnectionError, msgspec.DecodeError):
            raise CannotPrepare(f"{where} does not speak DynamoDB's protocol") from None
        except OSError as error:
            raise CannotPrepare(f"{where} can't be reached: {error}") from error


async def prepare(plan: Plan, caller: Caller, preparation: Preparation) -> bool:
    """Make sure that the plan's table exists; return whether it is new and has to be filled.

    Raises:
        CannotPrepare: see its docstring.
    """
    found = await _describe(plan, caller)
    if found is not None and preparation == "recreate":
        await _must(caller, "DeleteTable", {"TableName": plan.table})
        await _wait(plan, caller, there=False)
        found = None
    if found is not None:
        _check(plan, found)
        return False
    if preparation == "reuse":
        raise CannotPrepare(f"There is no table {plan.table}: leave out --prepare reuse")
    await _must(caller, "CreateTable", create_table(plan))
    await _wait(plan, caller, there=True)
    return True


def _check(plan: Plan, found: dict[str, Any]) -> None:
    if plan.verify:
        raise CannotPrepare(
            f"The table {plan.table} exists already, and --verify needs items that this run has "
            "written: add --prepare recreate, which deletes the table first, or give another "
            "--table"
        )
    wanted = create_table(plan)
    if found["KeySchema"] != wanted["KeySchema"]:
        raise CannotPrepare(
            f"The table {plan.table} has other keys than pk and sk: give another --table"
        )
    for kind in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes"):
        names = {index["IndexName"] for index in found.get(kind, ())}
        missing = [
            index["IndexName"] for index in wanted.get(kind, ()) if index["IndexName"] not in names
        ]
        if missing:
            raise CannotPrepare(
                f"The table {plan.table} has no index {missing[0]}, which this run needs: add "
                "--prepare recreate, which deletes it first, or give another --table"
            )


async def drop(plan: Plan, caller: Caller) -> None:
    """Delete the plan's table.

    Raises:
        CannotPrepare: see its docstring.
    """
    await _must(caller, "DeleteTable", {"TableName": plan.table})


async def _describe(plan: Plan, caller: Caller) -> dict[str, Any] | None:
    error, answer = await caller.call("DescribeTable", {"TableName": plan.table})
    if error == _NOT_FOUND:
        return None
    if error in _WRONG_SIGNATURE and not plan.sign:
        raise CannotPrepare(
            "The server verifies signatures: add --sign, with a key of the server in "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if error:
        raise CannotPrepare(f"DescribeTable is refused: {error}: {_message(answer)}")
    table: dict[str, Any] = answer["Table"]
    return table


async def _must(caller: Caller, operation: str, body: dict[str, Any]) -> None:
    error, answer = await caller.call(operation, body)
    if error:
        raise CannotPrepare(f"{operation} is refused: {error}: {_message(answer)}")


def _message(answer: dict[str, Any]) -> str:
    return str(answer.get("message") or answer.get("Message") or "no message")


async def _wait(plan: Plan, caller: Caller, *, there: bool) -> None:
    """Wait until the table and its indexes are ACTIVE, or the table is deleted."""
    try:
        async with asyncio.timeout(_TABLE_SECONDS):
            while True:
                found = await _describe(plan, caller)
                if found is None and not there:
                    return
                if found is not None and there and _is_active(found):
                    return
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        state = "ready" if there else "deleted"
        raise CannotPrepare(f"The table {plan.table} is not {state} yet: giving up") from None


def _is_active(table: dict[str, Any]) -> bool:
    return table["TableStatus"] == "ACTIVE" and all(
        # DynamoDB Local and dynalite may leave the status out of an answer.
        index.get("IndexStatus", "ACTIVE") == "ACTIVE"
        for index in table.get("GlobalSecondaryIndexes", ())
    )
