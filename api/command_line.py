"""The command line, and the one file that knows every floor: it puts the server together."""

from __future__ import annotations

import faulthandler
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Final, NoReturn

import anyio
import structlog
from cyclopts import App
from cyclopts.config import Env
from msgspec import Struct

from dynactor.actors.catalog.database import open_database
from dynactor.actors.catalog.database_settings import DatabaseSettings
from dynactor.actors.catalog.streams import StreamSettings
from dynactor.actors.catalog.virtual_clock import ClockBehindData, ClockState
from dynactor.actors.derived.expiry.time_to_live import TimeToLiveSettings
from dynactor.actors.splitting.split_watch import SplitSettings
from dynactor.api.admin.listener import METRICS_PATH, serving_admin
from dynactor.api.commands.advise.command import AdviseOptions, give_advice
from dynactor.api.commands.backup import BackupOptions, back_up
from dynactor.api.commands.clock import clock
from dynactor.api.commands.insights import InsightsOptions, show_insights
from dynactor.api.commands.replay import ReplayOptions, carry_out
from dynactor.api.commands.times import iso_time, pace
from dynactor.api.commands.violations import ViolationsOptions, find_violations
from dynactor.api.http.protocol import Protocol
from dynactor.api.http.server import CannotListen, listen, serving
from dynactor.api.http.settings import HttpSettings
from dynactor.api.http.signature import Signatures
from dynactor.api.registry import NOT_IMPLEMENTED, OPERATIONS
from dynactor.api.serve.interpreter import set_interpreter
from dynactor.api.serve.kafka_options import KafkaOptionsError
from dynactor.api.serve.logs import configure_logs
from dynactor.api.serve.options import ConfigurationError, ServeOptions
from dynactor.api.serve.parent_watch import end_with_parent
from dynactor.storage.directory_backups import Backups
from dynactor.storage.machine_memory import memory_bytes
from dynactor.storage.open_files import raise_open_files_limit
from dynactor.storage.rocks import open_rocks, open_rocks_in_memory
from dynactor.storage.rocks_options import MIB, RocksOptions
from dynactor.storage.store import CannotOpen, Damaged, Full, Store
from dynactor.streams.kafka.broker import Broker, Refused

# Of the memory, for large requests as they are sent; decoded ones are several times as large.
_LARGE_REQUESTS_SHARE: Final = 16
# Of the memory, for answers that clients do not read.
_UNSENT_ANSWERS_SHARE: Final = 16

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
    # The engine is native code: where that is at fault, the stacks of all threads are written.
    faulthandler.enable()
    configure_logs(options.log_level)
    if options.exit_with_parent:
        end_with_parent()
    raise_open_files_limit()
    backend_options = {"use_uvloop": find_spec("uvloop") is not None}
    try:
        anyio.run(_serve, options, backend_options=backend_options)
    except (CannotListen, CannotOpen, Damaged, Full, KafkaOptionsError, Refused) as error:
        _give_up(str(error))
    except _EndedUnasked:
        _log.critical("ended_unasked", reason="a part of the server was cancelled: a bug")
        sys.exit(1)
    except ClockBehindData as error:
        _give_up(
            f"The virtual clock of {options.data_directory} stands at "
            f"{iso_time(error.stored_epoch_seconds)}, and time never goes back to the real one: "
            "add --virtual-clock now to go on from there, or take another --data-dir"
        )


app.command(clock)


@app.command
def violations(options: ViolationsOptions) -> int:
    """List the values in a table that can't be keys of a global secondary index.

    The exit code is 0 if no violation is left, 1 if some are, 2 if something went wrong.
    """
    return find_violations(options)


@app.command
def replay(options: ReplayOptions) -> int:
    """Publish a table's recorded changes, or its items and changes, to a topic once more.

    The server must have been started with --admin-port and --kafka-bootstrap-servers. The exit
    code is 0 if all was published, or if --follow was stopped, and 1 if not.
    """
    return carry_out(options)


@app.command
def backup(options: BackupOptions | None = None) -> int:
    """Back up all tables while they are used, and print the directory of the backup.

    The server must have been started with --admin-port and --backup-dir. A server that is started
    with a copy of that directory as its --data-dir has everything. The exit code is 0 if the backup
    was made, and 1 if not.
    """
    return back_up(options or BackupOptions())


@app.command
def insights(options: InsightsOptions) -> int:
    """Show the most accessed and the most throttled keys of a table in the last hour.

    The server must have been started with --admin-port.
    """
    return show_insights(options)


@app.command
def advise(options: AdviseOptions) -> int:
    """Tell what a table's recorded use says about its keys, units and indexes.

    The server must have been started with --admin-port. Each advice names its rules, which
    docs/RULES.md holds.
    """
    return give_advice(options)


class _EndedUnasked(Exception):
    """The server has ended, and nobody had asked it to."""


async def _serve(options: ServeOptions) -> None:
    is_asked = False
    # Signals are received from the start: whoever has read the announcement may send one.
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with _running(options) as running:
            set_interpreter()
            _announce(running, options)
            async for received in signals:
                _log.info("stopping", signal=received.name)
                is_asked = True
                break
    # A task group that one of its tasks has cancelled ends as if it were done.
    if not is_asked:
        raise _EndedUnasked


class _Running(Struct, frozen=True):
    """Where a server is reached."""

    endpoint: str
    admin_endpoint: str | None
    # None: time is real.
    clock: ClockState | None


@asynccontextmanager
async def _running(options: ServeOptions) -> AsyncIterator[_Running]:
    """The whole server. It stops in the opposite order of its start."""
    http_settings = HttpSettings(
        region=options.region,
        access=options.access,
        large_requests_bytes=memory_bytes() // _LARGE_REQUESTS_SHARE,
        unsent_answers_bytes=memory_bytes() // _UNSENT_ANSWERS_SHARE,
    )
    database_settings = DatabaseSettings(
        region=options.region,
        item_collection_limit_bytes=options.item_collection_limit_bytes,
        table_transition_seconds=options.table_transition_seconds,
        partitions_per_table=options.partitions_per_table,
        index_allocation_seconds=options.index_allocation_seconds,
        index_lag=options.index_lag,
        index_reads_wait_seconds=options.index_reads_wait_seconds,
        transaction_delay=options.transaction_steps_delay,
        streams=StreamSettings(
            shard_roll_seconds=options.shard_roll_seconds,
            retention_seconds=options.stream_retention_seconds,
        ),
        keep_streams_seconds=options.keep_streams_seconds,
        relays=options.kafka.relay_settings(_version()),
        time_to_live=TimeToLiveSettings(
            delay_seconds=options.ttl_delay_seconds,
            deletes_per_second=options.ttl_deletes_per_second,
            change_interval_seconds=options.ttl_change_interval_seconds,
            transition_seconds=options.ttl_transition_seconds,
        ),
        splits=SplitSettings(
            size_limit_bytes=options.partition_limit_bytes,
            heat_seconds=options.split_heat_seconds,
            check_seconds=options.split_check_seconds,
        ),
        throttling=options.throttling,
        initial_burst_seconds=options.initial_burst_seconds,
        throughput_decreases_per_day=options.throughput_decreases_per_day,
        key_traffic=options.key_traffic,
        copy_messages=options.copy_messages,
    )
    # Taken first: whether the ports are free is known before the data is touched.
    with listen(options.host, options.port) as listener, _admin_listener(options) as admin:
        async with AsyncExitStack() as stack:
            enter = stack.enter_async_context
            store = await enter(_store(options))
            broker = _broker(options)
            database = await enter(
                open_database(store, database_settings, options.new_clock(), broker)
            )
            keys = options.access_keys
            protocol = Protocol(
                database,
                OPERATIONS.values(),
                NOT_IMPLEMENTED,
                None if keys is None else Signatures(keys),
            )
            admin_endpoint = None
            if admin is not None:
                admin_endpoint = await enter(
                    serving_admin(
                        database,
                        protocol,
                        options.admin_access,
                        admin,
                        _backups(options, store),
                    )
                )
            endpoint = await enter(serving(protocol, http_settings, listener))
            clock_control = database.clock_control
            yield _Running(
                endpoint, admin_endpoint, None if clock_control is None else clock_control.state
            )


def _broker(options: ServeOptions) -> Broker | None:
    settings = options.kafka.broker_settings
    if settings is None:
        return None
    # Whoever publishes nothing pays nothing for the client library.
    from dynactor.streams.kafka.aiokafka_broker import Kafka  # noqa: PLC0415

    return Kafka(settings)


def _backups(options: ServeOptions, store: Store) -> Backups | None:
    directory = options.backup_dir
    return None if directory is None else Backups(store, directory.expanduser())


@contextmanager
def _admin_listener(options: ServeOptions) -> Iterator[socket.socket | None]:
    if options.admin_port is None:
        yield None
        return
    with listen(options.admin_host, options.admin_port, option_prefix="--admin-") as listener:
        yield listener


@asynccontextmanager
async def _store(options: ServeOptions) -> AsyncIterator[Store]:
    directory = options.data_directory
    mib = options.cache_mib
    tuning = RocksOptions(block_cache_bytes=None if mib is None else mib * MIB)
    store = await (
        open_rocks_in_memory(tuning) if directory is None else open_rocks(directory, tuning)
    )
    try:
        yield store
    finally:
        await store.close()


def _announce(running: _Running, options: ServeOptions) -> None:
    endpoint = running.endpoint
    place = options.data_directory or "memory, gone when the server stops"
    admin = running.admin_endpoint
    keys = options.credentials_file
    any_key = ', aws_access_key_id="any", aws_secret_access_key="any"'
    sys.stdout.write(
        f"Listening on {endpoint}\n"
        + (f"Metrics on {admin}{METRICS_PATH}\n" if admin else "")
        + (_of_clock(running.clock) if running.clock else "")
        + f"Data in {place}\n"
        + (f"Try it from Python, with a key of {keys}:\n" if keys else "Try it from Python:\n")
        + f'  import boto3; dynamodb = boto3.resource("dynamodb", endpoint_url="{endpoint}", '
        f'region_name="{options.region}"{"" if keys else any_key})\n'
    )
    sys.stdout.flush()


def _of_clock(state: ClockState) -> str:
    return f"Virtual clock at {iso_time(state.now_epoch_seconds)}, {pace(state.speed)}\n"


def _give_up(message: str) -> NoReturn:
    sys.stderr.write(f"dynactor: {message}\n")
    sys.exit(1)


def main() -> None:
    """The console script."""
    try:
        app()
    except (ConfigurationError, KafkaOptionsError) as error:
        _give_up(str(error))


if __name__ == "__main__":
    main()
