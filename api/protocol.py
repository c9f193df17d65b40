"""DynamoDB's JSON 1.0 protocol: a request's headers and body in, an answer out.

Knows nothing of sockets: both ways into the server (``api.server``, ``api.fast_lane``) make a
``Request`` of what they read, and bytes of the ``Answer``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count
from secrets import choice
from typing import Any, Final

import msgspec
import structlog
from msgspec import Struct

from actors.database import Database
from api import arn, compression, explain
from api.constraints import InputDecoder
from api.operation import Call, Operation
from model.errors import (
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
from model.explanation import Paid
from model.transaction import THROTTLING_CODES
from storage.store import StoreError

JSON_1_0: Final = "application/x-amz-json-1.0"
JSON: Final = "application/json"

_TARGET: Final = re.compile(r"(DynamoDB|DynamoDBStreams)_20120810\.(\w+)\Z", re.ASCII)
# What a request of another protocol gets, word for word.
_NOT_UNDERSTOOD: Final = b"<UnknownOperationException/>\n"
_ID_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_ID_CHARACTERS: Final = 52
_ID_COUNTER_DIGITS: Final = 16

_log = structlog.get_logger(__name__)
_encode = msgspec.json.Encoder().encode


class Request(Struct, frozen=True):
    """A POST, as much of it as the protocol looks at; a missing header is an empty text."""

    target: str
    content_type: str
    authorization: str
    query: str
    host: str
    content_encoding: str
    accept_encoding: str
    body: bytes
    explain: str = ""


class Answer(Struct, frozen=True):
    """What goes back: the body as it is sent, and what the headers say of it."""

    status: int
    content_type: str
    body: bytes
    request_id: str
    content_encoding: str = ""
    # What a request that asked for it cost, see ``api.explain``.
    explanation: str = ""


class Protocol:
    """Answers requests, each by its operation."""

    def __init__(
        self,
        database: Database,
        operations: Iterable[Operation],
        not_implemented: frozenset[str] = frozenset(),
    ) -> None:
        self._database = database
        self._operations = {
            operation.target: (operation, InputDecoder(operation.input)) for operation in operations
        }
        self._not_implemented = not_implemented
        self.request_ids = _request_ids()
        # How many requests were throttled since the server started, by table and operation.
        self.throttled_requests: Counter[tuple[str, str]] = Counter()

    async def answer(self, request: Request) -> Answer:
        """Answer a request; nothing that a client sends makes this raise."""
        request_id = next(self.request_ids)
        content_type = _media_type(request.content_type)
        if content_type not in (JSON_1_0, JSON):
            return _not_understood(request_id)
        paid: list[Paid] | None = None
        if request.explain and explain.is_wanted(request.explain):
            paid = []
        try:
            status, body = 200, await self._perform(request, paid)
        except DynamoDBError as error:
            status, body = error.http_status, error_body(error)
        except StoreError as error:
            _log.error("store_error", request_id=request_id, error=str(error))
            status, body = 500, error_body(InternalServerError(f"The store failed: {error}"))
        except Exception:  # noqa: BLE001 - a bug of ours must not cost the client its connection
            _log.exception("internal error", request_id=request_id, target=request.target)
            status, body = 500, error_body(InternalServerError("Internal server error"))
        explanation = _explanation(request.target, paid) if paid else ""
        encoding = ""
        if len(body) >= compression.WORTH_COMPRESSING_BYTES and compression.accepts_gzip(
            request.accept_encoding
        ):
            body, encoding = compression.deflate(body), "gzip"
        return Answer(status, content_type, body, request_id, encoding, explanation)

    def refuse(self, error: DynamoDBError) -> Answer:
        """The answer to a request that is refused before it is looked at."""
        return Answer(error.http_status, JSON_1_0, error_body(error), next(self.request_ids))

    def not_understood(self) -> Answer:
        """The answer to a request that is none of this protocol."""
        return _not_understood(next(self.request_ids))

    async def _perform(self, request: Request, paid: list[Paid] | None) -> bytes:
        found = self._operations.get(request.target)
        if found is None:
            raise self._no_such_operation(request.target)
        _check_authorization(request.authorization, request.query)
        operation, decoder = found
        body = _plain_body(request)
        call = Call(self._database, decoder.decode(body), request.host, paid)
        try:
            return await operation.handle(call)
        except (ValidationException, ResourceNotFoundException):
            decoder.check_serialization(body)
            raise
        except Throttled:
            for table in _table_names(call.request):
                self.throttled_requests[table, operation.name] += 1
            raise
        except TransactionCanceledException as error:
            self.throttled_requests.update(
                (table, operation.name) for table in _throttled_tables(call.request, error)
            )
            raise

    def _no_such_operation(self, target: str) -> UnknownOperationException:
        """A known operation gets a message; DynamoDB gives none with this error.

        Its status, 400, is one that no SDK sends again.
        """
        named = _TARGET.match(target)
        if named is not None and named[2] in self._not_implemented:
            return UnknownOperationException(f"{named[2]} is not implemented yet in dynactor")
        return UnknownOperationException("")


def _explanation(target: str, paid: list[Paid]) -> str:
    return explain.header_text(target.partition(".")[2], paid)


def _not_understood(request_id: str) -> Answer:
    return Answer(404, "text/xml", _NOT_UNDERSTOOD, request_id)


def error_body(error: DynamoDBError) -> bytes:
    """The JSON of an error."""
    members: dict[str, Any] = {"__type": error.wire_type, **error.members()}
    return _encode(members)


def _table_names(request: Struct) -> set[str]:
    """The tables of a request that was carried out as far as its writes."""
    named = getattr(request, "TableName", None)
    names = getattr(request, "RequestItems", ()) if named is None else (named,)
    return set(map(arn.table_name, names))


def _throttled_tables(request: Struct, error: TransactionCanceledException) -> set[str]:
    """The tables for whose limits a transaction was cancelled, where its actions name them."""
    names: set[str] = set()
    for one, reason in zip(getattr(request, "TransactItems", ()), error.reasons, strict=False):
        if reason.code in THROTTLING_CODES:
            actions = (getattr(one, member) for member in one.__struct_fields__)
            names.update(action.TableName for action in actions if action is not None)
    return set(map(arn.table_name, names))


def _media_type(content_type: str) -> str:
    if content_type in (JSON_1_0, JSON):
        return content_type
    return content_type.partition(";")[0].strip().lower()


def _plain_body(request: Request) -> bytes:
    coding = request.content_encoding.strip().lower()
    if coding in ("", "identity"):
        return request.body
    if coding == "gzip":
        return compression.inflate(request.body)
    raise SerializationException(f"Content-Encoding {coding} is not supported")


def _check_authorization(authorization: str, query: str) -> None:
    """Ask for a signature without looking into it: in open mode any credentials will do.

    It is asked for all the same, so that a client that forgets to sign learns of it here, and
    not first on AWS.
    """
    if not authorization.startswith("AWS4-") and "X-Amz-Algorithm=" not in query:
        raise MissingAuthenticationTokenException("Request is missing Authentication Token")


def _request_ids() -> Iterator[str]:
    """Unique ids of 52 capital letters and digits: random for the process, then a count."""
    process = "".join(choice(_ID_LETTERS) for _ in range(_ID_CHARACTERS - _ID_COUNTER_DIGITS))
    return (f"{process}{number:0{_ID_COUNTER_DIGITS}X}" for number in count())
