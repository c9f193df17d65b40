"""This server on PostgreSQL, beside its embedded store and PostgreSQL alone.

``python -m tests.load.postgresql --help``. Two servers and one PostgreSQL run at the same time, and
one of them is busy. Rounds alternate between them, because the speed of a machine drifts. The data
are on the disk of TMPDIR. PostgreSQL syncs every commit. pgbench measures PostgreSQL alone, with
rows of the same sizes in one table, and one statement for each transaction.
"""

from __future__ import annotations

import asyncio
import re
import resource
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from statistics import median
from typing import Final, NamedTuple

import psutil
from msgspec import structs
from rich.console import Console
from rich.table import Table

from dynactor.load.options import RunOptions
from dynactor.load.run.one import make_caller
from dynactor.load.run.progress import Silent
from dynactor.load.run.runner import Run
from dynactor.load.run.table import prepare
from dynactor.storage import key_layout
from tests.load.peers.servers import process_seconds
from tests.load.servers import directory_on, postgresql_seconds, postmaster
from tests.support.servers import server
from tests.support.servers.postgresql import Postgresql, running_postgresql
from tests.support.servers.server import running_server

EMBEDDED, ON_POSTGRESQL, ALONE = "embedded", "on PostgreSQL", "PostgreSQL alone"
_SETTINGS: Final = {"fsync": "on", "full_page_writes": "on", "shared_buffers": "512MB"}
_KEY: Final = "decode(lpad(to_hex({}), {{digits}}, '0'), 'hex')"
_UPSERT: Final = (
    "INSERT INTO alone SELECT " + _KEY.format("n") + ", decode(:value, 'hex') "
    "FROM generate_series(:n::int, :n::int + {more}) AS n "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value;"
)
# The statement of pgbench for each line.
_STATEMENTS: Final = {
    "get": "SELECT value FROM alone WHERE key = " + _KEY.format(":n::int") + ";",
    "put": _UPSERT.replace("{more}", "0"),
    "put:64": _UPSERT.replace("{more}", "63"),
    "query:10": "SELECT key, value FROM alone WHERE key >= "
    + _KEY.format(":n::int")
    + " ORDER BY key LIMIT 10;",
    "transact-write": _UPSERT.replace("{more}", "3"),
}
_COSTS: Final = ("server, µs", "PostgreSQL, µs", "client, µs")
_ROWS: Final = {"put:64": 64}
_END_SECONDS: Final = 5
_TPS: Final = re.compile(r"tps = ([0-9.]+)")
_TRANSACTIONS: Final = re.compile(r"actually processed: (\d+)")


class Measured(NamedTuple):
    """The requests per second of a round, and processor times per request in µs."""

    rate: float
    server_us: float
    postgresql_us: float
    client_us: float


class Bench:
    """The servers, and the rounds on them."""

    def __init__(self, postgresql: Postgresql, endpoints: dict[str, server.Server]) -> None:
        self._postgresql = postgresql
        self._servers = endpoints
        self._key_bytes = 0
        self._value = b""

    async def measure(self, name: str, line: str, options: RunOptions) -> Measured | None:
        """Run one round; None if a server has no such line."""
        if name == ALONE:
            return self._measure_alone(line, options)
        if line in _ROWS:
            return None
        measured = self._servers[name]
        plan = structs.replace(options.plan(), endpoint=measured.endpoint)
        plan = structs.replace(plan, fill=await prepare(plan, make_caller(plan), "auto"))
        if plan.fill:
            # A short run fills the table.
            first = structs.replace(plan, seconds=0.1)
            await Run(first, Silent()).measure(name, line)
            plan = structs.replace(plan, fill=False)
        pid = measured.process.pid
        began = process_seconds(pid), postgresql_seconds(self._postgresql)
        result = await Run(plan, Silent()).measure(name, line)
        requests = result.total.requests
        assert not result.total.errors, result.error_examples
        return Measured(
            requests / result.seconds,
            (process_seconds(pid) - began[0]) / requests * 1e6,
            (postgresql_seconds(self._postgresql) - began[1]) / requests * 1e6,
            result.generator.cost.us_per_request or 0.0,
        )

    def _measure_alone(self, line: str, options: RunOptions) -> Measured:
        rows = _ROWS.get(line, 1)
        script = self._postgresql.directory / "script.sql"
        statement = _STATEMENTS[line].replace("{digits}", str(2 * self._key_bytes))
        script.write_text(f"\\set n random(0, {options.keys - 64})\n{statement}\n")
        before = set(postmaster(self._postgresql).children())
        began = postgresql_seconds(self._postgresql), _children_seconds()
        said = self._postgresql.run(
            "pgbench",
            *("--host", "127.0.0.1", "--port", str(self._postgresql.port)),
            *("--username", "postgres", "--no-vacuum", "--protocol", "prepared"),
            *("--client", str(options.connections), "--jobs", str(min(2, options.connections))),
            *("--time", f"{options.duration:.0f}", "--define", f"value={self._value.hex()}"),
            *("--file", script, "postgres"),
        )
        # The postmaster counts the time of its processes when they have ended.
        psutil.wait_procs(
            set(postmaster(self._postgresql).children()) - before, timeout=_END_SECONDS
        )
        rate, transactions = _TPS.search(said), _TRANSACTIONS.search(said)
        assert rate, said
        assert transactions, said
        done = int(transactions[1]) * rows
        return Measured(
            float(rate[1]) * rows,
            0.0,
            (postgresql_seconds(self._postgresql) - began[0]) / done * 1e6,
            (_children_seconds() - began[1]) / done * 1e6,
        )

    def prepare_alone(self, keys: int) -> None:
        """Make a table of rows with the sizes of the server's rows."""
        schema = self._postgresql.sql("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'test%'")
        low, high = key_layout.table_range(1)
        size, value = self._postgresql.sql(
            f"SELECT length(key), encode(value, 'hex') FROM {schema}.rows "
            f"WHERE key >= '\\x{low.hex()}' AND key < '\\x{high.hex()}' ORDER BY key LIMIT 1"
        ).split("|")
        self._key_bytes, self._value = int(size), bytes.fromhex(value)
        key = _KEY.format("n").replace("{digits}", str(2 * self._key_bytes))
        self._postgresql.sql(
            "CREATE TABLE alone (key bytea PRIMARY KEY, value bytea NOT NULL) "
            "WITH (fillfactor = 90); ALTER TABLE alone ALTER value SET STORAGE EXTERNAL; "
            f"INSERT INTO alone SELECT {key}, '\\x{value}' FROM generate_series(0, {keys}) AS n"
        )
        self._postgresql.sql("VACUUM ANALYZE alone")


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def running_bench() -> Iterator[Bench]:
    """PostgreSQL, a server on it, and a server on a data directory."""
    with (
        directory_on(None) as directory,
        running_server(data_dir=directory / "data") as embedded,
        running_postgresql(_SETTINGS) as postgresql,
    ):
        embedded_options, server.place_options = server.place_options, postgresql.place_options
        try:
            with running_server() as on_postgresql:
                yield Bench(postgresql, {EMBEDDED: embedded, ON_POSTGRESQL: on_postgresql})
        finally:
            server.place_options = embedded_options


def _parse() -> tuple[list[str], list[int], int, float, int]:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--lines", nargs="+", choices=list(_STATEMENTS), default=list(_STATEMENTS))
    parser.add_argument("--connections", nargs="+", type=int, default=[1, 16, 64])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each round")
    parser.add_argument("--keys", type=int, default=100_000, help="items of each table")
    told = parser.parse_args()
    return told.lines, told.connections, told.rounds, told.seconds, told.keys


async def _run(bench: Bench, console: Console) -> None:
    lines, connections, rounds, seconds, keys = _parse()

    def options(line: str, count: int, duration: float) -> RunOptions:
        workload, _, items = line.partition(":")
        is_query = workload == "query"
        return RunOptions(
            workload=workload,
            query_items=int(items) if is_query else None,
            collection_items=10,
            connections=count,
            keys=keys,
            warm_up=0.0,
            duration=duration,
        )

    for name in (EMBEDDED, ON_POSTGRESQL):
        await bench.measure(name, "get", options("get", 16, 1.0))
    bench.prepare_alone(keys)
    table = Table(
        "request",
        "connections",
        "system",
        "requests/s",
        "server, µs",
        "PostgreSQL, µs",
        "client, µs",
    )
    for line, count in product(lines, connections):
        found: dict[str, list[Measured]] = {EMBEDDED: [], ON_POSTGRESQL: [], ALONE: []}
        for _, name in product(range(rounds), found):
            measured = await bench.measure(name, line, options(line, count, seconds))
            if measured is not None:
                found[name].append(measured)
                console.print(line, count, name, *(f"{each:,.0f}" for each in measured))
        for name, all_rounds in found.items():
            if all_rounds:
                medians = (median(column) for column in zip(*all_rounds, strict=True))
                table.add_row(line, str(count), name, *(f"{each:,.0f}" for each in medians))
    console.print(table)


def main() -> None:
    """Run all rounds, and print their medians."""
    with running_bench() as bench:
        asyncio.run(_run(bench, Console(highlight=False, width=120)))


if __name__ == "__main__":
    main()
