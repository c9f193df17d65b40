"""The paths of the console: ``/`` is the page, ``/console/...`` its files and its requests.

``POST /console/dynamodb`` performs an operation of DynamoDB, ``GET /console/tables`` lists the
tables, ``GET /console/advice?table=T`` gives advice, and ``GET /console/index-cost?table=T`` the
forecast of an index. ``GET /console/live?table=T`` sends the use of a table as events, and
``GET /console/requests`` the requests of clients. Each of these needs the token of the page
(``sign_in.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from time import monotonic
from typing import Final, Literal, TypeAlias

import msgspec
from aiohttp import web
from msgspec import Struct

from dynactor import __version__
from dynactor.actors.database.database import Database
from dynactor.api.access.access_control import AccessControl
from dynactor.api.admin.access_routes import access_answer
from dynactor.api.admin.answers import fault, json_answer, other_method, other_type
from dynactor.api.admin.change_rules import ChangeRefusal
from dynactor.api.admin_api.callers import Level, certificate_name
from dynactor.api.console import door, live, requests
from dynactor.api.console.files import FILES_PATH, HEADERS, PageFiles
from dynactor.api.console.overview import Overview, overview
from dynactor.api.console.sign_in import SignIn
from dynactor.api.http.protocol import Protocol
from dynactor.model.errors import ResourceNotFoundException
from dynactor.storage.store import StoreError

ConsoleMode: TypeAlias = Literal["full", "read-only"]

PAGE_PATH: Final = "/"
_SIGN_IN_PATH: Final = "/console/sign-in"
_SIGN_OUT_PATH: Final = "/console/sign-out"
_DOOR_PATH: Final = "/console/dynamodb"
_TABLES_PATH: Final = "/console/tables"
_LIVE_PATH: Final = "/console/live"
_REQUESTS_PATH: Final = "/console/requests"
_ADVICE_PATH: Final = "/console/advice"
_INDEX_COST_PATH: Final = "/console/index-cost"
_SERVER_PATH: Final = "/console/server"


class Secret(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request to sign in."""

    secret: str


class ServerFacts(Struct, frozen=True):
    """The parts of the server that the pages can show and change."""

    version: str
    # The address of the API.
    endpoint: str
    region: str
    # The regions, and the access keys in them, that have tables of their own.
    regions: list[str]
    access_key_ids: list[str]
    is_read_only: bool
    has_session: bool
    has_virtual_clock: bool
    allows_faults: bool
    allows_reset: bool
    # The server is a node of a cluster.
    has_nodes: bool


class Abilities(Struct, frozen=True):
    """The parts of the admin port that the options of the server make available."""

    faults: bool
    reset: bool
    nodes: bool


class Console:
    """Answers the requests of the pages."""

    def __init__(
        self,
        protocol: Protocol,
        endpoint: str,
        sign_in: SignIn,
        mode: ConsoleMode,
        abilities: Abilities,
    ) -> None:
        """``endpoint`` is the address of the API."""
        self._protocol = protocol
        self._endpoint = endpoint
        self._sign_in = sign_in
        self._is_read_only = mode == "read-only"
        self._abilities = abilities
        self._files = PageFiles()

    @staticmethod
    def serves(path: str) -> bool:
        """Whether this module serves a path."""
        return path == PAGE_PATH or path.startswith(FILES_PATH)

    def level(self, request: web.BaseRequest) -> Level:
        """The requests that the page may send."""
        level = self._sign_in.level(request)
        return min(level, Level.READ) if self._is_read_only else level

    async def answer(
        self,
        request: web.BaseRequest,
        change_refusal: ChangeRefusal | None,
        database_for: Callable[[Mapping[str, str]], Database | None],
    ) -> web.StreamResponse:
        """Answer a request; ``change_refusal`` is the admin port's, for a caller of any kind."""
        path = request.path
        refusal = self._sign_in.refusal(request.remote, certificate_name(request))
        if refusal is not None:
            return _refused(refusal)
        if path == PAGE_PATH:
            if request.method not in ("GET", "HEAD"):
                return other_method(path, "GET, HEAD")
            session = self._sign_in.session(request)
            return self._files.index("" if session is None else self._sign_in.token(session))
        if request.method in ("GET", "HEAD"):
            file = self._files.answer(request)
            if file is not None:
                return file
        if path == _SIGN_IN_PATH:
            return await self._begin_session(request)
        if self.level(request) is Level.NOTHING:
            return fault(HTTPStatus.UNAUTHORIZED, "Sign in at the console's page")
        if path == _SIGN_OUT_PATH:
            if request.method != "POST":
                return other_method(path, "POST")
            return self._sign_in.sign_out(request)
        if path == _DOOR_PATH:
            return await self._perform(request, change_refusal)
        if path == _SERVER_PATH:
            return _page_answer(self._facts(request))
        if path == _LIVE_PATH:
            query = request.query
            return await live.stream(request, lambda: database_for(query), query.get("table", ""))
        if path == _REQUESTS_PATH:
            return await requests.stream(request, self._protocol)
        if path in (_TABLES_PATH, _ADVICE_PATH, _INDEX_COST_PATH):
            access_control = self._protocol.access_control
            return await _table_answer(request, database_for(request.query), access_control)
        return fault(HTTPStatus.NOT_FOUND, f"The console has no path {path}")

    async def _begin_session(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method != "POST":
            return other_method(request.path, "POST")
        wrong_type = other_type(request)
        if wrong_type is not None:
            return wrong_type
        try:
            given = msgspec.json.decode(await request.read(), type=Secret)
        except msgspec.MsgspecError as error:
            return fault(HTTPStatus.BAD_REQUEST, str(error))
        done = await self._sign_in.sign_in(request, given.secret)
        return _refused(done) if isinstance(done, ChangeRefusal) else done

    async def _perform(
        self, request: web.BaseRequest, change_refusal: ChangeRefusal | None
    ) -> web.StreamResponse:
        if request.method != "POST":
            return other_method(request.path, "POST")
        if change_refusal is not None:
            return _refused(change_refusal)
        target = request.headers.get(door.TARGET_HEADER, "")
        if self.level(request) < Level.FULL and not door.reads_only(target, await request.read()):
            reason = "The console of this server is read-only"
            if not self._is_read_only:
                reason = "You may only read: sign in with the secret of --admin-secret-file"
            return fault(HTTPStatus.FORBIDDEN, reason)
        return await door.perform(self._protocol, request)

    def _facts(self, request: web.BaseRequest) -> ServerFacts:
        databases = self._protocol.databases
        names = [] if databases is None else list(databases.by_namespace)
        is_read_only = self.level(request) < Level.FULL
        return ServerFacts(
            __version__,
            self._endpoint,
            self._protocol.database.settings.region,
            sorted({name.region for name in names}),
            sorted({name.access_key_id for name in names if name.access_key_id}),
            is_read_only,
            bool(self._sign_in.session(request)),
            self._protocol.database.clock_control is not None,
            self._abilities.faults and not is_read_only,
            self._abilities.reset and not is_read_only,
            self._abilities.nodes,
        )


async def _table_answer(
    request: web.BaseRequest, database: Database | None, access_control: AccessControl | None
) -> web.Response:
    if database is None:
        if request.path == _TABLES_PATH:
            # The tables of a region or an access key that no request has named yet.
            return _page_answer(Overview(monotonic(), []))
        return fault(HTTPStatus.NOT_FOUND, "There are no tables in that region")
    # Imported here because only some pages use it.
    from dynactor.api.console import advice  # noqa: PLC0415

    try:
        if request.path == _TABLES_PATH:
            return _page_answer(await overview(database))
        table = database.table_in_any_state(request.query.get("table", ""))
        if request.path == _ADVICE_PATH:
            access = access_answer(access_control)
            return _page_answer(await advice.advice(database, table, access))
        return _page_answer(await advice.index_cost(database, table, request.query))
    except ResourceNotFoundException as error:
        return fault(HTTPStatus.NOT_FOUND, str(error))
    except advice.BadIndex as error:
        return fault(HTTPStatus.BAD_REQUEST, str(error))
    except StoreError as error:
        return fault(HTTPStatus.INTERNAL_SERVER_ERROR, f"The store failed: {error}")


def _page_answer(content: object) -> web.Response:
    response = json_answer(HTTPStatus.OK, content)
    response.headers.update(HEADERS)
    response.enable_compression()
    return response


def _refused(refusal: ChangeRefusal) -> web.Response:
    response = fault(*refusal)
    response.headers.update(HEADERS)
    return response
