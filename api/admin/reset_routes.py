"""Paths of the admin listener for tests: reset, settings and snapshots of the server.

``POST /reset`` deletes all data and restores the options of the start. ``PATCH /settings`` changes
some options of the running server, ``GET /settings`` shows them. ``POST /snapshots`` keeps a copy
of all data under a ``name``, ``POST /snapshots/NAME/restore`` restores it, ``GET /snapshots`` lists
the copies and ``DELETE /snapshots/NAME`` deletes one. The server refuses these requests unless its
data is in memory or it was started with ``--allow-reset``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Final

import msgspec
import structlog
from aiohttp import web
from msgspec import Meta, Struct, structs

from dynactor.actors.feeds.index_lag import parse_index_lag, parse_transaction_delay
from dynactor.actors.parts.database_settings import DatabaseSettings
from dynactor.api.admin.answers import fault, json_answer, other_method, other_type
from dynactor.api.hosting.database_host import (
    DatabaseHost,
    HostError,
    NoSuchSnapshot,
    SnapshotExists,
    TooManySnapshots,
)
from dynactor.model.configuration_error import ConfigurationError
from dynactor.model.limits import BURST_SECONDS
from dynactor.model.throttling.throttling_setting import ThrottlingSetting
from dynactor.storage.store import StoreError

RESET_PATH: Final = "/reset"
SETTINGS_PATH: Final = "/settings"
SNAPSHOTS_PATH: Final = "/snapshots"

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}\Z")
_RESTORE: Final = re.compile(rf"{SNAPSHOTS_PATH}/([^/]+)/restore\Z")
_SNAPSHOT: Final = re.compile(rf"{SNAPSHOTS_PATH}/([^/]+)\Z")
_STATUS: Final = {
    NoSuchSnapshot: HTTPStatus.NOT_FOUND,
    SnapshotExists: HTTPStatus.CONFLICT,
    TooManySnapshots: HTTPStatus.CONFLICT,
}

_log = structlog.get_logger(__name__)

Seconds = Annotated[float, Meta(ge=0)]


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of ``dynactor serve`` that can be changed until the next reset."""

    gsi_lag: str | None = None
    transaction_delay: str | None = None
    throttling: ThrottlingSetting | None = None
    initial_burst_seconds: Annotated[float, Meta(ge=0, le=BURST_SECONDS)] | None = None
    table_transition_seconds: Seconds | None = None
    index_allocation_seconds: Seconds | None = None
    ttl_delay_seconds: Seconds | None = None
    ttl_change_interval_seconds: Seconds | None = None
    ttl_transition_seconds: Seconds | None = None


class SnapshotRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of ``POST /snapshots``."""

    name: str


class Snapshot(Struct, frozen=True):
    """A snapshot in the server's memory."""

    name: str
    size_bytes: int


class Snapshots(Struct, frozen=True):
    """All snapshots, in the order in which they were made."""

    snapshots: list[Snapshot]


class ResetDone(Struct, frozen=True):
    """The answer to a request without a result."""

    done: bool = True


class SuiteControls:
    """Answers requests for these paths."""

    def __init__(self, host: DatabaseHost, *, can_reset: bool) -> None:
        """``can_reset``: the server's data may be deleted."""
        self._host = host
        self.can_reset = can_reset

    @staticmethod
    def serves(path: str) -> bool:
        """Whether this module serves a path."""
        return path in (RESET_PATH, SETTINGS_PATH) or f"{path}/".startswith(f"{SNAPSHOTS_PATH}/")

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer a request for one of these paths."""
        if not self.can_reset:
            return fault(
                HTTPStatus.FORBIDDEN,
                "This would change or delete data on disk: start the server with --in-memory, or "
                "with --allow-reset",
            )
        if request.method in ("POST", "PATCH"):
            refusal = other_type(request)
            if refusal is not None:
                return refusal
        try:
            return await self._execute(request)
        except (msgspec.MsgspecError, ConfigurationError) as error:
            return fault(HTTPStatus.BAD_REQUEST, str(error))
        except HostError as error:
            return fault(_STATUS.get(type(error), HTTPStatus.SERVICE_UNAVAILABLE), str(error))
        except StoreError as error:
            _log.error("reset_failed", error=str(error))
            return fault(HTTPStatus.INTERNAL_SERVER_ERROR, f"The store failed: {error}")

    async def _execute(self, request: web.BaseRequest) -> web.Response:
        path, method = request.path, request.method
        if path == RESET_PATH:
            if method != "POST":
                return other_method(path, "POST")
            await self._host.reset()
            return json_answer(HTTPStatus.OK, ResetDone())
        if path == SETTINGS_PATH:
            return await self._settings(request)
        if path == SNAPSHOTS_PATH:
            return await self._all_snapshots(request)
        if restored := _RESTORE.match(path):
            if method != "POST":
                return other_method(path, "POST")
            await self._host.restore_snapshot(restored[1])
            return json_answer(HTTPStatus.OK, ResetDone())
        if named := _SNAPSHOT.match(path):
            if method != "DELETE":
                return other_method(path, "DELETE")
            self._host.delete_snapshot(named[1])
            return json_answer(HTTPStatus.OK, ResetDone())
        return fault(
            HTTPStatus.NOT_FOUND,
            f"There are {SNAPSHOTS_PATH}, {SNAPSHOTS_PATH}/NAME and {SNAPSHOTS_PATH}/NAME/restore",
        )

    async def _settings(self, request: web.BaseRequest) -> web.Response:
        if request.method not in ("GET", "HEAD", "PATCH"):
            return other_method(request.path, "GET, HEAD, PATCH")
        if request.method == "PATCH":
            given = msgspec.json.decode(await request.read(), type=Settings)
            await self._host.change_settings(_changed(self._host.settings, given))
        return json_answer(HTTPStatus.OK, _shown(self._host.settings))

    async def _all_snapshots(self, request: web.BaseRequest) -> web.Response:
        if request.method in ("GET", "HEAD"):
            made = [Snapshot(*each) for each in self._host.snapshots.items()]
            return json_answer(HTTPStatus.OK, Snapshots(made))
        if request.method != "POST":
            return other_method(request.path, "GET, HEAD, POST")
        name = msgspec.json.decode(await request.read(), type=SnapshotRequest).name
        if not _NAME.match(name):
            return fault(
                HTTPStatus.BAD_REQUEST,
                f"{name!r} is not a name for a snapshot: give letters, digits, '_', '-' and '.', "
                "at most 200, not beginning with '-' or '.'",
            )
        await self._host.make_snapshot(name)
        return json_answer(HTTPStatus.CREATED, Snapshot(name, self._host.snapshots[name]))


def _changed(settings: DatabaseSettings, given: Settings) -> DatabaseSettings:
    """Settings with the given changes; raises ``ConfigurationError`` if a lag is malformed."""
    time_to_live = {
        "delay_seconds": given.ttl_delay_seconds,
        "change_interval_seconds": given.ttl_change_interval_seconds,
        "transition_seconds": given.ttl_transition_seconds,
    }
    changes: dict[str, object] = {
        "throttling": given.throttling,
        "initial_burst_seconds": given.initial_burst_seconds,
        "table_transition_seconds": given.table_transition_seconds,
        "index_allocation_seconds": given.index_allocation_seconds,
        "time_to_live": structs.replace(settings.time_to_live, **_given(time_to_live)),
    }
    if given.gsi_lag is not None:
        changes["index_lag"] = parse_index_lag(given.gsi_lag)
    if given.transaction_delay is not None:
        changes["transaction_delay"] = parse_transaction_delay(given.transaction_delay)
    return structs.replace(settings, **_given(changes))


def _given(values: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}


def _shown(settings: DatabaseSettings) -> Settings:
    time_to_live = settings.time_to_live
    return Settings(
        gsi_lag=str(settings.index_lag),
        transaction_delay=str(settings.transaction_delay),
        throttling=settings.throttling,
        initial_burst_seconds=settings.initial_burst_seconds,
        table_transition_seconds=settings.table_transition_seconds,
        index_allocation_seconds=settings.index_allocation_seconds,
        ttl_delay_seconds=time_to_live.delay_seconds,
        ttl_change_interval_seconds=time_to_live.change_interval_seconds,
        ttl_transition_seconds=time_to_live.transition_seconds,
    )
