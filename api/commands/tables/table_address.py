"""Addresses of tables: ``http://HOST:PORT/TABLE``, or ``aws:TABLE`` for a table at AWS."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from configparser import Error, RawConfigParser
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from dynactor.api.clients.caller_scope import caller_scope
from dynactor.api.clients.client import STREAMS_OPERATIONS, Endpoint, open_client
from dynactor.api.commands.tables.transfer_failed import TransferFailed

_AWS: Final = "aws:"
_DEFAULT_PROFILES: Final = "~/.aws/credentials"
_KEY_VARIABLES: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


class TableAddress(NamedTuple):
    """A table at an endpoint. Streams at AWS have a host of their own."""

    endpoint: str
    streams_endpoint: str
    table_name: str
    region: str

    def __str__(self) -> str:
        """The address without a user name and a password, because it is stored and shown."""
        parts = urlsplit(self.endpoint)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/{self.table_name}"


def table_address(text: str, region: str | None, environment: Mapping[str, str]) -> TableAddress:
    """Parse an address; raises ``TransferFailed``."""
    scope = caller_scope(region, environment)
    if text.startswith(_AWS) and text != _AWS:
        suffix = "amazonaws.com.cn" if scope.region.startswith("cn-") else "amazonaws.com"
        return TableAddress(
            f"https://dynamodb.{scope.region}.{suffix}",
            f"https://streams.dynamodb.{scope.region}.{suffix}",
            text.removeprefix(_AWS),
            scope.region,
        )
    parts = urlsplit(text)
    table_name = parts.path.strip("/")
    if parts.scheme not in ("http", "https") or not parts.netloc or not table_name:
        raise TransferFailed(
            f"{text} is not the address of a table: give http://HOST:PORT/TABLE, or aws:TABLE"
        )
    endpoint = f"{parts.scheme}://{parts.netloc}"
    return TableAddress(endpoint, endpoint, table_name, scope.region)


def profile_environment(
    profile: str | None, environment: Mapping[str, str] = os.environ
) -> Mapping[str, str]:
    """The environment with a profile's key of AWS's credentials file; raises ``TransferFailed``."""
    if profile is None:
        return environment
    path = Path(environment.get("AWS_SHARED_CREDENTIALS_FILE", _DEFAULT_PROFILES)).expanduser()
    profiles = RawConfigParser()
    try:
        profiles.read_string(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, Error):
        # The error's text may show a secret.
        raise TransferFailed(f"{path} can't be read as a file of credentials") from None
    given = dict(profiles[profile]) if profiles.has_section(profile) else {}
    keys = {name: given[name.lower()] for name in _KEY_VARIABLES if given.get(name.lower())}
    if not keys.keys() >= {*_KEY_VARIABLES[:2]}:
        raise TransferFailed(f"{path} has no access key in the profile {profile}")
    others = {name: text for name, text in environment.items() if name not in _KEY_VARIABLES}
    return others | keys


class _TwoHosts:
    """Calls streams operations at one host and all others at another host."""

    def __init__(self, tables: Endpoint, streams: Endpoint) -> None:
        self._tables = tables
        self._streams = streams

    async def call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        host = self._streams if operation in STREAMS_OPERATIONS else self._tables
        return await host.call(operation, request)


@asynccontextmanager
async def open_endpoint(
    address: TableAddress, environment: Mapping[str, str]
) -> AsyncIterator[Endpoint]:
    """The endpoint of a table, connected within the context. It repeats no requests."""
    async with AsyncExitStack() as stack:
        tables = await stack.enter_async_context(
            open_client(address.endpoint, address.region, environment)
        )
        streams = tables
        if address.streams_endpoint != address.endpoint:
            streams = await stack.enter_async_context(
                open_client(address.streams_endpoint, address.region, environment)
            )
        yield _TwoHosts(tables, streams)
