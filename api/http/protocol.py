"""DynamoDB's JSON 1.0 protocol: a request's headers and body in, an answer out.

This module uses no sockets. The two lanes (``dynactor.api.http.fast_lane``,
``dynactor.api.http.aiohttp_lane``) make a ``Request`` from the bytes that they read, and bytes from
the ``Answer``.
"""

from __future__ import annotations

import asyncio
import re
import time
from asyncio import CancelledError
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from copy import copy
from functools import partial
from http import HTTPStatus
from itertools import count
from secrets import choice
from time import perf_counter_ns
from typing import Any, Final, TypeAlias, cast

import anyio
import msgspec
import structlog
from msgspec import Struct, structs

from dynactor.actors.database.database import Database
from dynactor.actors.database.databases import Databases
from dynactor.actors.runtime.caller import CALLER
from dynactor.actors.runtime.cancellation import is_cancellation
from dynactor.api.access.access_control import AccessControl
from dynactor.api.access.sender import NO_CLIENT, Client, Connection, TrustedCaller
from dynactor.api.answers import explain
from dynactor.api.execution.operation import Operation
from dynactor.api.http import compression
from dynactor.api.http.answer_damage import AnswerDamage, DamagedBody
from dynactor.api.http.key_limits import KeyLimits, KeyUse
from dynactor.api.http.loop_turn import LoopTurn
from dynactor.api.http.request_figures import Failure, RequestFigures
from dynactor.api.http.request_log import AnsweredRequest, RequestLog
from dynactor.api.keys.credential_scope import credential_scope
from dynactor.api.keys.signature import Signatures
from dynactor.api.requests import as_of, table_arn
from dynactor.api.requests.call import Call
from dynactor.api.requests.foreign_arns import (
    owned_members,
    refuse_foreign_arns,
    refuse_other_accounts,
)
from dynactor.api.requests.input_decoder import UNDECODABLE, InputDecoder
from dynactor.api.requests.named_tables import action_tables, named_tables
from dynactor.api.sts.token_service import SERVICE as STS
from dynactor.api.sts.token_service import TokenService
from dynactor.model.access.bucket_grant import BucketGrant
from dynactor.model.advice.explained_costs import Paid
from dynactor.model.errors import (
    DynamoDBError,
    InternalServerError,
    MissingAuthenticationTokenException,
    ResourceNotFoundException,
    SerializationException,
    Throttled,
    TransactionCanceledException,
    UnknownOperationException,
    ValidationException,
)
from dynactor.model.latency_histogram import LatencyHistogram
from dynactor.model.writes.transaction import THROTTLING_CODES
from dynactor.storage.namespaces import Namespace
from dynactor.storage.store import StoreError

JSON_1_0: Final = "application/x-amz-json-1.0"
JSON: Final = "application/json"
_FORM: Final = "application/x-www-form-urlencoded"
_STS_SCOPE: Final = f"/{STS}/aws4_request"
_JSON_TYPES: Final = frozenset({JSON_1_0, JSON})

# Every signature in the header starts with the name of its algorithm.
_SIGNATURE: Final = "AWS4-"
_TARGET: Final = re.compile(r"(DynamoDB|DynamoDBStreams)_20120810\.(\w+)\Z", re.ASCII)
# AWS's exact body for a request of another protocol.
_NOT_UNDERSTOOD: Final = b"<UnknownOperationException/>\n"
_ID_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_ID_CHARACTERS: Final = 52
_ID_COUNTER_DIGITS: Final = 16
# A plain number, because a look-up of the enumeration's member costs 3 % of a get.
_OK: Final = HTTPStatus.OK.value
# Seconds that a reset waits for pending requests.
_PENDING_SECONDS: Final = 5.0

_OTHER_PROTOCOL: Final = Failure("", "UnknownOperationException", 404)

_log = structlog.get_logger(__name__)
_encode = msgspec.json.Encoder().encode


class Request(Struct, frozen=True):
    """The parts of a POST that the protocol uses; a missing header is an empty text."""

    target: str
    content_type: str
    authorization: str
    query: str
    host: str
    content_encoding: str
    accept_encoding: str
    body: bytes
    explain: str = ""
    # All headers, names in lower case, bytes as Latin-1: a signature may cover any of them.
    headers: Mapping[str, str] = {}
    client: Client = NO_CLIENT
    # None for the request of a client, whose signature is verified.
    trusted: TrustedCaller | None = None


class Answer(Struct, frozen=True):
    """The answer to a request: the body as sent, and the values of its headers."""

    status: int
    content_type: str
    body: bytes
    request_id: str
    content_encoding: str = ""
    # Headers with the cost of the request and the decision of policies, if requested; see
    # ``dynactor.api.answers.explain`` and ``dynactor.api.access.access_explanation``.
    explanations: Mapping[str, str] = explain.NO_EXPLANATIONS
    # None, unless a test injects faults.
    damage: AnswerDamage | None = None


class _RequestInFlight(Struct):
    """A request in flight; ``call`` is set once it is decoded, ``paid`` if it requests its cost."""

    request: Request
    request_id: str
    content_type: str
    paid: list[Paid] | None = None
    call: Call[Any] | None = None
    explanations: Mapping[str, str] = explain.NO_EXPLANATIONS
    # None unless the caller's key has limits.
    use: KeyUse | None = None


# An operation with its decoder and latencies. A tuple, because each request unpacks one.
Known: TypeAlias = tuple[Operation, InputDecoder[Any], LatencyHistogram]


# Answers a request in another way.
Detour: TypeAlias = Callable[[Request], Answer | Awaitable[Answer]]


class Protocol:
    """Answers requests, each by its operation."""

    def __init__(
        self,
        database: Database | None,
        operations: Iterable[Operation],
        not_implemented: frozenset[str] = frozenset(),
        signatures: Signatures | None = None,
        request_log: RequestLog | None = None,
        *,
        access_control: AccessControl | None = None,
        key_limits: KeyLimits | None = None,
        token_service: TokenService | None = None,
    ) -> None:
        """Without ``signatures`` every signature is accepted, and there is no ``access_control``.

        Without ``access_control`` every accepted request is allowed. Without
        ``database`` all requests take a detour until ``resume``.
        """
        # The database of the configured region. A node that was never the home has none.
        self.database = cast("Database", database)
        # None, unless each region has a database of its own.
        self.databases: Databases | None = None
        self._signatures = signatures
        self.access_control = access_control
        self.key_limits = key_limits
        # Set by the lanes.
        self.open_connections: set[Connection] = set()
        self._log = request_log or RequestLog()
        self._logs_answers = self._log.logs_answers
        self.figures = RequestFigures()
        self._operations = {
            operation.target: (
                operation,
                InputDecoder(operation.input, operation.layer),
                self.figures.of(None).operation_latency(operation.name),
            )
            for operation in operations
        }
        # The operations without injected faults or traces (``replace_operations``).
        self._given = self._operations
        self._not_implemented = not_implemented
        self.request_ids = _request_ids()
        # Answers requests of STS, if they are answered.
        self.token_service = token_service
        # Whether new connections are accepted; set by ``dynactor.api.http.server``.
        self.is_serving = False
        # Number of requests whose answers are awaited.
        self._pending_count = 0
        self._idle: asyncio.Event | None = None
        # Set while new requests are delayed; completes when they may continue.
        self._resumed: asyncio.Future[None] | None = None
        # Protocols that share everything but the databases.
        self._twins: list[Protocol] = []
        # Answers all requests if it is set: they are delayed, or another node answers them.
        self._detour: Detour | None = None

    def answer(self, request: Request, turn: LoopTurn | None = None) -> Answer | Awaitable[Answer]:
        """Answer a request, at once if its operation waits for nothing.

        Neither this method nor the awaitable raises because of a client's request. Within a
        ``turn`` of the event loop, the latency counts from the turn's start.
        """
        if self._detour is not None:
            return self._detour(request)
        began = perf_counter_ns() if turn is None else turn.began_nanoseconds
        request_id = next(self.request_ids)
        content_type = request.content_type
        if content_type not in _JSON_TYPES:
            content_type = _media_type(content_type)
            if content_type not in _JSON_TYPES:
                if (
                    content_type == _FORM
                    and self.token_service is not None
                    and _STS_SCOPE in request.authorization
                ):
                    status, body = self.token_service.answer(request, request_id)
                    return Answer(status, "text/xml", body, request_id)
                if request.content_type or request.body:
                    return self._not_understood(request_id)
                # An empty request counts as JSON, as on DynamoDB.
                content_type = JSON_1_0
        asked = _RequestInFlight(request, request_id, content_type)
        if self._logs_answers or (request.explain and explain.is_wanted(request.explain)):
            asked.paid = []
        known = self._operations.get(request.target)
        if known is None:
            return self._answer_unknown(asked)
        try:
            done = self._perform(asked, known)
        except Exception as error:  # noqa: BLE001 - see ``_failure``
            return _answer(asked, *self._failure(asked, error, began))
        if isinstance(done, bytes):
            latency = known[2] if self.databases is None else self._latency(asked, known)
            if turn is None:
                latency.observe(perf_counter_ns() - began)
            else:
                turn.answered.append(latency)
            if self._logs_answers:
                self._log_answer(asked, known, began)
            return _answer(asked, _OK, done)
        self._pending_count += 1
        return self._answer_when(asked, done, known, began)

    def _answer_unknown(self, asked: _RequestInFlight) -> Answer:
        error: DynamoDBError = self._no_such_operation(asked.request.target)
        try:
            _check_json(plain_body(asked.request))
        except DynamoDBError as found:
            error = found
        return _answer(asked, *self._failure(asked, error))

    async def _answer_when(
        self, asked: _RequestInFlight, work: Awaitable[bytes], known: Known, began: int
    ) -> Answer:
        try:
            body = await work
        except (Exception, CancelledError) as error:
            if is_cancellation(error):
                raise
            return _answer(asked, *self._failure(asked, error, began))
        finally:
            self._pending_count -= 1
            if self._idle is not None and not self._pending_count:
                self._idle.set()
        self._latency(asked, known).observe(perf_counter_ns() - began)
        if self._logs_answers:
            self._log_answer(asked, known, began)
        return _answer(asked, _OK, body)

    def _latency(self, asked: _RequestInFlight, known: Known) -> LatencyHistogram:
        """The histogram of a request's operation, in its region if regions are separate."""
        namespace = self._namespace(asked)
        return (
            known[2]
            if namespace is None
            else self.figures.of(namespace).operation_latency(known[0].name)
        )

    def _namespace(self, asked: _RequestInFlight) -> Namespace | None:
        """The namespace of a request, if regions are separate and its database is known."""
        if self.databases is None or asked.call is None:
            return None
        return asked.call.database.settings.namespace

    def _log_answer(self, asked: _RequestInFlight, known: Known, began: int) -> None:
        took_nanoseconds = perf_counter_ns() - began
        if self._log.logs_answers:
            self._log.answered(known[0].name, took_nanoseconds, asked.request_id)
        self._tell_listeners(asked, Failure(known[0].name, "", _OK), took_nanoseconds)

    def listen(self, listener: deque[AnsweredRequest]) -> None:
        """Append the requests of clients to a queue, until ``stop_listening``."""
        self._log.listeners.append(listener)
        for protocol in (self, *self._twins):
            protocol._logs_answers = True  # noqa: SLF001 - of the same class

    def stop_listening(self, listener: deque[AnsweredRequest]) -> None:
        """Append no more requests to this queue."""
        # Compare by identity, because all empty queues are equal.
        self._log.listeners[:] = [each for each in self._log.listeners if each is not listener]
        for protocol in (self, *self._twins):
            protocol._logs_answers = self._log.logs_answers or bool(self._log.listeners)  # noqa: SLF001

    def _tell_listeners(
        self, asked: _RequestInFlight, outcome: Failure, took_nanoseconds: int
    ) -> None:
        if not self._log.listeners or asked.request.trusted:
            return
        call = asked.call
        self._log.heard(
            AnsweredRequest(
                time.time(),
                asked.request_id,
                outcome.operation,
                () if call is None else tuple(dict.fromkeys(named_tables(call.request))),
                took_nanoseconds / 1e6,
                sum(
                    paid.receipt.read_units + paid.receipt.write_units for paid in asked.paid or ()
                ),
                outcome.http_status,
                outcome.code,
            )
        )

    def _failed(
        self, failure: Failure, request_id: str, namespace: Namespace | None = None
    ) -> None:
        self.figures.of(namespace).failures[failure] += 1
        self._log.failed(failure, request_id)

    async def _answer_when_resumed(self, resumed: asyncio.Future[None], request: Request) -> Answer:
        await asyncio.shield(resumed)
        answer = self.answer(request)
        return answer if isinstance(answer, Answer) else await answer

    def twin(self) -> Protocol:
        """A protocol that answers from other databases, with the same settings and figures."""
        twin = copy(self)
        twin._detour = None  # noqa: SLF001 - of the same class
        self._twins.append(twin)
        return twin

    def use(self, databases: Databases) -> None:
        """Answer requests from these databases."""
        self.database = databases.main
        self.databases = None if databases.separation == "shared" else databases

    async def hold(self) -> None:
        """Delay new requests until ``resume``, and wait at most 5 seconds for pending ones."""
        assert self._resumed is None
        self._resumed = asyncio.get_running_loop().create_future()
        self._detour = partial(self._answer_when_resumed, self._resumed)
        await self.wait_idle(_PENDING_SECONDS)

    async def wait_idle(self, seconds: float) -> None:
        """Wait for pending requests, at most ``seconds``. New requests take the detour."""
        if self._pending_count:
            self._idle = asyncio.Event()
            with anyio.move_on_after(seconds):
                await self._idle.wait()
            self._idle = None

    def detour(self, detour: Detour) -> None:
        """Have another node answer all requests, until ``resume``."""
        assert self._resumed is None
        self._detour = detour

    def resume(self, databases: Databases) -> None:
        """Answer requests from these databases, starting with the delayed requests."""
        self.use(databases)
        self._detour = None
        if self._resumed is not None:
            self._resumed.set_result(None)
            self._resumed = None

    def replace_operations(self, replaced: Callable[[Operation], Operation] | None) -> None:
        """Replace the table of operations; None restores the original one."""
        self._operations = self._given
        if replaced is not None:
            self._operations = {
                target: (replaced(known[0]), *known[1:]) for target, known in self._given.items()
            }

    def refusal(self, head: Request) -> Answer | None:
        """The answer if a request is refused whatever its body is; None if its body decides.

        ``head`` has no body yet. The answer is the same that ``answer`` would give.
        """
        asked = _RequestInFlight(head, next(self.request_ids), _media_type(head.content_type))
        if asked.content_type not in _JSON_TYPES:
            return self._not_understood(asked.request_id)
        try:
            self._check_head(head)
        except Exception as error:  # noqa: BLE001 - see ``_failure``
            return _answer(asked, *self._failure(asked, error))
        return None

    def _check_head(self, head: Request) -> None:
        """Make the checks of ``_perform`` that need no body."""
        if head.target not in self._operations:
            raise self._no_such_operation(head.target)
        if self._signatures is None:
            _check_authorization(head.authorization, head.query)
        else:
            self._signatures.check_head(head.headers, head.query, time.time())

    def refuse(self, error: DynamoDBError) -> Answer:
        """The answer to a request that is refused before the protocol handles it."""
        request_id = next(self.request_ids)
        self._failed(Failure("", error.name, error.http_status), request_id)
        return Answer(error.http_status, JSON_1_0, error_body(error), request_id)

    def not_understood(self) -> Answer:
        """The answer to a request of another protocol."""
        return self._not_understood(next(self.request_ids))

    def _not_understood(self, request_id: str) -> Answer:
        self._failed(_OTHER_PROTOCOL, request_id)
        return Answer(_OTHER_PROTOCOL.http_status, "text/xml", _NOT_UNDERSTOOD, request_id)

    def _perform(self, asked: _RequestInFlight, known: Known) -> bytes | Awaitable[bytes]:
        request = asked.request
        access_key_id = ""
        if request.trusted is not None:
            pass
        elif self._signatures is None:
            if not request.authorization.startswith(_SIGNATURE):
                _check_authorization(request.authorization, request.query)
        else:
            # Use real time, because clients do not know the virtual clock.
            access_key_id = self._signatures.check(
                request.headers, request.query, request.body, time.time()
            )
            if self.key_limits is not None and self.key_limits.has_limits:
                client = request.client
                asked.use = self.key_limits.begin(
                    access_key_id,
                    request.headers,
                    len(request.body),
                    # A request may outlive its connection.
                    client if client in self.open_connections else None,
                )
        operation, decoder, _ = known
        body = plain_body(request) if request.content_encoding else request.body
        decoded = decoder.decode(body)
        if self.databases is not None:
            return self._perform_in_region(asked, operation, decoded, self.databases, access_key_id)
        return self._perform_in(self.database, asked, operation, decoded, access_key_id)

    def _perform_in_region(
        self,
        asked: _RequestInFlight,
        operation: Operation,
        decoded: Struct,
        databases: Databases,
        access_key_id: str,
    ) -> bytes | Awaitable[bytes]:
        """Execute an operation in the database of the signature's region."""
        request = asked.request
        trusted = request.trusted
        if trusted is None or not trusted.region:
            # An earlier build's node sends a page's region in the header.
            region, named_key_id = credential_scope(request.authorization, request.query)
        else:
            region, named_key_id = trusted.region, trusted.access_key_id
        refuse_foreign_arns(operation.arn_errors, decoded, region)
        namespace = databases.namespace(region, named_key_id)
        database = databases.find(namespace)
        if database is None:
            opening = databases.open(namespace)
            return self._perform_when_open(asked, operation, decoded, opening, access_key_id)
        return self._perform_in(database, asked, operation, decoded, access_key_id)

    async def _perform_when_open(
        self,
        asked: _RequestInFlight,
        operation: Operation,
        decoded: Struct,
        opening: Awaitable[Database],
        access_key_id: str,
    ) -> bytes:
        database = await opening
        done = self._perform_in(database, asked, operation, decoded, access_key_id)
        return done if isinstance(done, bytes) else await done

    def _perform_in(
        self,
        database: Database,
        asked: _RequestInFlight,
        operation: Operation,
        decoded: Struct,
        access_key_id: str,
    ) -> bytes | Awaitable[bytes]:
        request = asked.request
        if owned_members(operation.input):
            refuse_other_accounts(operation.arn_errors, decoded, database)
        call = asked.call = Call(database, decoded, request.host, asked.paid, request.headers)
        if self.access_control is not None and request.trusted is None:
            grant = _check_access(self.access_control, asked, access_key_id, operation, call)
            if grant is not None:
                call = asked.call = structs.replace(call, bucket_grant=grant)
        if as_of.HEADER in request.headers:
            if not operation.reads_past:
                raise as_of.unsupported(operation.name)
            call = asked.call = as_of.dated(call)
            asked.explanations = {**asked.explanations, **as_of.answer_headers(call)}
        if access_key_id:
            return _handle_for(access_key_id, operation, call)
        return operation.handle(call)

    def _failure(
        self, asked: _RequestInFlight, error: BaseException, began: int | None = None
    ) -> tuple[int, bytes]:
        """The status and body of an error of a request that began at this time.

        Any exception is answered, even a bug in the server, so that no connection is closed.
        """
        shown = self._shown_error(asked, error)
        known = self._operations.get(asked.request.target)
        operation = "" if known is None else known[0].name
        failure = Failure(operation, shown.name, shown.http_status)
        self._failed(failure, asked.request_id, self._namespace(asked))
        if self._log.listeners:
            took_nanoseconds = 0 if began is None else perf_counter_ns() - began
            self._tell_listeners(asked, failure, took_nanoseconds)
        return shown.http_status, error_body(shown)

    def _shown_error(self, asked: _RequestInFlight, error: BaseException) -> DynamoDBError:
        if asked.call is not None and isinstance(error, DynamoDBError):
            error = self._refusal(asked, asked.call, error)
        if isinstance(error, DynamoDBError):
            return error
        if isinstance(error, StoreError):
            _log.error("store_failed", request_id=asked.request_id, error=str(error))
            return InternalServerError(f"The store failed: {error}")
        _log.error(
            "request_crashed",
            request_id=asked.request_id,
            target=asked.request.target,
            exc_info=error,
        )
        return InternalServerError("Internal server error")

    def _refusal(
        self, asked: _RequestInFlight, call: Call[Any], error: DynamoDBError
    ) -> DynamoDBError:
        operation, decoder, _ = self._operations[asked.request.target]
        match error:
            case ValidationException() | ResourceNotFoundException():
                body = plain_body(asked.request)
                try:
                    decoder.check_serialization(body)
                except SerializationException as found:
                    return found
                if isinstance(error, ValidationException):
                    return decoder.worded(error, body)
            case Throttled():
                self._count_throttled(call, operation, _table_names(call.request))
            case TransactionCanceledException():
                self._count_throttled(call, operation, _throttled_tables(call.request, error))
        return error

    def _count_throttled(self, call: Call[Any], operation: Operation, tables: set[str]) -> None:
        throttled = self.figures.of(call.database.settings.namespace).throttled
        throttled.update((table, operation.name) for table in tables)

    def _no_such_operation(self, target: str) -> UnknownOperationException:
        """The error for a target without operation, with a message if DynamoDB has the operation.

        DynamoDB sends no message with this error. SDKs do not retry its status, 400.
        """
        named = _TARGET.match(target)
        if named is not None and named[2] in self._not_implemented:
            return UnknownOperationException(f"{named[2]} is not implemented yet in dynactor")
        return UnknownOperationException("")


def _check_access(
    access_control: AccessControl,
    asked: _RequestInFlight,
    access_key_id: str,
    operation: Operation,
    call: Call[Any],
) -> BucketGrant | None:
    """Refuse a request that policies deny; the answer has the explanation in both cases."""
    request = asked.request
    asked.explanations = access_control.explanations(access_key_id, operation, call, request)
    return access_control.check(access_key_id, operation, call, request)


def _answer(asked: _RequestInFlight, status: int, body: bytes) -> Answer:
    encoding = ""
    explanations = asked.explanations
    damage = body.damage if type(body) is DamagedBody else None
    if asked.paid and explain.is_wanted(asked.request.explain):
        text = explain.header_text(asked.request.target.partition(".")[2], asked.paid)
        explanations = {**explanations, explain.RESPONSE_HEADER: text}
    if len(body) >= compression.WORTH_COMPRESSING_BYTES:
        coding = compression.accepted_coding(asked.request.accept_encoding)
        if coding is not None:
            body, encoding = compression.compress(body, coding), coding
    if asked.use is not None:
        asked.use.answered(len(body))
    return Answer(
        status, asked.content_type, body, asked.request_id, encoding, explanations, damage
    )


def error_body(error: DynamoDBError) -> bytes:
    """The JSON of an error."""
    members: dict[str, Any] = {"__type": error.wire_type, **error.members()}
    return _encode(members)


def _table_names(request: Struct) -> set[str]:
    named = getattr(request, "TableName", None)
    names = getattr(request, "RequestItems", ()) if named is None else (named,)
    return set(map(table_arn.table_name, names))


def _throttled_tables(request: Struct, error: TransactionCanceledException) -> set[str]:
    """The tables whose limits canceled a transaction, if its actions name them."""
    names: set[str] = set()
    for one, reason in zip(getattr(request, "TransactItems", ()), error.reasons, strict=False):
        if reason.code in THROTTLING_CODES:
            names.update(action_tables(one))
    return set(map(table_arn.table_name, names))


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def is_packed(request: Request) -> bool:
    """Whether a request's body is compressed."""
    return _content_coding(request) in compression.CODINGS


def _content_coding(request: Request) -> str:
    return request.content_encoding.strip().lower()


def plain_body(request: Request) -> bytes:
    """The body of a request, decompressed; raises ``SerializationException``."""
    named = _content_coding(request)
    if named in ("", "identity"):
        return request.body
    for coding in compression.CODINGS:
        if named == coding:
            return compression.decompress(request.body, coding)
    raise SerializationException(f"Content-Encoding {named} is not supported")


def _handle_for(
    access_key_id: str, operation: Operation, call: Call[Any]
) -> bytes | Awaitable[bytes]:
    """Execute an operation whose changes name the key of the caller."""
    before = CALLER.set(access_key_id)
    try:
        done = operation.handle(call)
    finally:
        CALLER.reset(before)
    return done if isinstance(done, bytes) else _finish_for(access_key_id, done)


async def _finish_for(access_key_id: str, work: Awaitable[bytes]) -> bytes:
    # The task that finishes a request may be another one than the task that started it.
    before = CALLER.set(access_key_id)
    try:
        return await work
    finally:
        CALLER.reset(before)


def _check_json(body: bytes) -> None:
    """Refuse a body that is not JSON; an empty body passes. Raises ``SerializationException``."""
    try:
        if body:
            msgspec.json.decode(body)
    except UNDECODABLE:
        raise SerializationException("") from None


def _check_authorization(authorization: str, query: str) -> None:
    """Require a signature without verifying it, because any credentials are accepted.

    So a client that forgets to sign fails here as it would fail on AWS.
    """
    if not authorization.startswith(_SIGNATURE) and "X-Amz-Algorithm=" not in query:
        raise MissingAuthenticationTokenException("Request is missing Authentication Token")


def _request_ids() -> Iterator[str]:
    """Unique ids of 52 capital letters and digits: random for each process, then a count."""
    process = "".join(choice(_ID_LETTERS) for _ in range(_ID_CHARACTERS - _ID_COUNTER_DIGITS))
    return map(f"{process}%0{_ID_COUNTER_DIGITS}X".__mod__, count())
