"""The command line, and the one file that knows every floor: it puts the server together."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import NoReturn

import anyio
import structlog
from cyclopts import App
from cyclopts.config import Env

from actors.database import DatabaseSettings, open_database
from actors.runtime.clock import SystemClock
from api.config import ConfigurationError, ServeOptions
from api.http_settings import HttpSettings
from api.logs import configure_logs
from api.protocol import Protocol
from api.registry import NOT_IMPLEMENTED, OPERATIONS
from api.server import CannotListen, listen, serving
from storage.rocks import open_rocks, open_rocks_in_memory
from storage.store import CannotOpen, Damaged, Full, Store

_log = structlog.get_logger(__name__)


def _version() -> str:
    try:
        return version("dynactor")
    except PackageNotFoundError:
        return "unknown: not installed"


app = App(
    name="dynactor",
    help="A self-hosted, durable DynamoDB.",
    version=_version,
    config=Env("DYNACTOR_", command=False),
)


@app.command
def serve(options: ServeOptions | None = None) -> None:
    """Serve DynamoDB's API until SIGTERM or SIGINT."""
    options = options or ServeOptions()
    configure_logs(options.log_level)
    backend_options = {"use_uvloop": find_spec("uvloop") is not None}
    try:
        anyio.run(_serve, options, backend_options=backend_options)
    except (CannotListen, CannotOpen, Damaged, Full) as error:
        _give_up(str(error))


async def _serve(options: ServeOptions) -> None:
    # Signals are received from the start: whoever has read the announcement may send one.
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with _running(options) as endpoint:
            _announce(endpoint, options)
            async for received in signals:
                _log.info("stopping", signal=received.name)
                break


@asynccontextmanager
async def _running(options: ServeOptions) -> AsyncIterator[str]:
    """The whole server; yields its endpoint. It stops in the opposite order of its start."""
    http_settings = HttpSettings(region=options.region, access=options.access)
    database_settings = DatabaseSettings(
        region=options.region,
        item_collection_limit_bytes=options.item_collection_limit_bytes,
        table_transition_seconds=options.table_transition_seconds,
        partitions_per_table=options.partitions_per_table,
        copy_messages=options.copy_messages,
    )
    # Taken first: whether the port is free is known before the data is touched.
    with listen(options.host, options.port) as listener:
        async with (
            _store(options) as store,
            open_database(store, database_settings, SystemClock()) as database,
            serving(
                Protocol(database, OPERATIONS.values(), NOT_IMPLEMENTED), http_settings, listener
            ) as endpoint,
        ):
            yield endpoint


@asynccontextmanager
async def _store(options: ServeOptions) -> AsyncIterator[Store]:
    directory = options.data_directory
    store = await (open_rocks_in_memory() if directory is None else open_rocks(directory))
    try:
        yield store
    finally:
        await store.close()


def _announce(endpoint: str, options: ServeOptions) -> None:
    place = options.data_directory or "memory, gone when the server stops"
    sys.stdout.write(
        f"Listening on {endpoint}\n"
        f"Data in {place}\n"
        "Try it from Python:\n"
        f'  import boto3; dynamodb = boto3.resource("dynamodb", endpoint_url="{endpoint}", '
        f'region_name="{options.region}", aws_access_key_id="any", aws_secret_access_key="any")\n'
    )
    sys.stdout.flush()


def _give_up(message: str) -> NoReturn:
    sys.stderr.write(f"dynactor: {message}\n")
    sys.exit(1)


def main() -> None:
    """The console script."""
    try:
        app()
    except ConfigurationError as error:
        _give_up(str(error))


if __name__ == "__main__":
    main()
