"""During an outage of the broker, no change is lost, and only disk use grows.

Beyond the configured limit the destination is cut off; its topic later gets a gap record.
``--rounds N`` runs N rounds at full size.
"""

from __future__ import annotations

import asyncio
import random
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from dynactor.storage.rocks.options import RocksOptions
from tests.support.clients.clients import WireClient
from tests.support.kafka.kafka_broker import KafkaBroker
from tests.support.kafka.kafka_consumer import Isolation
from tests.support.kafka.kafka_rounds import Serving, run_round, wait_for
from tests.support.kafka.kafka_server import kafka_options, lag_records, replica_of, wait_until
from tests.support.servers.admin import admin_port, ask
from tests.support.servers.server import Server, running_server
from tests.support.tables.tables import definition, unique_name, wait_until_active
from tests.support.writers.expiring_writers import ExpiringWriters

MIB = 1024 * 1024
STORE = RocksOptions()
WRITE_BUFFERS_BYTES = STORE.memtable_bytes * STORE.memtables
# The memory limit for a backlog of any size: the store's buffers and cache, and 64 MiB.
MOST_MEMORY_BYTES = WRITE_BUFFERS_BYTES + STORE.cache_bytes + 64 * MIB
ITEMS = 400
ITEM_BYTES = 8_000


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    # Short runs use only exactly-once delivery, which can fail in more ways. ``test_relay.py``
    # tests a short outage with both deliveries.
    asked = metafunc.config.getoption("--rounds")
    deliveries = ["at-least-once", "exactly-once"] if asked else ["exactly-once"]
    metafunc.parametrize("delivery", [("--kafka-delivery", name) for name in deliveries])


class Outages(NamedTuple):
    """The duration of each outage, the least number of writes during it, and their kinds."""

    seconds: float
    writes: int
    kinds: tuple[str, ...]


SHORT = Outages(0.5, 400, ("killed",))
FULL = Outages(120, 20_000, ("killed", "silent"))


async def test_nothing_is_lost_or_out_of_order_in_long_outages(
    breakable_broker: KafkaBroker,
    tmp_path: Path,
    delivery: tuple[str, str],
    rounds: int | None,
    tell: Callable[[str], None],
):
    broker, outages = breakable_broker, FULL if rounds else SHORT

    async def wait_outage(writers: ExpiringWriters) -> None:
        ends_at = time.monotonic() + outages.seconds
        await writers.wait_writes(outages.writes)
        await wait_for(lambda: time.monotonic() >= ends_at, "the outage is over")

    async def fault(writers: ExpiringWriters, serving: Serving) -> None:
        await wait_outage(writers)
        await asyncio.to_thread(broker.start)
        await wait_for(lambda: is_caught_up(serving.server, writers), "the backlog is published")
        for kind in outages.kinds:
            is_killed = kind == "killed"
            end, mend = (
                (broker.kill, broker.start) if is_killed else (broker.suspend, broker.resume)
            )
            await asyncio.to_thread(end)
            await wait_outage(writers)
            await asyncio.to_thread(mend)
            await writers.wait_writes(outages.writes // 4)

    for seed in range(rounds or 1):
        broker.stop()
        directory = tmp_path / f"{seed}"
        outcome = await run_round(broker, directory, delivery, random.Random(seed), fault)
        tell(f"{delivery[1]}, away at the start, killed, silent: {outcome}")
        assert outcome.found == []
        assert outcome.gaps == 0
        assert delivery[1] == "at-least-once" or outcome.duplicates == 0


def is_caught_up(server: Server, writers: ExpiringWriters) -> bool:
    """Whether the backlog has no more changes than clients write at a time."""
    lags = lag_records(server)
    return max(lags[table] for table in writers.tables) < 1_000


class Filler:
    """A client that overwrites the same few items, so the table does not grow."""

    def __init__(self, call: WireClient, table: str, seed: int) -> None:
        self.written_bytes = 0
        self._call = call
        self._table = table
        self._draw = random.Random(seed)

    def fill(self, size_bytes: int) -> Iterator[None]:
        """Write this many bytes; yield after each write, so that the test can measure."""
        goal = self.written_bytes + size_bytes
        while self.written_bytes < goal:
            numbers = self._draw.sample(range(ITEMS), 25)
            left: dict[str, Any] = {self._table: list(map(self._put, numbers))}
            while left:
                answer = self._call("BatchWriteItem", {"RequestItems": left})
                left = answer["UnprocessedItems"]
            yield

    def _put(self, number: int) -> dict[str, Any]:
        # Random text, which the store can't compress.
        text = b64encode(self._draw.randbytes(ITEM_BYTES * 3 // 4)).decode()
        self.written_bytes += ITEM_BYTES
        key = {"pk": {"S": f"item {number}"}}
        return {"PutRequest": {"Item": {**key, "text": {"S": text}}}}


class Footprint:
    """The largest memory of a server and the largest size of its data directory so far."""

    def __init__(self, server: Server, directory: Path) -> None:
        self._process = psutil.Process(server.process.pid)
        self._directory = directory
        self.look()
        self.first = self.resident, self.disk

    def look(self) -> None:
        """Measure both now."""
        self.resident: int = self._process.memory_info().rss
        self.disk = disk_bytes(self._directory)

    def __str__(self) -> str:
        (resident, disk), now = self.first, (self.resident, self.disk)
        return (
            f"memory {resident / 1e6:.0f} to {now[0] / 1e6:.0f} MB, "
            f"disk {disk / 1e6:.0f} to {now[1] / 1e6:.0f} MB"
        )


def disk_bytes(directory: Path) -> int:
    """The size of all files on disk. The server may delete files meanwhile."""
    total = 0
    for path in directory.rglob("*"):
        try:
            status = path.stat()
        except FileNotFoundError:
            continue
        # Count the allocated blocks, because preallocated files are longer than their data.
        total += min(status.st_size, status.st_blocks * 512) if path.is_file() else 0
    return total


def destination_of(call: WireClient, table: str) -> dict[str, str]:
    described = call("DescribeKinesisStreamingDestination", {"TableName": table})
    found: dict[str, str] = described["KinesisDataStreamDestinations"][0]
    return found


def made(call: WireClient, table: str) -> None:
    call("CreateTable", definition("pk:S", name=table))
    wait_until_active(call, table)
    wait_until(lambda: destination_of(call, table)["DestinationStatus"] == "ACTIVE", "it is active")


async def test_a_destination_is_cut_off_at_its_bound_and_the_disk_stays_bounded(
    breakable_broker: KafkaBroker,
    tmp_path: Path,
    delivery: tuple[str, str],
    rounds: int | None,
    tell: Callable[[str], None],
):
    cap_bytes = 200_000_000 if rounds else 10_000_000
    options = kafka_options(breakable_broker, *delivery, "--kafka-retention-bytes", str(cap_bytes))
    table = unique_name("capped")
    with (
        running_server(*options, data_dir=tmp_path) as server,
        closing(WireClient(server.endpoint)) as call,
    ):
        made(call, table)
        filler = Filler(call, table, 1)
        for _ in filler.fill(ITEMS * ITEM_BYTES * 2):
            pass
        footprint = Footprint(server, tmp_path)
        largest = 0
        with breakable_broker.stopped():
            # A change record has two images, so this fills the limit of ``cap_bytes`` several
            # times.
            for _ in filler.fill(3 * cap_bytes):
                footprint.look()
                largest = max(largest, footprint.disk)
            wait_until(lambda: "destination_dropped" in server.log, "it is cut off")
            wait_until(
                lambda: destination_of(call, table)["DestinationStatus"] == "ENABLE_FAILED",
                "all are told",
            )
            destination = destination_of(call, table)
            assert destination["DestinationStatusDescription"].startswith("BROKEN")
            assert metric(server, table, "state", 'state="BROKEN"') == 1
            footprint.look()
            # Deleted data uses disk space until a compaction, and new data is also in the
            # write-ahead log.
            assert largest < 2 * cap_bytes + WRITE_BUFFERS_BYTES, str(footprint)
            assert footprint.disk < cap_bytes + WRITE_BUFFERS_BYTES, str(footprint)
            assert footprint.resident < MOST_MEMORY_BYTES, str(footprint)
            tell(
                f"{delivery[1]}, bound {cap_bytes / 1e6:.0f} MB, "
                f"{filler.written_bytes / 1e6:.0f} MB written: {footprint}, "
                f"{largest / 1e6:.0f} MB of disk at most"
            )
        wait_until(
            lambda: destination_of(call, table)["DestinationStatus"] == "ACTIVE", "it is mended"
        )
        for _ in filler.fill(ITEMS * ITEM_BYTES):
            pass
        wait_until(lambda: lag_records(server)[table] == 0, "it is published")
        is_committed = delivery[1] == "exactly-once"
        isolation: Isolation = "read_committed" if is_committed else "read_uncommitted"
        replica = await replica_of(breakable_broker, f"dynactor.{table}", server, table, isolation)
        assert replica.gaps == 3
        assert replica.events["INSERT", "snapshot"] >= ITEMS * 0.9
        assert server.log.count("destination_dropped") == 1


def metric(server: Server, table: str, name: str, label: str) -> float:
    """A metric of a table's destination; 0 if missing."""
    for line in ask(admin_port(server), "/metrics").body.decode().splitlines():
        if (
            line.startswith(f"dynactor_destination_{name}{{")
            and f'"{table}"' in line
            and label in line
        ):
            return float(line.rpartition(" ")[2])
    return 0
